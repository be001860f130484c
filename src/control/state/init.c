/* init.c - creates the initial objects of a new cluster. */
#include <errno.h>
#include <string.h>

#include "control/control_parts.h"
#include "control/state/commit.h"
#include "control/system/settings_table.h"
#include "wire/doc/api.h"

struct init_result {
    int rc;
    bool done;
};

static void on_initialised(void *ctx, const struct store_result *result)
{
    *(struct init_result *)ctx = (struct init_result){.rc = result->rc, .done = true};
}

static json_t *fresh(int64_t now_ns, const char *id, const char *display)
{
    char created[TIMESTAMP_MAX];
    return json_pack("{s:s, s:s, s:s, s:i}", "id", id, "display", display, "created", timestamp_text(now_ns, created),
                     "generation", 1);
}

int control_init(struct control *c, char ret_token[static TOKEN_TEXT_MAX], struct berth_err *err)
{
    if (store_revision(c->store) != 0)
        return err_set(err, EEXIST, "this folder already contains a cluster");
    struct arena arena;
    struct change change;
    struct init_result result = {0};
    unsigned char random[40];
    char text[TOKEN_TEXT_MAX];
    const char *token_id;
    int64_t now_ns = control_now_ns(c);

    arena_init(&arena);
    change_init(&change, c->state, &arena);
    c->env.random(c->env.ctx, random, sizeof random);
    json_t *admin = fresh(now_ns, "admin", "Administrator");
    (void)json_object_set_new(admin, "role", json_string("admin"));
    change_put(&change, KIND_USER, "admin", admin);
    json_t *token = token_make(random, "admin", "", "", "first start", now_ns, BERTH_NEVER_NS, text, &token_id, &arena);
    change_put(&change, KIND_TOKEN, token_id, token);
    json_t *settings = json_pack("{s:i}", "defaults", SETTINGS_DEFAULTS);
    if (c->options.bare) {
        (void)json_object_set_new(settings, "default_requests", json_string(""));
        (void)json_object_set_new(settings, "memory_limit", json_string("none"));
    }
    change_put(&change, KIND_SETTING, SETTINGS_ID, settings);
    struct commit_note note = {.who = "berth", .verb = "init"};
    int rc = commit_submit(c, &change, &note, on_initialised, &result, err);
    if (rc > 0) {
        store_drain(c->store);
        rc = result.done ? result.rc : -EIO;
        if (rc < 0)
            (void)err_set(err, -rc, "the first objects cannot be written; is the disk full?");
    }
    change_done(&change);
    arena_done(&arena);
    if (rc == 0)
        memcpy(ret_token, text, sizeof text);
    return rc;
}
