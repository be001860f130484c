#include "cli/lib/cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { WIDTH_DEFAULT = 100, WIDTH_MIN = 40, WIDTH_TEXT_MAX = 100 };

static const struct {
    const char *name, *start;
} colors[] = {
    [COLOR_NONE] = {NULL,         "\033[0m" },
      [COLOR_BOLD] = {"bold",       "\033[1m" },
    [COLOR_DIM] = {"halfbright", "\033[2m" },
      [COLOR_GREEN] = {"green",      "\033[32m"},
    [COLOR_YELLOW] = {"brown",      "\033[33m"},
      [COLOR_RED] = {"red",        "\033[31m"},
    [COLOR_BLUE] = {"blue",       "\033[34m"},
};

static size_t terminal_width(int fd)
{
    struct winsize size;
    if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col < WIDTH_MIN)
        return WIDTH_DEFAULT;
    return size.ws_col;
}

static bool colors_enabled(FILE *to, const char *color)
{
    if (color)
        return strcmp(color, "always") == 0;
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(fileno(to)) && !(no_color && *no_color) && term && strcmp(term, "dumb") != 0;
}

void cli_init(struct cli *cli, const char *color)
{
    *cli = (struct cli){
        .out = stdout,
        .err = stderr,
        .color_out = colors_enabled(stdout, color),
        .color_err = colors_enabled(stderr, color),
        .progress = isatty(STDERR_FILENO),
        .width = isatty(STDOUT_FILENO) ? terminal_width(STDOUT_FILENO) : WIDTH_DEFAULT,
    };
}

const char *cli_paint(const struct cli *cli, enum color color)
{
    return cli->color_out ? colors[color].start : "";
}

const char *cli_color_name(enum color color)
{
    return colors[color].name;
}

static void line_write(const struct cli *cli, const char *start, enum color color, const char *fmt, va_list args)
{
    fflush(cli->out);
    fprintf(cli->err, "%s%s%s", cli->color_err ? colors[color].start : "", start,
            cli->color_err ? colors[COLOR_NONE].start : "");
    vfprintf(cli->err, fmt, args);
    fputc('\n', cli->err);
}

int cli_fail(const struct cli *cli, enum exit_code code, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    line_write(cli, "berth: ", COLOR_RED, fmt, args);
    va_end(args);
    return (int)code;
}

void cli_warn(const struct cli *cli, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    line_write(cli, "berth: warning: ", COLOR_YELLOW, fmt, args);
    va_end(args);
}

void cli_hint(const struct cli *cli, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    line_write(cli, "       ", COLOR_DIM, fmt, args);
    va_end(args);
}

/* Counts the columns of UTF-8 text: bytes that are not continuation bytes. */
static size_t columns(const char *s, size_t len)
{
    size_t n = 0;
    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)s[i] & 0xc0) != 0x80;
    return n;
}

void cli_wrap(const struct cli *cli, const char *text, size_t indent, size_t column)
{
    size_t width = cli->width < WIDTH_TEXT_MAX ? cli->width : WIDTH_TEXT_MAX;
    size_t at = column;
    bool fresh = true; /* no word on this line yet */
    bool as_is = *text == ' ';

    while (*text) {
        if (*text == '\n') {
            fputc('\n', cli->out);
            at = 0;
            fresh = true;
            text++;
            as_is = *text == ' ';
            continue;
        }
        size_t len = as_is ? strcspn(text, "\n") : strcspn(text, " \n");
        size_t need = columns(text, len);
        if (!fresh && at + 1 + need > width) {
            fputc('\n', cli->out);
            at = 0;
            fresh = true;
        }
        at += (size_t)fprintf(cli->out, "%*s", (int)(fresh ? (at < indent ? indent - at : 0) : 1), "");
        fwrite(text, 1, len, cli->out);
        at += need;
        fresh = false;
        text += len;
        text += *text == ' ';
    }
    fputc('\n', cli->out);
}

int64_t cli_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}
