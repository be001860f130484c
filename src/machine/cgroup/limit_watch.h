/* limit_watch.h - does an instance use more than it may, although it should not be able to?
 *
 * The kernel keeps limits (cgroup.h). Where it cannot, or where it says it does and does not, use goes above a limit: that is
 * noticed here, with hysteresis, and it is said what to do. A function of samples: it reads nothing and does nothing.
 *
 * Above by more than 5 % at 3 looks in a row: over, until it is not above at 3 looks in a row. Memory, of the machine or of a
 * GPU (`gpu-memory`), that nobody enforces and that is above by more than 20 % at 5 looks in a row: to be killed, as it would
 * take what was promised to others. So is what takes too much of the disk, by more than 5 %.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "machine/cgroup/cgroup.h"

enum { LIMIT_WATCH_MAX = 16, LIMIT_NAME_MAX = 64, LIMIT_TEXT_MAX = 256, LIMIT_SAMPLES_MAX = 12 };

/* What is used of one resource: an amount, or an amount a second; cpu in thousandths. */
struct limit_sample {
    const char *resource;
    int64_t used, limit; /* limit 0: none */
    bool enforced;
};

enum limit_act { LIMIT_FINE, LIMIT_REPORT, LIMIT_KILL };

struct limit_verdict {
    enum limit_act act;         /* REPORT: `over` has changed, or what it holds was not enforced before */
    char over[CGROUP_LIST_MAX]; /* comma-separated, sorted */
    char text[LIMIT_TEXT_MAX];  /* of KILL: one sentence for people; "" else */
    bool memory;                /* of KILL: the resource is the machine's memory */
};

/* What is remembered of one instance; begins as zeroes. */
struct limit_watch {
    struct {
        char resource[LIMIT_NAME_MAX];
        int above, below, far; /* looks in a row */
        bool over;
    } seen[LIMIT_WATCH_MAX];
    size_t seen_len;
    /* of the last usage, for rates */
    bool looked;
    int64_t at_ns, cpu_ns, io_read_bytes, io_write_bytes;
};

/* One look. A resource that has no sample any more is forgotten. Resources beyond LIMIT_WATCH_MAX are not watched. */
void limit_watch_look(struct limit_watch *w, const struct limit_sample *samples, size_t samples_len,
                      struct limit_verdict *ret);

/* Samples of what a cgroup counts: cpu and io (the larger of read and written) as rates since the last call, memory and pids
 * as they are. `unenforced` as cgroup_make gave it. At the first call there are no rates. Texts are constant. Returns how
 * many. */
size_t limit_watch_samples(struct limit_watch *w, const struct cgroup_limits *limits, const char *unenforced,
                           const struct cgroup_usage *usage, int64_t now_ns,
                           struct limit_sample ret[static LIMIT_SAMPLES_MAX]);
