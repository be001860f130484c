/* cli.h - what all verbs of `berth` share: output streams, colours, exit codes and error messages.
 *
 * A verb writes results to `out` and everything else to `err`. A verb never examines the terminal: main.c evaluates the
 * terminal, NO_COLOR and --color.
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
    EXIT_PENDING,     /* plan --strict: a workload is pending */
    EXIT_NOT_FOUND,   /* 404 */
    EXIT_REFUSED,     /* 401, 403 */
    EXIT_CONFLICT,    /* 409, 412 */
    EXIT_UNREACHABLE, /* no answer, or 429 or 503 after all retries */
};

enum color { COLOR_NONE, COLOR_BOLD, COLOR_DIM, COLOR_GREEN, COLOR_YELLOW, COLOR_RED, COLOR_BLUE };

struct command;
struct connect_values;

struct cli {
    FILE *out, *err;
    bool color_out, color_err;
    bool progress;                        /* err is a terminal: progress may be drawn */
    size_t width;                         /* columns of the terminal behind out; 100 without a terminal */
    const struct command *command;        /* the running command */
    const struct connect_values *connect; /* connection options of the command line */
};

/* Examines the terminal; `color` is "always", "never", or NULL for automatic. Leaves command and connect NULL. */
void cli_init(struct cli *cli, const char *color);

/* Returns the escape sequence that starts a colour on `out`; COLOR_NONE ends every colour. Returns "" without
 * colours. */
const char *cli_paint(const struct cli *cli, enum color color);
/* Returns the colour's name for libsmartcols; NULL for COLOR_NONE. */
const char *cli_color_name(enum color color);

/* Writes "berth: TEXT" to err and returns `code`. TEXT states what the user can do next. */
int cli_fail(const struct cli *cli, enum exit_code code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Writes "berth: warning: TEXT" to err. The verb continues. */
void cli_warn(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Writes a line below an error message: what the user can do next. */
void cli_hint(const struct cli *cli, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Writes `text` to out, broken between words at the terminal width, and ends with a newline. Every line starts with
 * `indent` spaces; the first line continues at `column`. Keeps blank lines and lines that start with a space. */
void cli_wrap(const struct cli *cli, const char *text, size_t indent, size_t column);

/* Returns the monotonic clock, for progress and benchmarks. */
int64_t cli_clock_ns(void);
