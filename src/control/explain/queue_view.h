/* queue_view.h - the waiting workloads in order, with their start estimates.
 *
 * Read from a forecast (forecast.h), so every answer contains the revision and the time of the forecast. Of workloads
 * that the caller may not see, the answer contains the position and as much of the owner as holder_show permits.
 */
#pragma once

#include "control/explain/forecast.h"

/* "by-right", "borrowed", "spare" */
const char *entitlement_name(enum berth_entitlement e);

/* Adds the standing of a waiting workload: position, tier, queue, key, start. `guess`: the start depends on a guessed
 * run time. */
void queue_position_show(const struct berth_queue_position *s, bool guess, json_t *to);
/* Returns the factors of a standing: [{"name", "text", "value", "weight", "product"}]. A new reference. */
json_t *factors_json(const struct berth_queue_position *s);
/* Returns the terms of the key: [{"name", "text", "value", "weight", "product"}]. A new reference. */
json_t *terms_json(const struct berth_queue_position *s);
/* Returns [{"reason", "what", "nodes", "only", "text"}]. A new reference. */
json_t *reasons_json(const struct berth_pending *p);
/* Returns the requests of one pod, and the number of pods. A new reference. */
json_t *requests_json(const struct object *work);
/* Returns one row of the queue: pending i of a plan. A new reference; NULL: the workload has been deleted since. */
json_t *queue_row(const struct request *c, const struct forecast_plan *p, size_t i);
/* Adds `factors` and `terms` of the key, by the policy of the workload's queue. Does nothing if the caller may not see
 * the workload. */
void row_show_factors(const struct forecast_plan *p, size_t i, json_t *row);
/* Returns {"revision", "at"} of the forecast. A new reference. */
json_t *forecast_label(const struct forecast_run *run);

/* GET /v1/queue?queue=&user=&limit= */
int queue_run(struct request *c);
