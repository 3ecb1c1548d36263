/*
 * container.c -- see container.h and docs/format.md.
 */
#include "format/container.h"

#include <string.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/utf8.h"

#define HEADER    64
#define ROW       32
#define ORDER     0x01020304u /* reads 0x04030201 on a machine of the other byte order */
#define AT_HEADER 56          /* the header's own checksum */
#define PIECE     ((size_t)16 << 20)

static uint64_t aligned(uint64_t at, uint32_t flags) {
    uint64_t a = flags & OM_SECTION_PAGE ? 4096 : 64;
    return (at + a - 1) & ~(a - 1);
}

/* ---- writing -----------------------------------------------------------------------------------
 */

static void put_section(om_sink *to, const om_section *s) {
    if (s->emit)
        s->emit(to, s->ctx);
    else
        omi_put(to, s->data, (size_t)s->bytes);
}

/* The header and the table; returns the size of the file. */
static uint64_t make_head(const om_section *sections, int n, uint8_t *head) {
    uint64_t at = HEADER + ROW * (uint64_t)n;
    memset(head, 0, HEADER);
    for (int i = 0; i < n; i++) {
        const om_section *s = &sections[i];
        uint8_t *row        = head + HEADER + ROW * i;
        om_xxh64 h;
        omi_xxh64_init(&h, 0);
        put_section(&h.sink, s);
        at = aligned(at, s->flags);
        memcpy(row, s->tag, 4);
        omi_store_u32(row + 4, s->flags);
        omi_store_u64(row + 8, at);
        omi_store_u64(row + 16, s->bytes);
        omi_store_u64(row + 24, omi_xxh64_end(&h));
        at += s->bytes;
    }
    memcpy(head, OM_CONTAINER_MAGIC, 8);
    omi_store_u16(head + 8, OM_CONTAINER_MAJOR);
    omi_store_u16(head + 10, OM_CONTAINER_MINOR);
    omi_store_u32(head + 12, ORDER);
    omi_store_u64(head + 16, at);
    omi_store_u32(head + 24, (uint32_t)n);
    omi_store_u64(head + 32, omi_xxh64(head + HEADER, (size_t)ROW * (size_t)n, 0));
    omi_store_u64(head + AT_HEADER, omi_xxh64(head, AT_HEADER, 0));
    return at;
}

static void put_all(om_sink *to, const om_section *sections, int n, const uint8_t *head) {
    omi_put(to, head, HEADER + ROW * (size_t)n);
    for (int i = 0; i < n; i++) {
        omi_put_zero(to, (size_t)(omi_load_u64(head + HEADER + ROW * i + 8) - to->n));
        put_section(to, &sections[i]);
    }
}

om_status omi_container_save(const char *path, const om_section *sections, int n) {
    uint8_t head[HEADER + ROW * OM_MOST_SECTIONS];
    om_save save;
    if (n > OM_MOST_SECTIONS)
        return omi_fail(OM_ERR_LIMIT, "more than %d sections", OM_MOST_SECTIONS);
    make_head(sections, n, head);
    OM_TRY(omi_save_begin(&save, path));
    put_all(&save.sink, sections, n, head);
    return omi_save_commit(&save);
}

om_status omi_container_memory(const om_section *sections, int n, void **data, size_t *bytes) {
    uint8_t head[HEADER + ROW * OM_MOST_SECTIONS];
    if (n > OM_MOST_SECTIONS)
        return omi_fail(OM_ERR_LIMIT, "more than %d sections", OM_MOST_SECTIONS);
    uint64_t total = make_head(sections, n, head);
    void *p        = total <= SIZE_MAX / 2 ? omi_alloc((size_t)total) : NULL;
    if (!p) return omi_failed() ? om_pending() : omi_fail_nomem(SIZE_MAX);
    om_mem_sink to = omi_mem_sink(p, (size_t)total);
    put_all(&to.sink, sections, n, head);
    if (to.sink.status != OM_OK) {
        omi_free(p, (size_t)total);
        return to.sink.status;
    }
    *data  = p;
    *bytes = (size_t)total;
    return OM_OK;
}

/* ---- reading -----------------------------------------------------------------------------------
 */

bool omi_container_is(const void *data, size_t bytes) {
    return bytes >= 8 && memcmp(data, OM_CONTAINER_MAGIC, 8) == 0;
}

static om_status check_header(const om_source *o, const uint8_t *p, uint64_t bytes) {
    if (bytes < HEADER)
        return omi_source_fail(o, OM_ERR_MALFORMED, bytes, "the file ends within its header");
    uint32_t order = omi_load_u32(p + 12), major = p[8] | (uint32_t)p[9] << 8;
    if (order == 0x04030201u)
        return omi_source_fail(o, OM_ERR_UNSUPPORTED, 12, "the file was written big-endian");
    if (major != OM_CONTAINER_MAJOR)
        return omi_source_fail(o, OM_ERR_UNSUPPORTED, 8,
                               "the file has format version %u.%u; this library reads %d.x",
                               (unsigned)major, (unsigned)(p[10] | p[11] << 8), OM_CONTAINER_MAJOR);
    if (omi_load_u64(p + AT_HEADER) != omi_xxh64(p, AT_HEADER, 0))
        return omi_source_fail(o, OM_ERR_MALFORMED, AT_HEADER,
                               "the checksum of the header is wrong; the file is damaged");
    if (order != ORDER || omi_load_u64(p + 40) || omi_load_u64(p + 48))
        return omi_source_fail(o, OM_ERR_MALFORMED, 12, "a fixed field of the header is wrong");
    if (omi_load_u32(p + 28) != 0)
        return omi_source_fail(o, OM_ERR_UNSUPPORTED, 28, "the file has unknown flags");
    if (omi_load_u64(p + 16) != bytes)
        return omi_source_fail(o, OM_ERR_MALFORMED, 16,
                               "the file should have %llu bytes and has %llu; it was cut or grew",
                               (unsigned long long)omi_load_u64(p + 16), (unsigned long long)bytes);
    uint32_t n = omi_load_u32(p + 24);
    if (n > OM_MOST_SECTIONS || n > (bytes - HEADER) / ROW)
        return omi_source_fail(o, OM_ERR_MALFORMED, 24, "the file cannot have %u sections",
                               (unsigned)n);
    if (omi_load_u64(p + 32) != omi_xxh64(p + HEADER, (size_t)ROW * n, 0))
        return omi_source_fail(o, OM_ERR_MALFORMED, 32,
                               "the checksum of the section table is wrong; the file is damaged");
    return OM_OK;
}

static om_status check_zero(const om_source *o, const uint8_t *p, uint64_t from, uint64_t to) {
    for (; from < to; from++)
        if (p[from])
            return omi_source_fail(o, OM_ERR_MALFORMED, from, "a gap between sections is not zero");
    return OM_OK;
}

/* XXH64 of a section, stopping when asked to. */
static om_status check_sum(const om_source *o, const om_section *s, uint64_t at, uint64_t sum) {
    om_xxh64 h;
    omi_xxh64_init(&h, 0);
    for (uint64_t i = 0; i < s->bytes; i += PIECE) {
        OM_TRY(omi_source_check(o));
        uint64_t left = s->bytes - i;
        omi_xxh64_add(&h, (const uint8_t *)s->data + i, left < PIECE ? (size_t)left : PIECE);
    }
    if (omi_xxh64_end(&h) != sum)
        return omi_source_fail(o, OM_ERR_MALFORMED, at,
                               "the checksum of section %s is wrong; the file is damaged", s->tag);
    return OM_OK;
}

static bool tag_known(const char *known, const char *tag) {
    for (; *known; known += 4)
        if (memcmp(known, tag, 4) == 0) return true;
    return false;
}

/* Row i of the table; *at is where the section before it ended. */
static om_status open_section(om_container *c, const om_source *o, const char *known, int i,
                              uint64_t *at) {
    const uint8_t *p = c->file->data, *row = p + HEADER + ROW * i;
    om_section *s  = &c->sections[i];
    uint64_t where = (uint64_t)(row - p), offset = omi_load_u64(row + 8), bytes = c->file->bytes;
    *s = (om_section){.flags = omi_load_u32(row + 4), .bytes = omi_load_u64(row + 16)};
    memcpy(s->tag, row, 4);
    for (int k = 0; k < 4; k++)
        if (s->tag[k] < 'A' || s->tag[k] > 'Z')
            return omi_source_fail(o, OM_ERR_MALFORMED, where, "a section has no readable tag");
    if (s->flags & ~(uint32_t)(OM_SECTION_CRITICAL | OM_SECTION_PAGE))
        return omi_source_fail(o, OM_ERR_UNSUPPORTED, where, "section %s has unknown flags",
                               s->tag);
    if (offset != aligned(*at, s->flags))
        return omi_source_fail(o, OM_ERR_MALFORMED, where,
                               "section %s does not follow the one before", s->tag);
    if (offset > bytes || s->bytes > bytes - offset)
        return omi_source_fail(o, OM_ERR_MALFORMED, where, "section %s reaches past the end",
                               s->tag);
    for (int k = 0; k < i; k++)
        if (memcmp(c->sections[k].tag, s->tag, 4) == 0)
            return omi_source_fail(o, OM_ERR_MALFORMED, where, "section %s is there twice", s->tag);
    if (memcmp(s->tag, "STAT", 4) == 0 && !tag_known(known, s->tag))
        return omi_source_fail(
            o, OM_ERR_MALFORMED, where,
            "the file holds weights or a checkpoint and no graph; om_nn_load and om_checkpoint_load "
            "read it");
    if ((s->flags & OM_SECTION_CRITICAL) && !tag_known(known, s->tag))
        return omi_source_fail(o, OM_ERR_UNSUPPORTED, where,
                               "section %s is required to understand the file and not known here",
                               s->tag);
    s->data = p + offset;
    OM_TRY(check_zero(o, p, *at, offset));
    *at = offset + s->bytes;
    if (o->skip_checksum && memcmp(s->tag, "DATA", 4) == 0) return OM_OK;
    return check_sum(o, s, offset, omi_load_u64(row + 24));
}

om_status omi_container_open(om_container *c, const om_buffer *file, const om_source *o,
                             const char *known) {
    const uint8_t *p = file->data;
    *c               = (om_container){.file = file};
    if (!omi_container_is(p, file->bytes))
        return omi_source_fail(o, OM_ERR_MALFORMED, 0, "this is no OneModel file");
    OM_TRY(check_header(o, p, file->bytes));
    int n       = (int)omi_load_u32(p + 24);
    uint64_t at = HEADER + ROW * (uint64_t)n;
    for (; c->n < n; c->n++)
        OM_TRY(open_section(c, o, known, c->n, &at));
    if (at != file->bytes)
        return omi_source_fail(o, OM_ERR_MALFORMED, at, "there are bytes behind the last section");
    return OM_OK;
}

const om_section *omi_container_find(const om_container *c, const char *tag) {
    for (int i = 0; i < c->n; i++)
        if (memcmp(c->sections[i].tag, tag, 4) == 0) return &c->sections[i];
    return NULL;
}

uint64_t omi_container_offset(const om_container *c, const om_section *s) {
    return (uint64_t)((const uint8_t *)s->data - (const uint8_t *)c->file->data);
}
