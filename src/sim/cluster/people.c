/* people.c - simulated users of several groups, who use and misuse the API.
 *
 * Targets are drawn from all existing objects, so requests for objects of other users are frequent.
 */
#include "sim/cluster/people.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cluster/batch.h"

enum { WORKS_MAX = 12 }; /* per user, approximate */

/* ---- requests --------------------------------------------------------------------------------------------------- */

static char *dup_or_null(const char *text)
{
    return text ? mem_strdup(text) : NULL;
}

static void kept_done(struct kept_request *k)
{
    mem_free(k->method);
    mem_free(k->path);
    mem_free(k->body);
    mem_free(k->key);
}

static void keep(struct person *p, const struct ask *ask)
{
    size_t at = p->kept_len < KEPT_REQUESTS ? p->kept_len++ : chance_below(&p->w->people_luck, KEPT_REQUESTS);
    struct kept_request *k = &p->kept[at];
    kept_done(k);
    *k = (struct kept_request){dup_or_null(ask->method), dup_or_null(ask->path), dup_or_null(ask->body),
                               dup_or_null(ask->key)};
}

/* Sends a request, sometimes with an idempotency key. A request with a key may be repeated. */
static void user_ask(struct person *p, struct ask *ask)
{
    struct world *w = p->w;
    char key[ID_MAX + 32];
    ask->who = p->id;
    if (!ask->token)
        ask->token = p->token;
    if (strcmp(ask->method, "GET") != 0 && !ask->key && chance_in(&w->people_luck, 400)) {
        (void)snprintf(key, sizeof key, "%s-%" PRIu64, p->id, ++p->keys);
        ask->key = key;
        if (!ask->query[0] && !ask->refuse && !ask->body_len && !ask->if_match)
            keep(p, ask);
    }
    world_says(w, "%s: %s %s%s%s", p->id, ask->method, ask->path, ask->key ? " with key " : "",
               ask->key ? ask->key : "");
    (void)world_ask(w, ask);
}

/* ---- targets ---------------------------------------------------------------------------------------------------- */

/* Returns a workload of the kind, mostly one of the user; NULL: none. */
static const struct seen *target(struct person *p, enum kind kind)
{
    struct world *w = p->w;
    size_t len = w->mirror.of[kind].len;
    bool any = chance_in(&w->people_luck, 80);
    for (size_t tries = 0; tries < 12 && len; tries++) {
        const struct seen *s = w->mirror.of[kind].at[chance_below(&w->people_luck, len)];
        if (any || strcmp(s->work.owner ? s->work.owner : "", p->id) == 0)
            return s;
    }
    return NULL;
}

/* Returns whether the user may change the workload. Users who may not even see it get 404. */
static bool may_change(const struct person *p, const struct seen *s)
{
    const struct seen *user = mirror_find(&p->w->mirror, KIND_USER, p->id);
    const char *in = user && user->user.group ? user->user.group : "";
    bool own = strcmp(s->work.owner ? s->work.owner : "", p->id) == 0;
    bool group = *in && strcmp(s->work.group ? s->work.group : "", in) == 0;
    return (own && strcmp(p->role, "viewer") != 0) || (group && strcmp(p->role, "manager") == 0) ||
           strcmp(p->role, "operator") == 0;
}

/* ---- actions ---------------------------------------------------------------------------------------------------- */

static void send_json(struct person *p, const char *method, const char *path, json_t *body, bool refuse)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct ask ask = {.method = method, .path = path, .body = text, .refuse = refuse, .invariant = 21};
    struct chance *luck = &p->w->people_luck;
    size_t len = strlen(path), at = 0;
    if (len > 5 && strcmp(path + len - 5, "/hold") == 0) { /* also stops a running job */
        ask.query[at++] = "stop";
        ask.query[at++] = "true";
    }
    if (chance_in(luck, 30)) {
        ask.query[at++] = "dry_run";
        ask.query[at++] = "true";
        ask.harmless = true;
        ask.invariant = 20;
        ask.refuse = false;
    }
    user_ask(p, &ask);
    free(text);
    json_decref(body);
}

static void name(struct chance *luck, json_t *body)
{
    char text[48];
    size_t number = chance_below(luck, 12);
    (void)snprintf(text, sizeof text, "%s%zu", CHANCE_PICK(luck, char *, "web", "db", "Photos", "n"), number);
    (void)json_object_set_new(body, "name", json_string(text));
}

/* Adds a volume, if there is one. It may belong to another user, and is then treated as missing. */
static void mount(struct person *p, json_t *body)
{
    const struct mirror *m = &p->w->mirror;
    struct chance *luck = &p->w->people_luck;
    size_t len = m->of[KIND_VOLUME].len;
    if (len && chance_in(luck, 80))
        (void)json_object_set_new(body, "volumes",
                                  json_pack("[s]", m->of[KIND_VOLUME].at[chance_below(luck, len)]->id));
}

static void create(struct person *p)
{
    struct chance *luck = &p->w->people_luck;
    bool refuse = strcmp(p->role, "viewer") == 0;
    size_t kind = chance_below(luck, 20);
    const char *path = kind < 8 ? "/v1/apps" : kind < 17 ? "/v1/jobs" : kind < 19 ? "/v1/vms" : "/v1/volumes";
    json_t *body = kind < 8 ? body_app(luck) : kind < 17 ? batch_job(p->w) : kind < 19 ? body_vm(luck) : NULL;
    if (!body) {
        char id[24];
        (void)snprintf(id, sizeof id, "vol%zu", chance_below(luck, 8));
        body = json_pack("{s:s, s:b}", "id", id, "shared", chance_in(luck, 300));
        if (chance_in(luck, 300))
            (void)json_object_set_new(body, "zone", json_string(CHANCE_PICK(luck, char *, "a", "b")));
    } else {
        mount(p, body);
        if (kind < 8 || kind >= 17)
            name(luck, body);
        if (chance_in(luck, 30)) /* begins later */
            (void)json_object_set_new(body, "begin",
                                      json_integer(world_wall_ns(p->w) / SECOND + chance_range(luck, -60, 120)));
    }
    send_json(p, "POST", path, body, refuse);
}

/* Sends several changes in one transaction, which is executed completely or not at all. */
static void transact(struct person *p)
{
    struct chance *luck = &p->w->people_luck;
    const struct seen *s = target(p, KIND_JOB);
    json_t *app = body_app(luck), *changes = json_array();
    name(luck, app);
    (void)json_array_append_new(changes,
                                json_pack("{s:s, s:s, s:o}", "op", "put", "kind", "job", "object", body_job(luck)));
    if (chance_in(luck, 700))
        (void)json_array_append_new(changes, json_pack("{s:s, s:s, s:o}", "op", "put", "kind", "app", "object", app));
    else
        json_decref(app);
    if (s)
        (void)json_array_append_new(changes, json_pack("{s:s, s:s, s:s}", "op", "delete", "kind", "job", "id", s->id));
    send_json(p, "POST", "/v1/txn", json_pack("{s:o}", "changes", changes), s && !may_change(p, s));
}

static void act_on(struct person *p, enum kind kind, const char *method, const char *verb, json_t *body)
{
    const struct seen *s = target(p, kind);
    char path[256];
    if (!s) {
        json_decref(body);
        return;
    }
    (void)snprintf(path, sizeof path, "/v1/%s/%s%s%s", kinds[kind].plural, s->id, *verb ? "/" : "", verb);
    if (!chance_in(&p->w->people_luck, 60)) {
        send_json(p, method, path, body, !may_change(p, s));
        return;
    }
    /* If-Match with an outdated revision, so the request must fail. */
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL, match[24];
    struct ask ask = {.method = method,
                      .path = path,
                      .body = text,
                      .if_match = str_u64(s->revision - 1, match),
                      .refuse = true,
                      .harmless = true,
                      .invariant = 20};
    user_ask(p, &ask);
    free(text);
    json_decref(body);
}

static enum kind some_kind(struct chance *luck)
{
    return CHANCE_PICK(luck, enum kind, KIND_APP, KIND_APP, KIND_JOB, KIND_JOB, KIND_JOB, KIND_VM);
}

static void change(struct person *p)
{
    struct chance *luck = &p->w->people_luck;
    switch (chance_below(luck, 13)) {
    case 0:
    case 1:
    case 2: act_on(p, KIND_APP, "POST", "scale", json_pack("{s:i}", "replicas", (int)chance_range(luck, 0, 6))); break;
    case 3:
    case 4: {
        json_t *body = body_patch(luck);
        act_on(p, some_kind(luck), "PATCH", "", body);
        break;
    }
    case 5: {
        const char *verb = CHANCE_PICK(luck, char *, "stop", "start", "start", "restart");
        act_on(p, CHANCE_PICK(luck, enum kind, KIND_APP, KIND_VM), "POST", verb, NULL);
        break;
    }
    case 6:
    case 7:
        act_on(p, KIND_JOB, "POST", CHANCE_PICK(luck, char *, "hold", "release", "release", "cancel", "requeue"), NULL);
        break;
    case 8: act_on(p, KIND_APP, "PUT", "", body_app(luck)); break;
    case 9: act_on(p, KIND_JOB, "PUT", "", body_job(luck)); break;
    case 12: act_on(p, KIND_JOB, "PATCH", "", batch_patch(p->w)); break;
    case 10: act_on(p, KIND_APP, "PUT", "settings", json_pack("{s:s}", "colour", "green")); break;
    default: act_on(p, KIND_APP, "POST", CHANCE_PICK(luck, char *, "stop", "start"), NULL); break;
    }
}

/* Checks that a user without a role sees only its own workloads. */
static void looked(struct world *w, void *ctx, const struct outcome *o)
{
    const struct person *p = ctx;
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(o->body, "items"), i, item)
    {
        const char *owner = json_string_value(json_object_get(item, "owner"));
        if (owner && strcmp(owner, p->id) != 0)
            world_breach(w, 21, "%s is shown %s's", p->id, owner);
    }
}

static void look(struct person *p)
{
    struct chance *luck = &p->w->people_luck;
    enum kind kind = some_kind(luck);
    const struct seen *s = target(p, kind);
    char path[256];
    (void)snprintf(path, sizeof path, "/v1/%s", kinds[kind].plural);
    if (s && chance_in(luck, 500))
        (void)snprintf(path, sizeof path, "/v1/%s%s/%s", chance_in(luck, 500) ? "" : "why/", kinds[kind].plural, s->id);
    struct ask ask = {.method = "GET", .path = path, .harmless = true, .invariant = 20, .ctx = p};
    if (strcmp(p->role, "user") == 0)
        ask.then = looked;
    if (chance_in(luck, 200))
        ask.path = CHANCE_PICK(luck, char *, "/v1/events", "/v1/whoami", "/v1/services", "/v1/nodes", "/healthz");
    user_ask(p, &ask);
}

/* ---- misuse ----------------------------------------------------------------------------------------------------- */

static void wrong_body(struct person *p)
{
    struct chance *luck = &p->w->people_luck;
    size_t len;
    const char *text = body_wrong(luck, &len);
    struct ask ask = {.method = "POST",
                      .path = CHANCE_PICK(luck, char *, "/v1/apps", "/v1/jobs", "/v1/vms"),
                      .body = text,
                      .body_len = len,
                      .refuse = true,
                      .harmless = true,
                      .invariant = 20};
    user_ask(p, &ask);
}

static void wrong_token(struct person *p)
{
    struct chance *luck = &p->w->people_luck;
    char token[TOKEN_TEXT_MAX];
    (void)snprintf(token, sizeof token, "%s", p->token);
    size_t len = strlen(token);
    if (len > 4)
        token[len - 1 - chance_below(luck, 4)] ^= 1;
    struct ask ask = {.method = "POST",
                      .path = "/v1/jobs",
                      .token = chance_in(luck, 500) ? token : CHANCE_PICK(luck, char *, "", "berth_", "berth_a_b", "x"),
                      .body = "{}",
                      .refuse = true,
                      .harmless = true,
                      .invariant = 20};
    user_ask(p, &ask);
}

/* Sends requests that only administrators may send. */
static void beyond(struct person *p)
{
    struct chance *luck = &p->w->people_luck;
    static const struct {
        const char *method, *path, *body;
    } rows[] = {
        {"POST",   "/v1/nodes",               "{\"id\": \"mine\"}"                    },
        {"POST",   "/v1/users",               "{\"id\": \"eve\", \"role\": \"admin\"}"},
        {"POST",   "/v1/nodes/n1/drain",      ""                                      },
        {"DELETE", "/v1/nodes/n1",            ""                                      },
        {"PATCH",  "/v1/system/settings",     "{}"                                    },
        {"POST",   "/v1/users/admin/disable", ""                                      },
        {"POST",   "/v1/nodes/n1/report",     "{\"epoch\": 99, \"seq\": 1}"           },
        {"POST",   "/v1/tokens",              "{\"user\": \"admin\"}"                 },
        {"POST",   "/v1/tokens",              "{\"node\": \"n1\"}"                    },
        {"PUT",    "/v1/nowhere",             "{}"                                    },
    };
    size_t at = chance_below(luck, sizeof rows / sizeof *rows);
    struct ask ask = {.method = rows[at].method,
                      .path = rows[at].path,
                      .body = *rows[at].body ? rows[at].body : NULL,
                      .refuse = true,
                      .harmless = true,
                      .invariant = 20};
    if (strcmp(p->role, "user") == 0 || strcmp(p->role, "viewer") == 0)
        user_ask(p, &ask);
}

/* Uses an idempotency key again, with the same or with another request. */
static void repeat(struct person *p)
{
    struct chance *luck = &p->w->people_luck;
    if (!p->kept_len)
        return;
    const struct kept_request *k = &p->kept[chance_below(luck, p->kept_len)];
    const struct kept_request *other = chance_in(luck, 700) ? k : &p->kept[chance_below(luck, p->kept_len)];
    struct ask ask = {.method = other->method, .path = other->path, .body = other->body, .key = k->key};
    user_ask(p, &ask);
    if (chance_in(luck, 300)) /* concurrently */
        user_ask(p, &ask);
}

/* ---- schedule of actions ---------------------------------------------------------------------------------------- */

static void act(struct world *w, struct person *p)
{
    size_t draw = chance_below(&w->people_luck, 100);
    size_t works = w->mirror.of[KIND_JOB].len + w->mirror.of[KIND_APP].len + w->mirror.of[KIND_VM].len;
    if (draw < 23 && works > WORKS_MAX * w->people->at.len) /* old workloads are deleted */
        act_on(p, some_kind(&w->people_luck), "DELETE", "", NULL);
    else if (draw < 23)
        create(p);
    else if (draw < 26)
        transact(p);
    else if (draw < 57)
        change(p);
    else if (draw < 66)
        act_on(p, some_kind(&w->people_luck), "DELETE", "", NULL);
    else if (draw < 78)
        look(p);
    else if (draw < 84)
        wrong_body(p);
    else if (draw < 87)
        wrong_token(p);
    else if (draw < 90)
        beyond(p);
    else
        repeat(p);
}

static void live(struct world *w, void *arg)
{
    struct person *p = arg;
    unsigned rate = w->options->rates.people ? w->options->rates.people : 100;
    struct chance *luck = &w->people_luck;
    if (w->calm)
        return;
    /* Does a few actions in a row, then pauses. */
    int64_t pause_ns =
        chance_in(luck, 500) ? chance_range(luck, MILLISECOND, 2 * SECOND) : chance_range(luck, SECOND, MINUTE);
    world_later(w, pause_ns * 100 / rate, live, p, NULL);
    if (p->token[0])
        act(w, p);
}

static void administer(struct world *w, void *arg)
{
    unsigned rate = w->options->rates.people ? w->options->rates.people : 100;
    struct chance *luck = &w->people_luck;
    bool busy = admin_set_up(w);
    if (!busy && w->calm)
        busy = batch_calm(w);
    if (!busy && !w->calm)
        admin_act(w);
    world_later(w, busy ? 100 * MILLISECOND : chance_range(luck, SECOND, 40 * SECOND) * 100 / rate, administer, arg,
                NULL);
}

struct people *people_new(struct world *w, const char *admin_token)
{
    static const char *const roles[] = {"user", "user", "manager", "user", "viewer", "user", "user", "operator"};
    struct people *all = mem_zalloc(sizeof *all);
    struct chance *luck = &w->people_luck;
    size_t users = w->options->users ? w->options->users : (size_t)chance_range(luck, 3, 9);
    (void)snprintf(all->admin_token, sizeof all->admin_token, "%s", admin_token);
    all->nodes = w->options->nodes ? w->options->nodes : (size_t)chance_range(luck, 3, 14);
    for (size_t i = 0; i < users && i < USERS_MAX; i++) {
        struct person *p = mem_zalloc(sizeof *p);
        p->w = w;
        (void)snprintf(p->id, sizeof p->id, "user%zu", i);
        if (i % 5 != 4)
            (void)snprintf(p->group, sizeof p->group, "group%zu", i % 3);
        p->role = roles[i % (sizeof roles / sizeof *roles)];
        vec_push(&all->at, p);
        world_later(w, chance_range(luck, SECOND, 20 * SECOND), live, p, NULL);
    }
    world_later(w, MILLISECOND, administer, NULL, NULL);
    return all;
}

void people_free(struct people *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < all->at.len; i++) {
        for (size_t k = 0; k < KEPT_REQUESTS; k++)
            kept_done(&all->at.at[i]->kept[k]);
        mem_free(all->at.at[i]);
    }
    for (size_t i = 0; i < all->asking.len; i++)
        mem_free(all->asking.at[i]);
    vec_done(&all->at);
    vec_done(&all->asking);
    mem_free(all);
}

const char *people_admin_token(const struct world *w)
{
    return w->people->admin_token;
}

bool people_watcher(const struct world *w, const char **ret_user, const char **ret_token)
{
    const struct person *p = w->people->at.len ? w->people->at.at[0] : NULL;
    if (!p || !p->token[0])
        return false;
    *ret_user = p->id;
    *ret_token = p->token;
    return true;
}
