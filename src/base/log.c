/* log.c - formats and writes log lines. */
#include "base/log.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/str.h"

enum { NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

static const char *const level_names[] = {
    [LEVEL_DEBUG] = "debug",
    [LEVEL_INFO] = "info",
    [LEVEL_WARN] = "warn",
    [LEVEL_ERROR] = "error",
};

int log_level_parse(const char *name)
{
    for (int i = 0; i < (int)(sizeof level_names / sizeof *level_names); i++)
        if (strcmp(level_names[i], name) == 0)
            return i;
    return -1;
}

static void add_time(struct str *line, int64_t now_ns)
{
    time_t seconds = now_ns / NS_PER_S;
    int64_t rest = now_ns % NS_PER_S;
    if (rest < 0) {
        rest += NS_PER_S;
        seconds--;
    }
    struct tm tm;
    char text[32];
    (void)gmtime_r(&seconds, &tm); /* an int64_t of nanoseconds stays within the years 1677 to 2262 */
    (void)strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm);
    str_addf(line, "time=%s.%03dZ", text, (int)(rest / NS_PER_MS));
}

/* Returns whether the text needs no quotes. */
static bool needs_no_quotes(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (text[i] <= ' ' || text[i] >= 0x7f || text[i] == '"' || text[i] == '=' || text[i] == '\\')
            return false; /* a signed char above 0x7f is below ' ' */
    return len > 0;
}

static void add_text(struct str *line, const char *text)
{
    size_t len = strnlen(text, LOG_TEXT_MAX);
    if (text[len]) /* do not cut inside a UTF-8 character */
        for (int back = 0; back < 3 && len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80; back++)
            len--;
    if (needs_no_quotes(text, len))
        str_add_bytes(line, text, len);
    else
        str_add_json_bytes(line, text, len);
}

void log_fields(const struct log *log, int64_t now_ns, enum log_level level, const struct log_field *fields)
{
    if (!log->out || level < log->level)
        return;

    CLEANUP(str) struct str line = {0};
    add_time(&line, now_ns);
    str_addf(&line, " level=%s", level_names[level]);
    for (const struct log_field *f = fields; f->key; f++) {
        str_addf(&line, " %s=", f->key);
        switch (f->kind) {
        case LOG_KIND_TEXT: add_text(&line, f->text ? f->text : ""); break;
        case LOG_KIND_NUMBER: str_addf(&line, "%lld", (long long)f->number); break;
        }
    }
    str_add_char(&line, '\n');
    (void)fwrite(line.at, 1, line.len, log->out);
    (void)fflush(log->out);
}
