/* limit_watch.h - detects use above limits that the kernel does not or only nominally enforce.
 *
 * The kernel enforces most limits (cgroup.h). If it cannot, usage may exceed a limit; this module detects that with
 * hysteresis and decides the reaction. Pure: it works on samples only.
 *
 * More than 5 % above the limit in 3 consecutive samples: over, until 3 consecutive samples are within the limit. More
 * than 20 % above an unenforced limit of memory, of the machine or of a GPU (`gpu-memory`), in 5 consecutive samples:
 * kill, because the memory is reserved for others. The same for disk usage, at more than 5 %.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/cgroup/cgroup.h"

enum { LIMIT_WATCH_MAX = 16, LIMIT_NAME_MAX = 64, LIMIT_TEXT_MAX = 256, LIMIT_SAMPLES_MAX = 12 };

/* Usage of one resource: an amount, or an amount per second; cpu in thousandths. */
struct limit_sample {
    const char *resource;
    int64_t used, limit; /* limit 0: none */
    bool enforced;
};

enum limit_act { LIMIT_FINE, LIMIT_REPORT, LIMIT_KILL };

struct limit_verdict {
    enum limit_act act;         /* REPORT: `over` has changed */
    char over[CGROUP_LIST_MAX]; /* comma-separated, sorted */
    char text[LIMIT_TEXT_MAX];  /* KILL: one sentence for users; else "" */
    bool memory;                /* KILL: the resource is the machine's memory */
};

/* State of one instance; initialized with zeros. */
struct limit_watch {
    struct {
        char resource[LIMIT_NAME_MAX];
        int above, below, far; /* consecutive samples */
        bool over;
    } seen[LIMIT_WATCH_MAX];
    size_t seen_len;
    /* last usage, for rates */
    bool looked;
    int64_t at_ns, cpu_ns, io_read_bytes, io_write_bytes;
};

/* Handles one round of samples. A resource without a sample is forgotten. At most LIMIT_WATCH_MAX resources are
 * watched. */
void limit_watch_update(struct limit_watch *w, const struct limit_sample *samples, size_t samples_len,
                        struct limit_verdict *ret);

/* Builds samples from the usage of a cgroup: cpu and io (the larger of reads and writes) as rates since the last call,
 * memory and pids as amounts. `unenforced` as returned by cgroup_make. The first call returns no rates. Texts are
 * constant. Returns the number of samples. */
size_t limit_watch_samples(struct limit_watch *w, const struct cgroup_limits *limits, const char *unenforced,
                           const struct cgroup_usage *usage, int64_t now_ns,
                           struct limit_sample ret[static LIMIT_SAMPLES_MAX]);
