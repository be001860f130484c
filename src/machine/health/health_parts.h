/* health_parts.h - what a health check asks, and how often; for health*.c. */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "base/err.h"

#define HEALTH_SECOND_NS INT64_C(1000000000)
#define HEALTH_NS_MIN (HEALTH_SECOND_NS / 1000)
#define HEALTH_NS_MAX (24 * 3600 * HEALTH_SECOND_NS)
enum { HEALTH_PATH_MAX = 1024 };

enum health_kind { HEALTH_EXEC, HEALTH_HTTP, HEALTH_TCP };

struct health_plan {
    enum health_kind kind;
    char **argv;           /* of exec; ends with NULL */
    char *endpoint, *path; /* of http and tcp; of http */
    int64_t every_ns, timeout_ns, delay_ns, failures;
};

/* -EINVAL: names the key. */
int health_plan_read(const json_t *check, struct health_plan *ret, struct berth_err *err);
void health_plan_done(struct health_plan *p);
