/*
 * container.h -- the file around the sections of format v1 (docs/format.md): header, table,
 * checksums.
 *
 * Models and checkpoints are the same container with different sections. Writing is deterministic:
 * sections follow each other in the order given, with as few zero bytes between as their alignment
 * asks for. Reading checks everything about the container before a section is looked at: sizes,
 * order, gaps, checksums. A checksum finds accidents; what a section says is still not trusted.
 *
 * Needs: base/file, graph/source.h.  Used by: format, nn (checkpoints).
 */
#ifndef OM_FORMAT_CONTAINER_H
#define OM_FORMAT_CONTAINER_H

#include "base/buffer.h"
#include "base/sink.h"
#include "graph/source.h"

#define OM_CONTAINER_MAGIC "OMODEL1" /* with its NUL: 8 bytes */
#define OM_CONTAINER_MAJOR 1
#define OM_CONTAINER_MINOR 0
#define OM_MOST_SECTIONS   64

enum {
    OM_SECTION_CRITICAL = 1, /* a reader that does not know the tag must refuse the file */
    OM_SECTION_PAGE     = 2  /* begins at a multiple of 4096, not only of 64             */
};

/* For writing: bytes at data, or put by emit, which is called twice and must put the same bytes. */
typedef struct om_section {
    char tag[5]; /* four characters and a NUL */
    uint32_t flags;
    const void *data;
    uint64_t bytes;
    void (*emit)(om_sink *to, void *ctx);
    void *ctx;
} om_section;

om_status omi_container_save(const char *path, const om_section *sections, int n);
/* In memory: *data from omi_alloc, to be freed with om_bytes_free. */
om_status omi_container_memory(const om_section *sections, int n, void **data, size_t *bytes);

typedef struct om_container {
    const om_buffer *file; /* borrowed */
    int n;
    om_section sections[OM_MOST_SECTIONS]; /* data points into file */
} om_container;

/* True when the bytes begin as a container of any version. */
bool omi_container_is(const void *data, size_t bytes);
/* Checks file and fills *c. known: tags the caller understands, one string of four characters each;
 * other sections are skipped, or refused when critical. With o->skip_checksum the checksum of DATA
 * is not compared. Raises OM_ERR_MALFORMED, OM_ERR_UNSUPPORTED (version, critical section),
 * OM_ERR_CANCELLED. */
om_status omi_container_open(om_container *c, const om_buffer *file, const om_source *o,
                             const char *known);
/* The section of this tag, or NULL. */
const om_section *omi_container_find(const om_container *c, const char *tag);
/* Where it begins in the file. */
uint64_t omi_container_offset(const om_container *c, const om_section *s);

#endif
