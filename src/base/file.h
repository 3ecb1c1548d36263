/*
 * file.h -- reading a whole file as a buffer, and replacing a file atomically.
 *
 * A file to read must be a regular one: a FIFO would hang, a device never ends. It is mapped read
 * only, or copied when the caller says that it may change (a mapped file that another process cuts
 * ends the program with SIGBUS; no check can prevent that).
 *
 * A file is saved as: a new file with a private name beside it, write, fsync, rename, fsync of the
 * directory. The private file is locked while its writer lives; one whose writer was killed is
 * removed by the next save of the same path. Whatever fails before the rename leaves the old file
 * as it was and removes the private one. A destination that exists and is not a regular file is
 * refused (renaming over /dev/null would replace it); a symbolic link is replaced, not followed.
 *
 * Needs: buffer.h, sink.h, sys.h.  Used by: onnx, format, everything that reads or writes files.
 */
#ifndef OM_BASE_FILE_H
#define OM_BASE_FILE_H

#include "base/buffer.h"
#include "base/sink.h"

/* The bytes of a regular file. OM_ERR_IO names path and reason; NULL then. An empty file gives an
 * empty buffer. */
om_buffer *omi_file_read(const char *path, bool copy);

typedef struct om_save {
    om_sink sink; /* first: an om_save is a sink */
    int fd;       /* -1: not open */
    int held;     /* keeps the private file ours while fd is closed before the rename; -1: none */
    char *temp;
    size_t temp_size;
    const char *path; /* borrowed */
    uint8_t *hold;    /* gathers small writes */
    size_t n_hold;
} om_save;

/* Opens the private file. When this fails nothing is left to clean. path must outlive s. */
om_status omi_save_begin(om_save *s, const char *path);
/* Makes the file appear at path. On failure it is removed, as by omi_save_abort. Either way s is
 * empty afterwards. Only a failing fsync of the directory leaves the new file in place: it is
 * whole, but may not survive a power cut. */
om_status omi_save_commit(om_save *s);
void omi_save_abort(om_save *s);

#endif
