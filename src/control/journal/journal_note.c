#include "control/journal/journal_note.h"

#include "control/control_parts.h"
#include "control/state/commit.h"

static void on_written(void *ctx, const struct store_result *result)
{
    (void)ctx;
    (void)result;
}

int journal_note(struct control *c, const char *kind, const struct str *extra)
{
    struct arena arena;
    struct change change;
    struct berth_err err;
    arena_init(&arena);
    change_init(&change, c->state, &arena);
    struct commit_note note = {
        .who = "berth", .verb = kind, .extra = {extra->at, extra->len}
    };
    int rc = commit_submit(c, &change, &note, on_written, NULL, &err);
    if (rc < 0)
        log_write(c->env.log, c->now_ns, LEVEL_WARN, "note.failed", LOG_TEXT("kind", kind), LOG_TEXT("text", err.text));
    change_done(&change);
    arena_done(&arena);
    return rc;
}
