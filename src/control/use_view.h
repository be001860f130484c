/* use_view.h - what the cluster has and what is held of it, in sums by domain: cores, bytes, GPUs. O(nodes). */
#pragma once

#include "control/call.h"

/* GET /v1/use */
int use_run(struct call *c);
