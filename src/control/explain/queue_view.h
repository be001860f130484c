/* queue_view.h - what waits, in which order, and when it will start; for people and programs.
 *
 * Read from a forecast (forecast.h), so every answer says of which revision and moment it is. Others' work is shown as far
 * as holder_show allows: its place in the order and whose it is, never what it is.
 */
#pragma once

#include "control/explain/forecast.h"

/* "by-right", "borrowed", "spare" */
const char *entitlement_name(enum berth_entitlement e);

/* Of a workload that waits: position, tier, queue, key, start. `guess`: the start rests on a guessed run time. */
void standing_show(const struct berth_standing *s, bool guess, json_t *to);
/* [{"name", "text", "value", "weight", "product"}] of a standing. A new reference. */
json_t *factors_json(const struct berth_standing *s);
/* [{"name", "text", "value", "weight", "product"}] of what the key is made of. */
json_t *terms_json(const struct berth_standing *s);
/* [{"reason", "what", "nodes", "only", "text"}]. A new reference. */
json_t *reasons_json(const struct berth_pending *p);
/* What one pod asks for, and how many there are. A new reference. */
json_t *asked_json(const struct object *work);
/* One row of the queue: pending i of a plan. A new reference; NULL: its workload is gone meanwhile. */
json_t *queue_row(const struct call *c, const struct forecast_plan *p, size_t i);
/* Adds `factors` and `terms` to such a row: what the key is made of, by the policy of its queue. Not to a row whose
 * work the caller may not see. */
void row_show_factors(const struct forecast_plan *p, size_t i, json_t *row);
/* {"revision", "at"}: which forecast it was. A new reference. */
json_t *forecast_label(const struct forecast_run *run);

/* GET /v1/queue?queue=&user=&limit= */
int queue_run(struct call *c);
