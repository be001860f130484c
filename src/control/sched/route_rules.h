/* route_rules.h - rules that assign new jobs to queues, and move waiting jobs between queues. */
#pragma once

#include "control/kind/queue.h"

struct control;

#define ROUTES_ID "routes"
/* GET, PUT /v1/routes */
request_verb routes_get, routes_put;
/* Sets the queue of a new job that names none: the queue of the first matching rule. Rules for waiting jobs are
 * skipped. */
int route_new(struct request *c, const char *id, json_t *doc);
/* Returns whether a rule names this queue. */
bool routes_use_queue(struct request *c, const char *queue);
/* Checks that the queue exists; otherwise -EINVAL for this key, with the most similar queue name. */
int queue_check_exists(struct request *c, const char *key, const char *queue);
/* Periodic step: moves some of the waiting jobs that match a rule with `waited` or `used`. */
void routes_step(struct control *c, int64_t steady_ns);
