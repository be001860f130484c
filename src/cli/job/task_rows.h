/* task_rows.h - reads and prints jobs with their queue positions, for several verbs. */
#pragma once

#include "cli/lib/api.h"

/* Reads the jobs of an owner (NULL: all visible ones), ended jobs only with `over`. *ret is a new list. Returns an enum
 * exit_code and prints errors. */
int jobs_read(struct api *a, const char *owner, bool over, json_t **ret);
/* Reads the queue. *ret is NULL, with EXIT_OK, if the user may not read the queue. */
int jobs_queue(struct api *a, json_t **ret);
enum { QUEUE_ROWS_DEFAULT = 100, QUEUE_ROWS_MAX = 10000 };
/* Reads the first `rows` rows of /v1/queue with this query, page by page. */
int queue_read(struct api *a, const char *path, uint64_t rows, json_t **ret, struct api_error *ret_trouble);
/* Returns the job's row in the queue; NULL: the job does not wait. */
const json_t *jobs_queue_row(const json_t *queue, const char *id);
void jobs_print(const struct cli *cli, const json_t *jobs, const json_t *queue, bool owners, int64_t now_ns);
