/* task_rows.h - jobs with their standing, read and printed; for the verbs that show them. */
#pragma once

#include "cli/lib/api.h"

/* Jobs of an owner (NULL: all there are to see), those that are over only if asked for. *ret is a new list. Returns an enum
 * exit_code, told. */
int jobs_read(struct api *a, const char *owner, bool over, json_t **ret);
/* The queue; NULL, and EXIT_OK, for who may not see it. */
int jobs_queue(struct api *a, json_t **ret);
enum { QUEUE_ROWS_DEFAULT = 100, QUEUE_ROWS_MAX = 10000 };
/* The first rows of /v1/queue with this query, page by page. */
int queue_read(struct api *a, const char *path, uint64_t rows, json_t **ret, struct api_trouble *ret_trouble);
/* The row of the queue that is this job's; NULL: it does not wait. */
const json_t *jobs_standing(const json_t *queue, const char *id);
void jobs_print(const struct cli *cli, const json_t *jobs, const json_t *queue, bool owners, int64_t now_ns);
