/*
 * report.h -- report.html of the digits example: one file, no scripts, nothing loaded from
 * elsewhere.
 */
#ifndef EXAMPLES_REPORT_H
#define EXAMPLES_REPORT_H

#include <onemodel.h>

typedef struct report {
    int seed;
    const float *loss; /* one per step */
    int n_loss;
    int n;                 /* test images */
    const float *pixels;   /* [n,64], 0 to 1    */
    const int64_t *labels; /* [n]               */
    const float *logits;   /* [n,10]            */
    double writers;        /* accuracy on other writers, 0 to 1 */
    int64_t parameters;    /* number of weights                 */
    double seconds;        /* of training                       */
    const om_graph *graph;
    const char *sha256; /* of digits.onnx                    */
    const char *hash;   /* of the logits, equal on every run */
    int runs;           /* how many runs gave it             */
} report;

/* 0 on success; otherwise prints why. */
int report_write(const report *r, const char *path);

#endif
