/* health_parts.h - a parsed health check; for health*.c. */
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
    char **argv;           /* exec: NULL-terminated */
    char *endpoint, *path; /* endpoint: http and tcp; path: http */
    int64_t every_ns, timeout_ns, delay_ns, failures;
};

/* -EINVAL with the name of the key. */
int health_plan_read(const json_t *check, struct health_plan *ret, struct berth_err *err);
void health_plan_done(struct health_plan *p);
