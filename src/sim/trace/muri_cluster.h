/* muri_cluster.h - the cluster that training jobs are placed on at each event: jobs as workloads, and plans of the core.
 *
 * Jobs are known by their place in the trace. Under the product's own policy what runs stays where it is, under all others
 * every plan begins with an empty cluster.
 */
#pragma once

#include <stdbool.h>

#include "sim/protocol/muri.h"

#define INFINITY_S 1e300 /* a time that never comes */

struct muri_cluster;

int muri_cluster_new(const struct muri_options *o, size_t jobs, struct muri_cluster **ret, struct berth_err *err);
void muri_cluster_free(struct muri_cluster *c);
/* The job wants to run for so many seconds more. */
int muri_cluster_put(struct muri_cluster *c, uint32_t at, const struct muri_job *job, double seconds,
                     struct berth_err *err);
void muri_cluster_remove(struct muri_cluster *c, uint32_t at);
int muri_cluster_plan(struct muri_cluster *c, double now_s, struct berth_err *err);
/* By the last plan. */
bool muri_cluster_runs(const struct muri_cluster *c, uint32_t at);

/* Of jobs that all have ended. */
struct muri_result muri_result_of(const struct muri_trace *t, uint64_t events);
