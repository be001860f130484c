/* route_rules.h - rules that place jobs in queues, and move those that wait. */
#pragma once

#include "control/kind/queue.h"

struct control;

#define ROUTES_ID "routes"
/* GET, PUT /v1/routes */
call_run routes_get, routes_put;
/* Gives a new job that names no queue the one that the first rule says which holds; those that move are not looked at. */
int route_new(struct call *c, const char *id, json_t *doc);
/* Does a rule name this queue? */
bool routes_name(struct call *c, const char *queue);
/* The queue is there; -EINVAL under this key, with the nearest. */
int queue_known(struct call *c, const char *key, const char *queue);
/* Now and then: moves some of the jobs that wait and that a rule with `waited` or `used` holds for. */
void routes_step(struct control *c, int64_t steady_ns);
