/* err.h - what went wrong, in words for the person who can mend it.
 *
 * A function that can fail takes a `struct berth_err *` last (NULL: not interested) and returns 0 or a negative errno.
 * On failure its outputs are untouched and the text names the offending object and what to do. "No" as an answer
 * (a node that refuses a pod) is not an error; see core/explain/reason.h.
 */
#pragma once

#define BERTH_ERR_TEXT_MAX 512

struct berth_err {
    int code; /* positive errno */
    char text[BERTH_ERR_TEXT_MAX];
};

/* Records code and text (cut to fit, control characters replaced) and returns -code. err may be NULL. */
int err_set(struct berth_err *err, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Puts "prefix: " before the text that is there; for callers that know where the trouble sits. Returns -code,
 * or -1 with NULL, where no code is known. */
int err_prefix(struct berth_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
