#include "control/tenant/cap.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/str.h"
#include "control/api/permit.h"
#include "control/api/request.h"
#include "control/system/settings_table.h"
#include "core/model/cluster.h"
#include "wire/doc/api.h"
#include "wire/text/words.h"

/* How much an object may grow when its owner is at the cap: such an owner must still be able to stop and cancel. All
 * such growth together ends at an eighth above the cap. */
enum { GROWTH_BYTES = 256, GROWTH_PART = 8 };

static const struct cap_row {
    const char *name; /* name in cap_exceptions; the setting is cap_NAME */
    enum system_setting setting;
    int64_t unit;
    const char *what, *less; /* "user alice has 9990 of 10000 WHAT"; "LESS, or ask ..." */
} rows[CAPS] = {
    [CAP_INSTANCES] = {"instances", SETTING_CAP_INSTANCES, 1,       "replicas of apps and vms",
                       "delete some, or scale them down"                                                    },
    [CAP_JOBS] = {"jobs",      SETTING_CAP_JOBS,      1,       "tasks of unfinished jobs",
                       "wait until some have ended, or cancel them"                                         },
    [CAP_STORED] = {"stored_mb", SETTING_CAP_STORED_MB, 1 << 20, "MiB of stored documents",
                       "delete finished jobs and other objects that are no longer needed"                   },
    [CAP_TOKENS] = {"tokens",    SETTING_CAP_TOKENS,    1,       "tokens",
                       "revoke unused "
                    "tokens"                                                                                },
    [CAP_WATCHES] = {"watches",   SETTING_CAP_WATCHES,   1,       "open watches",             "close some"},
};

/* ---- values ----------------------------------------------------------------------------------------------------- */

/* One exception: "user/alice:instances=50000". `cap` is CAPS if the text is invalid. */
struct cap_exception {
    const char *whom;
    size_t whom_len;
    enum cap cap;
    int64_t value;
};

static const char *exception_read(const char *text, struct arena *arena, struct cap_exception *ret)
{
    size_t len = strcspn(text, ","), whom = strcspn(text, ":"), name = strcspn(text, "=");
    const char *rest = text + len + (text[len] == ',');
    ret->cap = CAPS;
    if (whom >= name || name >= len || (strncmp(text, "user/", 5) != 0 && strncmp(text, "group/", 6) != 0))
        return rest;
    for (size_t i = 0; i < CAPS; i++)
        if (strlen(rows[i].name) == name - whom - 1 && strncmp(rows[i].name, text + whom + 1, name - whom - 1) == 0)
            ret->cap = (enum cap)i;
    const char *value = arena_strndup(arena, text + name + 1, len - name - 1);
    if (!str_parse_i64(value, &ret->value) || ret->value < 0 || ret->value > INT64_MAX >> 20)
        ret->cap = CAPS;
    ret->whom = text;
    ret->whom_len = whom;
    return rest;
}

int cap_exceptions_check(const char *text, struct arena *arena, struct berth_err *err)
{
    while (*text) {
        struct cap_exception e;
        const char *rest = exception_read(text, arena, &e);
        if (e.cap == CAPS)
            return err_set(err, EINVAL,
                           "expected something like user/alice:instances=50000,group/vision:jobs=200000, found %.80s",
                           text);
        text = rest;
    }
    return 0;
}

static bool applies_to(const struct cap_exception *e, const char *kind, const char *id)
{
    size_t len = strlen(kind);
    return e->whom_len == len + strlen(id) && strncmp(e->whom, kind, len) == 0 &&
           strncmp(e->whom + len, id, e->whom_len - len) == 0;
}

int64_t cap_limit(const struct state *s, enum cap cap, const char *owner, struct arena *arena)
{
    int64_t limit = system_setting_number(s, rows[cap].setting);
    const struct object *user = state_find(s, KIND_USER, owner);
    bool own = false;
    for (const char *text = system_setting_text(s, SETTING_CAP_EXCEPTIONS, arena); *text;) {
        struct cap_exception e;
        text = exception_read(text, arena, &e);
        bool is_user = e.cap == cap && applies_to(&e, "user/", owner);
        if (is_user || (!own && e.cap == cap && user && applies_to(&e, "group/", user->group)))
            limit = e.value;
        own = own || is_user;
    }
    return limit * rows[cap].unit;
}

/* Administrators, agents, the daemon, and checks without a request are exempt. */
static bool is_exempt(const struct caller *caller)
{
    return !caller->user || !caller->user[0] || caller->scope[PERMIT_SYSTEM] == SCOPE_ALL;
}

/* ---- checks ----------------------------------------------------------------------------------------------------- */

static int refuse(struct request *c, enum cap cap, int code, const char *owner, int64_t has, int64_t limit, int64_t add)
{
    const struct cap_row *row = &rows[cap];
    int64_t more = (add + row->unit - 1) / row->unit;
    return err_set(&c->err, code,
                   "cap %s: user %s has %" PRId64 " of %" PRId64 " %s, and this request needs %" PRId64
                   " more; %s, or ask an administrator to raise the setting cap_%s",
                   row->name, owner, has / row->unit, limit / row->unit, row->what, more, row->less, row->name);
}

static int claim_check(struct request *c, const struct cap_claim *claim)
{
    const struct cap_amounts use = cap_book_use(state_caps(c->state), claim->owner);
    for (size_t i = 0; i < CAPS; i++) {
        int64_t add = claim->add.of[i];
        if (add <= 0)
            continue;
        int64_t limit = cap_limit(c->state, (enum cap)i, claim->owner, &c->arena);
        int64_t slack = i == CAP_STORED && add <= GROWTH_BYTES ? limit / GROWTH_PART : 0;
        if (limit && use.of[i] + add > limit + slack)
            return refuse(c, (enum cap)i, EACCES, claim->owner, use.of[i], limit, add);
    }
    return 0;
}

/* Returns the increase by one item: the amounts of its document minus those of the stored object. */
static struct cap_amounts item_adds(struct request *c, struct change_item *item)
{
    size_t len = 0;
    struct cap_amounts add = {0};
    if (change_item_text(&c->change, item, &len))
        add = cap_of_doc(item->kind, item->doc, len, &c->arena);
    const struct object *o = state_find(c->state, item->kind, item->id);
    const struct cap_amounts had = o ? cap_of_object(o) : (struct cap_amounts){0};
    bool cancelled = json_is_true(json_object_get(item->doc, "cancelled"));
    for (size_t i = 0; i < CAPS; i++)
        add.of[i] -= had.of[i];
    if (cancelled && add.of[CAP_STORED] > 0)
        add.of[CAP_STORED] = 0;
    return add;
}

static const char *item_owner(struct request *c, const struct change_item *item)
{
    const struct object *o = state_find(c->state, item->kind, item->id);
    const char *owner = json_string_value(json_object_get(item->doc, item->kind == KIND_TOKEN ? "user" : "owner"));
    return o ? o->owner : owner ? owner : "";
}

/* Returns the owner's claim, created if it is missing. A change has few owners. */
static struct cap_claim *claim_of(struct request *c, const char *owner)
{
    for (size_t i = 0; i < c->claims_len; i++)
        if (strcmp(c->claims[i].owner, owner) == 0)
            return &c->claims[i];
    struct cap_claim *claims = ARENA_ARRAY(&c->arena, struct cap_claim, c->claims_len + 1);
    if (c->claims_len)
        memcpy(claims, c->claims, c->claims_len * sizeof *claims);
    c->claims = claims;
    claims[c->claims_len] = (struct cap_claim){.owner = arena_strdup(&c->arena, owner)};
    return &claims[c->claims_len++];
}

int cap_check(struct request *c)
{
    c->claims = NULL;
    c->claims_len = 0;
    if (is_exempt(&c->caller))
        return 0;
    for (size_t i = 0; i < c->change.items.len; i++) {
        struct change_item *item = &c->change.items.at[i];
        const char *owner = item->write && cap_counts(item->kind) ? item_owner(c, item) : "";
        if (!*owner)
            continue;
        const struct cap_amounts add = item_adds(c, item);
        struct cap_claim *claim = claim_of(c, owner);
        for (size_t k = 0; k < CAPS; k++)
            claim->add.of[k] += add.of[k];
    }
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < c->claims_len; i++)
        rc = claim_check(c, &c->claims[i]);
    return rc;
}

int cap_admit(struct request *c, enum kind kind, const char *id, const struct work_doc *d)
{
    const struct object *o = state_find(c->state, kind, id);
    int64_t most = system_setting_number(c->state, SETTING_REPLICAS_MAX), replicas = d->workload.replicas;
    int64_t had = o && !o->work->finished_ns ? o->work->replicas : 0;
    if (replicas <= had)
        return 0;
    if (most && replicas > most)
        return err_set(&c->err, EACCES,
                       "replicas: %" PRId64 " exceed the limit of one %s, %" PRId64
                       "; ask an administrator to raise the setting replicas_max",
                       replicas, kinds[kind].name, most);
    if (is_exempt(&c->caller) || !d->owner ||
        c->quota_check_deferred) /* cap_check also sees what the transaction deletes */
        return 0;
    struct cap_claim claim = {.owner = d->owner};
    claim.add.of[kind == KIND_JOB ? CAP_JOBS : CAP_INSTANCES] = replicas - had;
    return claim_check(c, &claim);
}

void cap_hold(struct request *c)
{
    for (size_t i = 0; i < c->claims_len; i++) {
        for (size_t k = 0; k < CAPS; k++)
            if (c->claims[i].add.of[k] < 0) /* deletions count only when they are committed */
                c->claims[i].add.of[k] = 0;
        cap_book_hold(state_caps(c->state), c->claims[i].owner, &c->claims[i].add, 1);
    }
    c->claims_held = true;
}

void cap_release(struct request *c)
{
    for (size_t i = 0; c->claims_held && i < c->claims_len; i++)
        cap_book_hold(state_caps(c->state), c->claims[i].owner, &c->claims[i].add, -1);
    c->claims_held = false;
    c->claims_len = 0;
}

int cap_names_check(struct request *c, size_t fresh)
{
    if (fresh == 0 || !c->caller.user || !c->caller.user[0] || permit(&c->caller, PERMIT_NODES, "", ""))
        return 0;
    size_t has = state_cluster(c->state)->resources.len, most = BERTH_RESOURCES_MAX / 2;
    if (has + fresh <= most)
        return 0;
    return err_set(
        &c->err, EACCES,
        "the cluster has %zu resource names, and users can add names up to %zu; request resources that nodes have, "
        "or ask an administrator to define these",
        has, most);
}

int cap_watch_check(struct request *c)
{
    const char *user = c->caller.user;
    if (is_exempt(&c->caller))
        return 0;
    int64_t limit = cap_limit(c->state, CAP_WATCHES, user, &c->arena);
    int64_t has = cap_book_use(state_caps(c->state), user).of[CAP_WATCHES];
    return limit && has >= limit ? refuse(c, CAP_WATCHES, EDQUOT, user, has, limit, 1) : 0;
}
