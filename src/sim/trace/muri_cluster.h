/* muri_cluster.h - the cluster of the Muri protocol: training jobs are workloads, which the core places at each event.
 *
 * A job is identified by its index in the trace. With the product's own policy running jobs keep their place; with all
 * others every plan starts with an empty cluster.
 */
#pragma once

#include <stdbool.h>

#include "sim/protocol/muri.h"

#define INFINITY_S 1e300 /* a time that is never reached */

struct muri_cluster;

int muri_cluster_new(const struct muri_options *o, size_t jobs, struct muri_cluster **ret, struct berth_err *err);
void muri_cluster_free(struct muri_cluster *c);
/* Adds or updates a job that needs this many more seconds. */
int muri_cluster_put(struct muri_cluster *c, uint32_t at, const struct muri_job *job, double seconds,
                     struct berth_err *err);
void muri_cluster_remove(struct muri_cluster *c, uint32_t at);
int muri_cluster_plan(struct muri_cluster *c, double now_s, struct berth_err *err);
/* Returns whether the last plan gave the job a place. */
bool muri_cluster_runs(const struct muri_cluster *c, uint32_t at);

/* Computes the result after all jobs have ended. */
struct muri_result muri_result_of(const struct muri_trace *t, uint64_t events);
