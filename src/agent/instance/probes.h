/* probes.h - connects the probes of an instance (machine/health/health.h) to the agent. An instance of an app without a
 * health check is ready once its awaited ports have accepted a connection (docs/services.md).
 */
#pragma once

#include "agent/agent_parts.h"

/* Creates the probe; store it in r->health, where later steps may replace it. NULL: no valid health check and no
 * awaited port. */
struct health *instance_probe_new(struct agent_instance *r);
