/* past_runs.h - how long will it run? By what jobs like it ran for, of those that have ended.
 *
 * The one predictor of run times: the daemon's, which keeps what has ended in documents (predict.h), and that of simulations
 * (sim/trace/predict_berth.c), where a trace says what ends. It is a function of its arguments, without a clock or a heap.
 *
 * Each of the past says what share of its limit it ran for, or for how long where one of the two had no limit. The mean of these
 * is taken: of the job's own kind (its owner's of that name, or, while there are none, all of its owner's) the latest count the
 * most, and far more those of the same size and limit; everybody's latest count half as much as the last of them. Half as long
 * again is predicted, so that most end in time, but less than the limit: only where people ask for as long as they need is the limit itself the
 * prediction.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { PASTS_MAX = 64 };

struct past {
    int64_t run_ns, limit_ns; /* limit 0: none */
    int64_t size;             /* past_size */
};

/* The last PASTS_MAX of them; all zeroes: none. */
struct pasts {
    uint64_t len; /* all that ever were */
    struct past at[PASTS_MAX];
};

void pasts_add(struct pasts *p, const struct past *x);

/* Of all tasks that run together: by their GPUs, or, without any, by their cores. */
int64_t past_size(uint32_t tasks, uint32_t gpus, int64_t cpu_milli);
/* Runs of one name count for their owner as a whole, and for everybody, too: the first few, then every so many, so that one
 * large array does not outvote all else. `before`: how many of the name there were. */
bool past_counts(uint64_t before);

/* How long a job with this limit (0: none) and size will run; its limit, if it needs all of that; 0: nothing is known. `own` and
 * `all` may be NULL. */
int64_t past_predict(const struct pasts *own, const struct pasts *all, int64_t limit_ns, int64_t size);
/* Do these two predictions of a job differ by a quarter or more, or does only one say that it needs all of its limit? */
bool past_moved(int64_t was_ns, int64_t is_ns, int64_t limit_ns);
