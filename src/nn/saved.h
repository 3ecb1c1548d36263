/*
 * saved.h (internal) -- tensors and numbers in a file: what weights files and checkpoints share.
 *
 * The file is the container of format v1 (format/container.h) with the sections
 *
 *   STAT  the tensors: u32 count; each: text path, u32 flags (1: buffer), u32 dtype (ONNX number),
 *         u32 rank, i64 dims[rank], u64 offset and u64 bytes in DATA
 *   DATA  their elements, and the arrays of an optimizer, each at a multiple of 64
 *   TRAI, OPTM, RNGS   training state, written by optim/checkpoint.c
 *
 * Numbers are little-endian; text is u32 length and bytes. Readers trust nothing: every read is
 * bounded and a section must be used up exactly.
 *
 * Needs: format, module.h.  Used by: nn, optim.
 */
#ifndef OM_NN_SAVED_H
#define OM_NN_SAVED_H

#include "base/str.h"
#include "format/container.h"
#include "nn/module.h"

/* ---- writing: bytes are gathered in om_str, arrays only referred to ---------------------------
 */

void omi_out_u32(om_str *s, uint32_t v);
void omi_out_u64(om_str *s, uint64_t v);
void omi_out_f64(om_str *s, double v);
void omi_out_text(om_str *s, const char *text);

typedef struct om_saved_array {
    const void *p;
    uint64_t bytes, offset;
} om_saved_array;
typedef struct om_saved_data {
    OM_VEC(om_saved_array) v;
    uint64_t bytes;
} om_saved_data;
/* Places an array in DATA. False and raised. p must live until the file is written. */
bool omi_data_add(om_saved_data *d, const void *p, uint64_t bytes, uint64_t *offset);
/* STAT of a list; strided tensors are packed into the current scope. */
om_status omi_out_state(om_str *stat, om_saved_data *d, const om_state_list *list);
/* The section DATA. */
om_section omi_data_section(om_saved_data *d);
om_section omi_text_section(const char *tag, uint32_t flags, const om_str *s);

/* ---- reading ------------------------------------------------------------------------------------
 */

typedef struct om_saved_file {
    om_buffer *file; /* NULL when not open */
    char label[100];
    om_container container;
    const om_section *data;
} om_saved_file;
/* Raises OM_ERR_IO, OM_ERR_MALFORMED, OM_ERR_ARG (a model file: no tensors by path). */
om_status omi_saved_open(om_saved_file *f, const char *path);
void omi_saved_close(om_saved_file *f);

/* A bounded walk through a section. After a read past its end, bad stays set and reads give 0. */
typedef struct om_cursor {
    const uint8_t *p;
    uint64_t n, at;
    bool bad;
} om_cursor;
om_cursor omi_cursor(const om_section *s);
uint32_t omi_in_u32(om_cursor *c);
uint64_t omi_in_u64(om_cursor *c);
int64_t omi_in_i64(om_cursor *c); /* negative is bad */
double omi_in_f64(om_cursor *c);
const char *omi_in_text(om_cursor *c, uint32_t *n); /* NULL when bad; no NUL at the end */
/* OM_ERR_MALFORMED unless everything was read and nothing past it. */
om_status omi_cursor_end(const om_saved_file *f, const om_cursor *c, const char *tag);
om_status omi_saved_fail(const om_saved_file *f, const char *fmt, ...) OM_PRINTF(2, 3) OM_COLD;
/* bytes of DATA at offset, or NULL and raised. */
const void *omi_saved_array(const om_saved_file *f, uint64_t offset, uint64_t bytes);

/* The tensors of STAT, in the current scope, over the file's bytes. Free with omi_saved_list_free.
 */
typedef struct om_saved_list {
    om_arena arena;
    OM_VEC(om_named_tensor) v;
} om_saved_list;
om_status omi_saved_tensors(const om_saved_file *f, om_saved_list *out);
void omi_saved_list_free(om_saved_list *l);

#endif
