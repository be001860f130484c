/* cli.h - what every verb of `berth` shares: where to write, in which colours, how to end.
 *
 * A verb writes results to `out` and everything else to `err`. It never looks at the terminal itself: main.c has, and
 * at NO_COLOR and --color.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum exit_code {
    EXIT_OK,
    EXIT_FAILED,
    EXIT_USAGE,
    EXIT_PENDING,     /* plan --strict: something has no place */
    EXIT_NOT_FOUND,   /* 404 */
    EXIT_REFUSED,     /* 401, 403 */
    EXIT_CONFLICT,    /* 409, 412 */
    EXIT_UNREACHABLE, /* no answer, or 429 and 503 for too long */
};

enum color { COLOR_NONE, COLOR_BOLD, COLOR_DIM, COLOR_GREEN, COLOR_YELLOW, COLOR_RED, COLOR_BLUE };

struct command;
struct connect_values;

struct cli {
    FILE *out, *err;
    bool color_out, color_err;
    bool progress;                        /* err is a terminal */
    size_t width;                         /* columns of the terminal behind out; 100 where there is none */
    const struct command *command;        /* that is being run */
    const struct connect_values *connect; /* what the command line says of the server */
};

/* Looks at the terminal; `color` is "always", "never", or NULL for automatic. Leaves command and connect NULL. */
void cli_init(struct cli *cli, const char *color);

/* The escape sequence that starts a colour on `out`, or ends every colour with COLOR_NONE; "" without colours. */
const char *cli_paint(const struct cli *cli, enum color color);
/* The colour's name for libsmartcols; NULL for none. */
const char *cli_color_name(enum color color);

/* Writes "berth: TEXT" to err and returns `code`. The text says what to do next. */
int cli_fail(const struct cli *cli, enum exit_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Writes "berth: TEXT" to err as a warning: the verb goes on. */
void cli_warn(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A line below a failure: what to do next. */
void cli_hint(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes `text` to out, broken between words at the width; every line starts with `indent` spaces, the first one is
 * taken to stand at `column` already. Ends with a newline. Blank lines and lines that start with a space are kept. */
void cli_wrap(const struct cli *cli, const char *text, size_t indent, size_t column);

/* A monotonic clock, for progress and benchmarks. */
int64_t cli_clock_ns(void);
