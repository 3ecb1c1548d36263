/*
 * digits_cnn.c -- the whole way on real data: a small CNN is trained in C, traced, saved, and run
 * with the same bits from two file formats, at three batch sizes, on every kernel column.
 *
 * Every fifth image is for testing and is loaded by other code (digits_runs.c). Settings were
 * chosen on a fifth of the training images, which --validate leaves out and measures; it never
 * reads a test image.
 */
#include "digits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the model ------------------------------------------------------------------------------- */

typedef struct cnn {
    om_module *m, *c1, *b1, *c2, *b2, *drop, *fc;
} cnn;

static cnn cnn_new(void) {
    cnn n;
    n.m    = om_nn_module();
    n.c1   = om_nn_add(n.m, "c1", om_nn_conv2d(1, 16, 3, 3, OM_OPTS(conv2d, .padding = {1, 1})));
    n.b1   = om_nn_add(n.m, "b1", om_nn_batch_norm2d(16, NULL));
    n.c2   = om_nn_add(n.m, "c2", om_nn_conv2d(16, 32, 3, 3, OM_OPTS(conv2d, .padding = {1, 1})));
    n.b2   = om_nn_add(n.m, "b2", om_nn_batch_norm2d(32, NULL));
    n.drop = om_nn_add(n.m, "drop", om_nn_dropout(0.5f));
    n.fc   = om_nn_add(n.m, "fc", om_nn_linear(32 * 4 * 4, 10, NULL));
    return n;
}

static om_tensor *cnn_forward(const cnn *n, om_tensor *x) {
    x = om_relu(om_forward(n->b1, om_forward(n->c1, x)));
    x = om_relu(om_forward(n->b2, om_forward(n->c2, x)));
    x = om_max_pool2d(x, 2, 2, NULL);
    return om_forward(n->fc, om_forward(n->drop, om_flatten(x, 1)));
}

/* ---- training ---------------------------------------------------------------------------------
 */

enum { BATCH = 32, EPOCHS = 20 };
typedef enum split { TRAIN, FIT, VALIDATE, FIRST_WRITERS } split;

static bool belongs(int64_t i, split s) {
    if (s == FIRST_WRITERS) return i < DIGITS_FIRST_WRITERS;
    if (i % 5 == 0) return false; /* for testing */
    return s == TRAIN || (i % 5 == 1) == (s == VALIDATE);
}

/* Images [n,1,8,8] of 0 to 1 and labels [n] of a split. */
static void load(const char *path, split s, om_tensor **x, om_tensor **y) {
    om_tensor *file      = om_npy_load(path);
    const uint8_t *bytes = om_data(file);
    int64_t total = om_dim(file, 0), n = 0;
    float *pixels   = malloc((size_t)total * 64 * sizeof *pixels);
    int64_t *labels = malloc((size_t)total * sizeof *labels);
    for (int64_t i = 0; bytes && pixels && labels && i < total; i++) {
        if (!belongs(i, s)) continue;
        for (int k = 0; k < 64; k++)
            pixels[64 * n + k] = (float)bytes[65 * i + k] / 16.0f;
        labels[n++] = bytes[65 * i + 64];
    }
    *x = om_from(pixels, OM_F32, OM_DIMS(n, 1, 8, 8));
    *y = om_from(labels, OM_I64, OM_DIMS(n));
    free(pixels);
    free(labels);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Trains a new network. loss (may be NULL) gets one value per step and *steps their number. */
static cnn train(const options *o, split s, const char *what, float *loss, int *steps) {
    om_seed((uint64_t)o->seed);
    cnn n          = cnn_new();
    om_scope outer = om_scope_begin();
    om_tensor *x, *y, *batch[2];
    load(o->data, s, &x, &y);
    om_loader *l  = om_loader_new(2, (om_tensor *[]){x, y}, BATCH,
                                  OM_OPTS(loader, .shuffle = true, .drop_last = true));
    om_optim *opt = om_adam(n.m, 2e-3, NULL);
    om_schedule_cosine(opt, o->epochs * om_loader_n_batches(l), 0, 0.0);
    double start = seconds();
    for (int e = 0, t = 0; e < o->epochs && !om_pending(); e++) {
        double sum = 0;
        OM_BATCHES(l, batch) {
            om_tensor *z = om_cross_entropy(cnn_forward(&n, batch[0]), batch[1]);
            om_zero_grad(opt);
            om_backward(z);
            om_step(opt);
            sum += (double)om_item_f32(z);
            if (loss) loss[t] = om_item_f32(z);
            t++;
        }
        if (steps) *steps = (int)om_optim_steps(opt);
        progress(what, e + 1, o->epochs, sum / (double)om_loader_n_batches(l), seconds() - start);
    }
    om_optim_free(opt);
    om_loader_free(l);
    om_scope_end(outer);
    om_nn_train(n.m, false);
    return n;
}

/* Logits of all images, eagerly. */
static om_tensor *logits_of(const cnn *n, om_tensor *x) {
    bool before  = om_no_grad_begin();
    om_tensor *y = cnn_forward(n, x);
    om_no_grad_end(before);
    return y;
}

/* ---- tracing ----------------------------------------------------------------------------------
 */

static om_graph *trace(const cnn *n) {
    om_tracer *tr = om_trace_begin(NULL);
    om_trace_params(tr, n->m);
    om_tensor *x =
        om_trace_input(tr, "image", om_zeros(OM_F32, OM_DIMS(3, 1, 8, 8)), OM_AXES("batch"));
    om_trace_output(tr, "logits", cnn_forward(n, x));
    return om_trace_finish(tr);
}

/* A model that decides by a value: which way it goes would be frozen in the file, so it is refused.
 */
static void show_refusal(const cnn *n) {
    om_tracer *tr = om_trace_begin(NULL);
    om_tensor *x =
        om_trace_input(tr, "image", om_zeros(OM_F32, OM_DIMS(3, 1, 8, 8)), OM_AXES("batch"));
    om_tensor *ink = om_mean_all(x);
    if (om_item_f32(ink) > 0.5f) /* refused here */
        x = om_rsub_scalar(x, 1.0);
    om_trace_output(tr, "logits", cnn_forward(n, x));
    om_trace_abort(tr);
    om_error e;
    om_catch(&e);
    print_refusal(&e);
}

/* ---- the demo ---------------------------------------------------------------------------------
 */

static void demo(const options *o) {
    static float loss[100000];
    report r     = {.seed = o->seed, .loss = loss};
    char sha[65] = "", hash[65] = "";
    om_tensor *x, *y;
    double start = seconds();
    cnn n        = train(o, TRAIN, "train", loss, &r.n_loss);
    r.seconds    = seconds() - start;
    r.parameters = om_nn_n_parameters(n.m);
    cnn first    = train(o, FIRST_WRITERS, "writers", NULL, NULL);
    digits_writers(o->data, &x, &y);
    r.writers = digits_accuracy(logits_of(&first, x), y);
    digits_test(o->data, &x, &y);
    om_tensor *eager = logits_of(&n, x);
    om_hash(eager, hash);
    printf(
        "accuracy   %.2f %% of %d test images (every fifth); %.2f %% of the last %d, by other writers,\n"
        "           after training on the first %d only\n",
        100 * digits_accuracy(eager, y), (int)om_dim(x, 0), 100 * r.writers,
        DIGITS_TOTAL - DIGITS_FIRST_WRITERS, DIGITS_FIRST_WRITERS);
    om_graph *g = trace(&n);
    om_graph_save_onnx(g, in_dir(o, "digits.onnx"), NULL);
    om_graph_save(g, in_dir(o, "digits.om"));
    if (om_pending()) return;
    digits_sha256(in_dir(o, "digits.onnx"), sha);
    printf("traced     %d nodes -> digits.onnx, digits.om\nsha256     %s  digits.onnx\n",
           om_graph_n_nodes(g), sha);
    r.runs = digits_run_everywhere(o, hash);
    show_refusal(&n);
    r.n      = (int)om_dim(x, 0);
    r.pixels = om_data(x), r.labels = om_data(y), r.logits = om_data(eager);
    r.graph = g, r.sha256 = sha, r.hash = hash;
    if (!om_pending() && report_write(&r, in_dir(o, "report.html")) == 0)
        printf("wrote      %s\n\n%s", in_dir(o, "report.html"), what_next);
    om_graph_release(g);
    om_nn_free(first.m);
    om_nn_free(n.m);
}

static void validate(const options *o) {
    om_tensor *x, *y;
    cnn n = train(o, FIT, "fit", NULL, NULL);
    load(o->data, VALIDATE, &x, &y);
    printf("validation %.2f %% of %d training images left out\n",
           100 * digits_accuracy(logits_of(&n, x), y), (int)om_dim(x, 0));
    om_nn_free(n.m);
}

int main(int argc, char **argv) {
    options o = read_options(argc, argv, EPOCHS);
    if (om_config_from_env() != OM_OK)
        return o.hash && om_pending() == OM_ERR_UNSUPPORTED ? NO_SUCH_COLUMN : finish();
    if (o.hash)
        digits_hash_runs(&o);
    else if (o.validate)
        validate(&o);
    else
        demo(&o);
    return finish();
}
