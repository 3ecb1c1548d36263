/*
 * session.c -- times prepared runs of a model for bench/sessions.py: bench_session MODEL.onnx.
 *
 * Answers each line "time" on standard input with seconds per run (the best of three stretches of
 * about 5 ms, in CPU time of the one thread), so that the script can interleave us and others.
 * Inputs must have fixed sizes; they are filled with numbers from -0.5 to 0.5.
 */
#include <onemodel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MAX_INPUTS = 8 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static om_run *run;
static const void *in[MAX_INPUTS];

static void once(void) {
    om_run_call(run, in, NULL);
}

static double best_time(void) {
    once();
    double t = now();
    once();
    double one  = now() - t;
    int reps    = one > 5e-3 ? 1 : (int)(5e-3 / (one + 1e-9)) + 1;
    double best = 1e9;
    for (int s = 0; s < 3; s++) {
        t = now();
        for (int i = 0; i < reps; i++)
            once();
        double d = (now() - t) / reps;
        if (d < best) best = d;
    }
    return best;
}

int main(int argc, char **argv) {
    char line[64];
    om_shape shapes[MAX_INPUTS];
    om_rng g = om_rng_new(1, 3);
    if (argc != 2) return 2;
    om_set_threads(1);
    om_exit_on_error(true);
    om_session *s = om_session_load(
        argv[1], &(om_session_opts){.struct_size = sizeof(om_session_opts), .threads = 1});
    int n = om_session_n_inputs(s);
    for (int i = 0; i < n && i < MAX_INPUTS; i++) {
        om_value_info v;
        om_session_input(s, i, &v);
        shapes[i].rank = v.rank;
        for (int k = 0; k < v.rank; k++)
            shapes[i].dims[k] = v.axes[k].size;
        in[i] = om_data(om_rand(&g, -0.5f, 0.5f, v.rank, shapes[i].dims));
    }
    run = om_session_prepare(s, n, shapes);
    while (fgets(line, sizeof line, stdin)) {
        printf("%.9g\n", best_time());
        fflush(stdout);
    }
    om_run_free(run);
    om_session_free(s);
    return 0;
}
