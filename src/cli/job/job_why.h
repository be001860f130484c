/* job_why.h - why a job waits, as `berth why` and `berth job show` print it. */
#pragma once

#include "cli/lib/api.h"

/* GET /v1/jobs/ID/why. Tells nothing. */
int job_why_get(struct api *a, const char *id, bool suggest, json_t **ret, struct api_trouble *trouble);
/* Place, factors, reasons, quotas, what it waits for, who holds it, when, what would start sooner. */
void job_why_print(const struct cli *cli, const json_t *why);
