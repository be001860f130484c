/* err.h - error codes with a text for the user or administrator.
 *
 * A function that can fail takes a `struct berth_err *` as its last argument (NULL if the caller does not need the
 * text) and returns 0 or a negative errno. On failure its outputs are unchanged, and the text names the offending
 * object and the remedy. A negative answer (for example a node that a filter rejects) is not an error; see
 * core/explain/reason.h.
 */
#pragma once

#define BERTH_ERR_TEXT_MAX 512

struct berth_err {
    int code; /* positive errno */
    char text[BERTH_ERR_TEXT_MAX];
};

/* Stores code and text (truncated to fit, control characters replaced) and returns -code. err may be NULL. */
int err_set(struct berth_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Prepends "prefix: " to the stored text; for callers that know where the error occurred. Returns -code; returns -1 if
 * err is NULL, because no code is known then. */
int err_prefix(struct berth_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
