#include "cli/show/status_line.h"

#include <inttypes.h>
#include <string.h>

enum { BAR = 24 };

/* Returns how many bytes of UTF-8 text fit into `columns`. */
static size_t text_fit(const char *text, size_t columns)
{
    size_t len = 0;
    for (; text[len]; len++)
        if (((unsigned char)text[len] & 0xc0) != 0x80 && columns-- == 0)
            break;
    return len;
}

void status_line_show(struct status_line *l, const char *text)
{
    size_t width = l->cli->progress && l->cli->width > 1 ? l->cli->width - 1 : sizeof l->text;
    if (strcmp(l->text, text) == 0)
        return;
    (void)snprintf(l->text, sizeof l->text, "%s", text);
    if (l->cli->progress) /* a wrapped line could not be overwritten */
        (void)fprintf(l->cli->err, "\r\033[K%.*s", (int)text_fit(text, width), text);
    else
        (void)fprintf(l->cli->err, "%s\n", text);
    (void)fflush(l->cli->err);
    l->drawn = true;
}

void status_line_end(struct status_line *l)
{
    if (!l->drawn || !l->cli->progress)
        return;
    (void)fputs("\r\033[K", l->cli->err);
    (void)fflush(l->cli->err);
    l->drawn = false;
    l->text[0] = '\0';
}

void status_line_draw(struct status_line *l, const struct object_target *t, const json_t *status)
{
    const char *state = json_string_value(json_object_get(status, "state"));
    const char *note = json_string_value(json_object_get(status, "note"));
    const char *reason = json_string_value(json_object_get(status, "reason"));
    const char *message =
        json_string_value(json_object_get(json_array_get(json_object_get(status, "conditions"), 0), "message"));
    const char *help = json_string_value(json_object_get(status, "help"));
    const json_t *progress = json_object_get(status, "progress");
    char bar[BAR + 1], text[256];
    int64_t milli = json_integer_value(progress);
    for (int i = 0; i < BAR; i++)
        bar[i] = i < milli * BAR / 1000 ? '#' : '.';
    bar[BAR] = '\0';
    if (reason) /* prefers the full sentence */
        reason = message ? message : help ? help : reason;
    if (progress)
        (void)snprintf(text, sizeof text, "%s/%s %s [%s] %" PRId64 "%% %s", t->collection->kind, t->id, state, bar,
                       milli / 10, note ? note : "");
    else
        (void)snprintf(text, sizeof text, "%s/%s %s%s%s", t->collection->kind, t->id, state ? state : "?",
                       reason && *reason ? ": " : "", reason ? reason : "");
    status_line_show(l, text);
}

static bool is_one_of(const char *state, const char *const *states)
{
    for (; state && *states; states++)
        if (strcmp(state, *states) == 0)
            return true;
    return false;
}

const char *status_word(const json_t *status)
{
    const char *state = json_string_value(json_object_get(status, "state"));
    const char *outcome = json_string_value(json_object_get(status, "outcome")); /* older daemons send no outcome */
    return outcome ? outcome : state ? state : "?";
}

bool status_is_final(const json_t *status)
{
    static const char *const final[] = {"ended", "failed", "cancelled", NULL};
    return is_one_of(json_string_value(json_object_get(status, "state")), final);
}
