/* replay.h - makes every plan recorded by berth-kube (kube/journal/journal.h) again and compares.
 *
 * From each base on, the cache and the tenants are rebuilt from the recorded inputs by the same code that watches feed,
 * and each plan is made by the same core. Compared are the hashes of the inputs by kind, the instances created by
 * decisions, and the hash of the plan. Where records are missing, plans are counted but not made, until the next base.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct journal;

struct kube_replay_difference {
    uint64_t plan, record;                    /* number since the start of the process; its record */
    int64_t now_ns;                           /* time of the plan */
    uint64_t recorded, replayed;              /* hashes of the plan; equal if only inputs differ */
    const char *input;                        /* first differing input, as a sentence; "": none */
    const json_t *actions, *actions_replayed; /* [[op, workload, ordinal, node, instance, cause, ...], ...] */
};

struct kube_replay_options {
    uint64_t from_plan, to_plan; /* 0: no bound; earlier plans are made but not compared */
    int64_t from_ns, to_ns;      /* bounds of plan times; 0: no bound */
    void (*differs)(void *ctx, const struct kube_replay_difference *d);
    void *ctx;
};

struct kube_replay_result {
    uint64_t records, inputs, bases, plans, different;
    uint64_t skipped; /* plans whose inputs are not available */
    uint64_t gaps;    /* places where records are missing */
};

/* Returns 0 even if there are differences. -EBADMSG for an unreadable record, and for a journal that is not
 * berth-kube's. */
int kube_replay(struct journal *journal, const struct kube_replay_options *options, struct kube_replay_result *ret,
                struct berth_err *err);

/* The command `berth-kube replay DIR`: argv[0] is its name. Returns the exit status: 1 also if something differs. */
int kube_replay_main(int argc, char *const *argv, FILE *out);
