/* wellness.h - health checks of an instance: what health.h needs of it. */
#pragma once

#include "agent/agent_parts.h"

/* NULL: it has none, or none that makes sense. */
struct health *wellness_new(struct run *r);
