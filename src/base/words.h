/*
 * words.h -- words that live as long as the process: names and paths of modules, names of custom
 * operators, source files.
 *
 * They end up in records, traces and messages that outlive whoever gave them, and are few and
 * repeated. What is made for each tensor is not a word: names of tensors are counted (tensor.h).
 *
 * Needs: error.h.  Used by: everything.
 */
#ifndef OM_BASE_WORDS_H
#define OM_BASE_WORDS_H

/* The process's copy of s: never freed, outside the counted memory. Equal text gives the equal
 * pointer. NULL and raised when out of memory. */
const char *omi_intern(const char *s);
/* The same, but NULL is all it says. */
const char *omi_intern_quiet(const char *s);

#endif
