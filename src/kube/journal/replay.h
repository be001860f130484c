/* replay.h - every plan that berth-kube recorded (kube/journal/journal.h) made again, and compared.
 *
 * From each base on the projection and the tenants are made again of the recorded inputs, by the same code that watches feed, and each plan by the same
 * core. Compared are the hashes of the inputs, by their kind, the instances that came of what was decided, and the hash of the plan. Where records are
 * missing, plans are counted and not made, up to the next base.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"

struct journal;

struct kube_replay_difference {
    uint64_t plan, record;                    /* number since the start of the process; the record it is in */
    int64_t now_ns;                           /* the moment it was made for */
    uint64_t recorded, replayed;              /* hashes of the plan; the same where only inputs differ */
    const char *input;                        /* the first that differs, a sentence; "": all are the same */
    const json_t *actions, *actions_replayed; /* [[op, workload, ordinal, node, instance, cause, ...], ...] */
};

struct kube_replay_options {
    uint64_t from_plan, to_plan; /* 0: no bound; what is before is made, not compared */
    int64_t from_ns, to_ns;      /* of the moments of plans; 0: no bound */
    void (*differs)(void *ctx, const struct kube_replay_difference *d);
    void *ctx;
};

struct kube_replay_result {
    uint64_t records, inputs, bases, plans, different;
    uint64_t skipped; /* plans whose inputs are not to be had */
    uint64_t gaps;    /* places where records are missing */
};

/* 0 also when there are differences. -EBADMSG for a record that cannot be read, and for a journal that is not berth-kube's. */
int kube_replay(struct journal *journal, const struct kube_replay_options *options, struct kube_replay_result *ret,
                struct berth_err *err);

/* `berth-kube replay DIR`: argv[0] is its name. The status of the process: 1 also where something differs. */
int kube_replay_main(int argc, char *const *argv, FILE *out);
