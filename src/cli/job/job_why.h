/* job_why.h - the explanation why a job waits, for `berth why` and `berth job show`. */
#pragma once

#include "cli/lib/api.h"

/* GET /v1/jobs/ID/why. Prints no error: it is in *trouble. */
int job_why_get(struct api *a, const char *id, bool suggest, json_t **ret, struct api_error *trouble);
/* Prints position, factors, reasons, quotas, dependencies, holders, times, and changes that would start the job
 * sooner. */
void job_why_print(const struct cli *cli, const json_t *why);
