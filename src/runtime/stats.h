/*
 * stats.h (internal) -- what tests may know of a session's cache.
 */
#ifndef OM_RUNTIME_STATS_H
#define OM_RUNTIME_STATS_H

#include "onemodel/session.h"

typedef struct om_cache_stats {
    uint32_t plans;
    uint64_t builds, evictions;
} om_cache_stats;
void omi_session_stats(om_session *s, om_cache_stats *out);

#endif
