/* dashboard.h - the dashboard's files, which are part of the program, and their HTTP answers.
 *
 * tools/dashboard makes the table from web/ when berthd is built. The pages are not secret: their reader must sign in
 * to the API to see any data. Nothing is read from disk.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct http_request;

struct dashboard_file {
    const char *path, *type, *etag; /* etag: with its quotes */
    const char *at;
    size_t len;
    const char *gzip; /* the same content, compressed */
    size_t gzip_len;
};
extern const struct dashboard_file dashboard_files[];
extern const size_t dashboard_files_len;

/* Answers a GET or HEAD of a dashboard path. Returns false, without an answer, for other requests. */
bool dashboard_answer(struct http_request *x);
