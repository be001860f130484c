/* why.h - the complete explanation of a waiting job: its position, the factors of its rank, the reasons, the holders of
 * what it waits for, its start estimate, and changes for an earlier start.
 */
#pragma once

#include "control/api/request.h"

/* GET /v1/jobs/{id}/why?suggest= */
int job_why(struct request *c);
