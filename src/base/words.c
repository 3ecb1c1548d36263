/*
 * words.c -- see words.h: a chained table under a lock, as large as what it holds.
 */
#include "base/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/lock.h"

typedef struct word {
    struct word *next;
    uint32_t hash;
    char text[];
} word;

static word *first_words[1024];
static word **words       = first_words;
static size_t places      = OM_COUNT(first_words), n_words;
static om_lock words_lock = OM_LOCK(OM_RANK_WORDS, NULL, NULL);

/* Four times the places, once there are two words for each. Without memory it stays as it is. */
static void words_grow(void) {
    size_t n   = places * 4;
    word **now = n_words / 2 < places ? NULL : calloc(n, sizeof(word *));
    if (!now) return;
    for (size_t i = 0; i < places; i++)
        for (word *w = words[i], *next; w; w = next) {
            next                   = w->next;
            w->next                = now[w->hash & (n - 1)];
            now[w->hash & (n - 1)] = w;
        }
    if (words != first_words) free(words);
    words  = now;
    places = n;
}

const char *omi_intern_quiet(const char *s) {
    uint32_t h = 2166136261u;
    for (const char *p = s; *p; p++)
        h = (h ^ (unsigned char)*p) * 16777619u;
    omi_lock(&words_lock);
    word *w = words[h & (places - 1)];
    while (w && (w->hash != h || strcmp(w->text, s) != 0))
        w = w->next;
    if (!w) {
        // Never freed and shared by every thread, so it does not belong to the caller's allocator.
        size_t n = strlen(s) + 1;
        w        = malloc(sizeof *w + n);
        if (w) {
            words_grow();
            w->hash = h;
            memcpy(w->text, s, n);
            w->next                 = words[h & (places - 1)];
            words[h & (places - 1)] = w;
            n_words++;
        }
    }
    omi_unlock(&words_lock);
    return w ? w->text : NULL;
}

const char *omi_intern(const char *s) {
    const char *w = omi_intern_quiet(s);
    if (!w) omi_fail_nomem(strlen(s));
    return w;
}
