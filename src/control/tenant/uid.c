#include "control/tenant/uid.h"

#include <errno.h>
#include <string.h>

#include "control/control_parts.h"
#include "control/state/commit.h"
#include "control/system/settings_table.h"

#define COUNTER "uids"
enum { ASSIGN_BATCH_MAX = 500 }; /* users that get a uid in one transaction */

int uid_take(struct change *c, uint32_t *ret, struct berth_err *err)
{
    const json_t *counter = change_read(c, KIND_COUNTER, COUNTER);
    json_int_t next = system_setting_number(c->state, SETTING_UID_FIRST);
    json_int_t last = json_integer_value(json_object_get(counter, "last"));
    if (last >= next)
        next = last + 1;
    if (next > UID_LAST)
        return err_set(err, EDQUOT, "no user number is left up to %d; lower the setting uid_first", UID_LAST);
    /* Two concurrent transactions that take a uid both write this key, so one of them is repeated. */
    change_put(c, KIND_COUNTER, COUNTER, json_pack("{s:I}", "last", next));
    *ret = (uint32_t)next;
    return 0;
}

struct uid_result {
    int rc;
    bool done;
};

static void assigned(void *ctx, const struct store_result *result)
{
    *(struct uid_result *)ctx = (struct uid_result){.rc = result->rc, .done = true};
}

/* Assigns uids to the next few users; *ret_given 0: all users have one. */
static int uids_assign_some(struct control *c, size_t *ret_given, struct berth_err *err)
{
    struct uid_result result = {0};
    struct arena arena;
    struct change change;
    size_t len, given = 0;
    int rc = 0;
    const struct object *const *users = state_list(c->state, KIND_USER, &len);
    arena_init(&arena);
    change_init(&change, c->state, &arena);
    for (size_t i = 0; rc == 0 && i < len && given < ASSIGN_BATCH_MAX; i++) {
        uint32_t uid = 0;
        if (users[i]->user->uid)
            continue;
        rc = uid_take(&change, &uid, err);
        json_t *doc = rc == 0 ? change_edit(&change, KIND_USER, users[i]->id) : NULL;
        if (doc)
            (void)json_object_set_new(doc, "uid", json_integer(uid));
        given++;
    }
    if (rc == 0 && given) {
        struct commit_note note = {.who = "berth", .verb = "uids"};
        rc = commit_submit(c, &change, &note, assigned, &result, err);
        if (rc > 0) {
            store_drain(c->store);
            control_pump(c);
            rc = result.done ? result.rc : -EIO;
            if (rc < 0)
                (void)err_set(err, -rc, "user numbers cannot be written; is the disk full?");
        }
    }
    change_done(&change);
    arena_done(&arena);
    *ret_given = given;
    return rc;
}

int control_uids_assign(struct control *c, size_t *ret, struct berth_err *err)
{
    size_t given = 0, users;
    int rc = 0;
    *ret = 0;
    (void)state_list(c->state, KIND_USER, &users);
    for (size_t turns = 0; rc == 0 && turns <= users / ASSIGN_BATCH_MAX + 1; turns++) {
        rc = uids_assign_some(c, &given, err);
        *ret += rc == 0 ? given : 0;
        if (given == 0)
            break;
    }
    return rc;
}
