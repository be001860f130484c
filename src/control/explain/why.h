/* why.h - why a job does not run yet, completely: its place in the order, what it is ranked by, what stands in its way, who
 * holds what it waits for, when it will start, and what to change to start sooner.
 */
#pragma once

#include "control/api/request.h"

/* GET /v1/jobs/{id}/why?suggest= */
int job_why(struct call *c);
