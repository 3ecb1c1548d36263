/*
 * digits_runs.c -- the test set of the digits example, and its runs in Exact on every kernel
 * column.
 *
 * The test images are read with tensor operators, by other code than the training images, so that a
 * mistake in reading cannot be learned. A process uses one column (ONEMODEL_ISA), so each gets its
 * own.
 */
#include "digits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool differed;

/* ---- the test set ------------------------------------------------------------------------------
 */

static void take_rows(const char *path, int64_t start, int64_t step, om_tensor **x, om_tensor **y) {
    om_tensor *rows   = om_slice(om_npy_load(path), 0, start, OM_END, step);
    om_tensor *pixels = om_cast(om_slice(rows, 1, 0, 64, 1), OM_F32);
    *x                = om_div_scalar(om_reshape(pixels, OM_DIMS(-1, 1, 8, 8)), 16.0);
    *y                = om_cast(om_reshape(om_slice(rows, 1, 64, 65, 1), OM_DIMS(-1)), OM_I64);
}

void digits_test(const char *path, om_tensor **x, om_tensor **y) {
    take_rows(path, 0, 5, x, y);
}
void digits_writers(const char *path, om_tensor **x, om_tensor **y) {
    take_rows(path, DIGITS_FIRST_WRITERS, 1, x, y);
}

double digits_accuracy(om_tensor *logits, om_tensor *labels) {
    om_tensor *right = om_equal(om_argmax(logits, 1, false), labels);
    return om_item_f64(om_mean_all(om_cast(right, OM_F32)));
}

void digits_sha256(const char *path, char hex[65]) {
    FILE *f = fopen(path, "rb");
    if (!f) return;
    fseek(f, 0, SEEK_END);
    long n  = ftell(f);
    char *p = n > 0 ? malloc((size_t)n) : NULL;
    rewind(f);
    if (p && fread(p, 1, (size_t)n, f) == (size_t)n) om_sha256_of(p, (size_t)n, hex);
    free(p);
    fclose(f);
}

/* ---- runs in this process ----------------------------------------------------------------------
 */

/* Hash of the logits of all images, batch of them at a time. */
static void hash_run(om_session *s, om_tensor *x, int64_t batch, char hex[65]) {
    int64_t n  = om_dim(x, 0);
    float *all = malloc((size_t)n * 10 * sizeof *all);
    for (int64_t i = 0; all && i < n && !om_pending(); i += batch) {
        int64_t end = i + batch < n ? i + batch : n;
        OM_SCOPE {
            om_tensor *y = om_session_call(s, om_slice(x, 0, i, end, 1));
            om_copy_out(y, all + 10 * i, (size_t)(end - i) * 10 * sizeof *all);
        }
    }
    om_hash(om_from(all, OM_F32, OM_DIMS(n, 10)), hex);
    free(all);
}

void digits_hash_runs(const options *o) {
    static const char *const file[] = {"digits.onnx", "digits.om"};
    om_tensor *x, *y;
    digits_test(o->data, &x, &y);
    const int64_t batch[] = {1, 7, om_dim(x, 0)};
    for (int f = 0; f < 2 && !om_pending(); f++) {
        om_session *s = om_session_load(in_dir(o, file[f]), OM_OPTS(session, .arith = OM_EXACT));
        for (int b = 0; b < 3 && !om_pending(); b++) {
            char hex[65] = "";
            hash_run(s, x, batch[b], hex);
            printf("%s %d %s\n", file[f], (int)batch[b], hex);
        }
        om_session_free(s);
    }
}

/* ---- runs in a process per column ---------------------------------------------------------------
 */

/* Reads the lines of a child; counts those whose hash is want. */
static int count_equal(FILE *f, const char *want, int *lines) {
    char line[256], name[64], hex[65];
    int batch, equal = 0;
    for (*lines = 0; fgets(line, sizeof line, f);)
        if (sscanf(line, "%63s %d %64s", name, &batch, hex) == 3) {
            ++*lines;
            equal += strcmp(hex, want) == 0;
        }
    return equal;
}

/* Starts this program with --hash under a column and a number of threads. NULL when it cannot. */
static FILE *start_child(const options *o, const char *isa, const char *threads, pid_t *pid) {
    int fd[2];
    if (pipe(fd) != 0) return NULL;
    fflush(stdout);
    *pid = fork();
    if (*pid == 0) {
        setenv("ONEMODEL_ISA", isa, 1);
        setenv("ONEMODEL_THREADS", threads, 1);
        dup2(fd[1], STDOUT_FILENO);
        close(fd[0]);
        close(fd[1]);
        execlp(o->self, o->self, "--hash", "--data", o->data, "--dir", o->dir, (char *)NULL);
        _exit(127);
    }
    close(fd[1]);
    if (*pid > 0) return fdopen(fd[0], "r");
    close(fd[0]);
    return NULL;
}

int digits_run_everywhere(const options *o, const char *want) {
    static const char *const isa[] = {"scalar", "avx2", "avx512"}, *const threads[] = {"1", "2"};
    int total = 0;
    printf(
        "runs       digits.onnx and digits.om in Exact, all test images, 1, 7 and all at a time:\n");
    for (int i = 0; i < 3; i++)
        for (int t = 0; t < 2; t++) {
            pid_t pid;
            int status = 0, lines = 0, equal = 0;
            FILE *f = start_child(o, isa[i], threads[t], &pid);
            if (!f) {
                perror("starting a process");
                differed = true;
                return total;
            }
            equal = count_equal(f, want, &lines);
            fclose(f);
            waitpid(pid, &status, 0);
            bool absent = WIFEXITED(status) && WEXITSTATUS(status) == NO_SUCH_COLUMN;
            bool good   = status == 0 && lines == 6 && equal == 6;
            printf("           %-7s %s thread%s  %s\n", isa[i], threads[t], t ? "s" : " ",
                   absent ? "not on this machine"
                   : good ? "6 runs, each equal to eager, bit for bit"
                          : "DIFFERENT: a bug");
            differed |= !absent && !good;
            total += equal;
        }
    printf("hash       %s  of the logits\n", want);
    return total;
}

/* ---- options and text ---------------------------------------------------------------------------
 */

options read_options(int argc, char **argv, int epochs) {
    options o = {.seed   = 1,
                 .epochs = epochs,
                 .data   = "examples/data/digits.npy",
                 .dir    = ".",
                 .self   = argv[0]};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--hash") == 0)
            o.hash = true;
        else if (strcmp(argv[i], "--validate") == 0)
            o.validate = true;
        else if (strcmp(argv[i], "--seed") == 0 && value)
            o.seed = atoi(argv[++i]);
        else if (strcmp(argv[i], "--epochs") == 0 && value)
            o.epochs = atoi(argv[++i]);
        else if (strcmp(argv[i], "--data") == 0 && value)
            o.data = argv[++i];
        else if (strcmp(argv[i], "--dir") == 0 && value)
            o.dir = argv[++i];
        else {
            fprintf(
                stderr,
                "usage: %s [--seed N] [--epochs N] [--validate] [--data digits.npy] [--dir out]\n",
                argv[0]);
            exit(2);
        }
    }
    if (o.epochs < 1 || o.epochs > 1000) {
        fprintf(stderr, "--epochs is 1 to 1000\n");
        exit(2);
    }
    return o;
}

const char *in_dir(const options *o, const char *name) {
    static char path[4][1024];
    static int next;
    char *p = path[next++ % 4];
    snprintf(p, sizeof path[0], "%s/%s", o->dir, name);
    return strcmp(o->dir, ".") == 0 ? p + 2 : p;
}

void progress(const char *what, int epoch, int epochs, double loss, double seconds) {
    bool tty = isatty(STDOUT_FILENO);
    if (!tty && epoch != epochs) return;
    int done = 24 * epoch / epochs;
    printf("%s%-10s [%.*s%*s] epoch %d of %d, loss %.4f, %.1f s%s", tty ? "\r" : "", what, done,
           "########################", 24 - done, "", epoch, epochs, loss, seconds,
           epoch == epochs ? "\n" : "");
    fflush(stdout);
}

void print_refusal(const om_error *e) {
    if (e->status != OM_ERR_TRACE) {
        printf("refused    nothing was: a bug\n");
        differed = true;
        return;
    }
    printf("refused    a model that branches on a value, %s (%s):\n", e->where,
           om_trace_kind_name(e->trace_kind));
    for (const char *at = e->message; *at;) {
        int n = (int)strlen(at);
        for (n = n > 88 ? 88 : n; at[n] && at[n] != ' ' && n > 1;)
            n--;
        printf("           %.*s\n", n, at);
        at += n + strspn(at + n, " ");
    }
}

int finish(void) {
    om_error e;
    om_catch(&e);
    om_scope_drain();
    if (e.status == OM_OK) return differed ? 1 : 0;
    fprintf(stderr, "%s: %s\n", e.where, e.message);
    return e.status == OM_ERR_UNSUPPORTED ? NO_SUCH_COLUMN : 1;
}

const char what_next[] =
    "Try next:\n"
    "  look at report.html in a browser\n"
    "  ./demo --seed 2                               another start, other bits\n"
    "  build/demo/onemodel inspect digits.onnx       the graph as text\n"
    "  build/demo/onemodel verify digits.onnx        run it on every column and compare\n"
    "  $EDITOR examples/digits_cnn.c                 change the network; tracing follows it\n";
