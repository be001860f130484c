/* probes.h - health checks of an instance: what health.h needs of it. An instance of an app without a health check is
 * ready once its awaited ports have accepted a connection (docs/services.md). */
#pragma once

#include "agent/agent_parts.h"

/* NULL: it has none, or none that makes sense, and no port is awaited. Belongs in r->health, which it may replace. */
struct health *wellness_new(struct run *r);
