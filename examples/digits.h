/*
 * digits.h -- what the parts of the digits example share: options, the test set, the runs in Exact.
 */
#ifndef EXAMPLES_DIGITS_H
#define EXAMPLES_DIGITS_H

#include <onemodel.h>

#include "report.h"

/* The last images of the file are by writers that the first ones are not by. */
enum { DIGITS_TOTAL = 1797, DIGITS_FIRST_WRITERS = 1437 };

typedef struct options {
    int seed, epochs;
    bool validate; /* measure on training images left out, for choosing settings */
    bool hash;     /* only run the saved files and print hashes: one column each */
    const char *data, *dir, *self;
} options;
options read_options(int argc, char **argv, int epochs);
const char *in_dir(const options *o,
                   const char *name); /* path of an output, valid for four calls */
void progress(const char *what, int epoch, int epochs, double loss, double seconds);
/* Prints the message of a refused trace; anything else raises the exit status. */
void print_refusal(const om_error *e);
/* Prints the pending error, if any. Exit status. */
int finish(void);

/* Test images [n,1,8,8] and labels [n]: every fifth image; the last ones of the file.   @scoped */
void digits_test(const char *path, om_tensor **x, om_tensor **y);
void digits_writers(const char *path, om_tensor **x, om_tensor **y);
double digits_accuracy(om_tensor *logits, om_tensor *labels); /* 0 to 1 */
void digits_sha256(const char *path, char hex[65]);

/* Runs digits.onnx and digits.om in Exact on all test images, 1, 7 and all at a time, and prints a
 * line per run: file, batch, hash of all logits. */
void digits_hash_runs(const options *o);
/* The same in a process per kernel column and number of threads, because a process uses one column.
 * Returns how many runs gave the hash want; raises the exit status if any did not. */
int digits_run_everywhere(const options *o, const char *want);

/* Exit status of --hash where the machine lacks the column asked for. */
enum { NO_SUCH_COLUMN = 3 };

extern const char what_next[];

#endif
