/* dashboard.h - the dashboard as files inside the program, and the answers that carry them.
 *
 * tools/dashboard makes the table from web/ when berthd is built. The pages are nobody's secret: whoever reads them must sign
 * in to see anything, by the API like everybody else. Nothing is read from disk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct http_exchange;

struct dashboard_file {
    const char *path, *type, *etag; /* the etag in its quotes */
    const char *at;
    size_t len;
    const char *gzip; /* the same, compressed */
    size_t gzip_len;
};
extern const struct dashboard_file dashboard_files[];
extern const size_t dashboard_files_len;

/* Answers a GET or HEAD of a path that is the dashboard's. False: it is not, and nothing was answered. */
bool dashboard_answer(struct http_exchange *x);
