/* users.c - simulated users of several groups, who use and misuse the API.
 *
 * Targets are drawn from all existing objects, so requests for objects of other users are frequent.
 */
#include "sim/cluster/users.h"

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

static void kept_done(struct repeatable_request *k)
{
    mem_free(k->method);
    mem_free(k->path);
    mem_free(k->body);
    mem_free(k->key);
}

static void keep(struct sim_user *p, const struct sim_request *ask)
{
    size_t at =
        p->kept_len < REPEATABLE_REQUESTS_MAX ? p->kept_len++ : random_below(&p->w->users_rng, REPEATABLE_REQUESTS_MAX);
    struct repeatable_request *k = &p->kept[at];
    kept_done(k);
    *k = (struct repeatable_request){dup_or_null(ask->method), dup_or_null(ask->path), dup_or_null(ask->body),
                                     dup_or_null(ask->key)};
}

/* Sends a request, sometimes with an idempotency key. A request with a key may be repeated. */
static void user_send(struct sim_user *p, struct sim_request *ask)
{
    struct sim_world *w = p->w;
    char key[ID_MAX + 32];
    ask->who = p->id;
    if (!ask->token)
        ask->token = p->token;
    if (strcmp(ask->method, "GET") != 0 && !ask->key && random_per_mille(&w->users_rng, 400)) {
        (void)snprintf(key, sizeof key, "%s-%" PRIu64, p->id, ++p->keys);
        ask->key = key;
        if (!ask->query[0] && !ask->refuse && !ask->body_len && !ask->if_match)
            keep(p, ask);
    }
    world_trace(w, "%s: %s %s%s%s", p->id, ask->method, ask->path, ask->key ? " with key " : "",
                ask->key ? ask->key : "");
    (void)world_request(w, ask);
}

/* ---- targets ---------------------------------------------------------------------------------------------------- */

/* Returns a workload of the kind, mostly one of the user; NULL: none. */
static const struct mirror_doc *target(struct sim_user *p, enum kind kind)
{
    struct sim_world *w = p->w;
    size_t len = w->mirror.of[kind].len;
    bool any = random_per_mille(&w->users_rng, 80);
    for (size_t tries = 0; tries < 12 && len; tries++) {
        const struct mirror_doc *s = w->mirror.of[kind].at[random_below(&w->users_rng, len)];
        if (any || strcmp(s->work.owner ? s->work.owner : "", p->id) == 0)
            return s;
    }
    return NULL;
}

/* Returns whether the user may change the workload. Users who may not even see it get 404. */
static bool may_change(const struct sim_user *p, const struct mirror_doc *s)
{
    const struct mirror_doc *user = mirror_find(&p->w->mirror, KIND_USER, p->id);
    const char *in = user && user->user.group ? user->user.group : "";
    bool own = strcmp(s->work.owner ? s->work.owner : "", p->id) == 0;
    bool group = *in && strcmp(s->work.group ? s->work.group : "", in) == 0;
    return (own && strcmp(p->role, "viewer") != 0) || (group && strcmp(p->role, "manager") == 0) ||
           strcmp(p->role, "operator") == 0;
}

/* ---- actions ---------------------------------------------------------------------------------------------------- */

static void send_json(struct sim_user *p, const char *method, const char *path, json_t *body, bool refuse)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    struct sim_request ask = {.method = method, .path = path, .body = text, .refuse = refuse, .invariant = 21};
    struct random_stream *rng = &p->w->users_rng;
    size_t len = strlen(path), at = 0;
    if (len > 5 && strcmp(path + len - 5, "/hold") == 0) { /* also stops a running job */
        ask.query[at++] = "stop";
        ask.query[at++] = "true";
    }
    if (random_per_mille(rng, 30)) {
        ask.query[at++] = "dry_run";
        ask.query[at++] = "true";
        ask.harmless = true;
        ask.invariant = 20;
        ask.refuse = false;
    }
    user_send(p, &ask);
    free(text);
    json_decref(body);
}

static void name(struct random_stream *rng, json_t *body)
{
    char text[48];
    size_t number = random_below(rng, 12);
    (void)snprintf(text, sizeof text, "%s%zu", RANDOM_PICK(rng, char *, "web", "db", "Photos", "n"), number);
    (void)json_object_set_new(body, "name", json_string(text));
}

/* Adds a volume, if there is one. It may belong to another user, and is then treated as missing. */
static void mount(struct sim_user *p, json_t *body)
{
    const struct mirror *m = &p->w->mirror;
    struct random_stream *rng = &p->w->users_rng;
    size_t len = m->of[KIND_VOLUME].len;
    if (len && random_per_mille(rng, 80))
        (void)json_object_set_new(body, "volumes", json_pack("[s]", m->of[KIND_VOLUME].at[random_below(rng, len)]->id));
}

static void create(struct sim_user *p)
{
    struct random_stream *rng = &p->w->users_rng;
    bool refuse = strcmp(p->role, "viewer") == 0;
    size_t kind = random_below(rng, 20);
    const char *path = kind < 8 ? "/v1/apps" : kind < 17 ? "/v1/jobs" : kind < 19 ? "/v1/vms" : "/v1/volumes";
    json_t *body = kind < 8 ? body_app(rng) : kind < 17 ? batch_job(p->w) : kind < 19 ? body_vm(rng) : NULL;
    if (!body) {
        char id[24];
        (void)snprintf(id, sizeof id, "vol%zu", random_below(rng, 8));
        body = json_pack("{s:s, s:b}", "id", id, "shared", random_per_mille(rng, 300));
        if (random_per_mille(rng, 300))
            (void)json_object_set_new(body, "zone", json_string(RANDOM_PICK(rng, char *, "a", "b")));
    } else {
        mount(p, body);
        if (kind < 8 || kind >= 17)
            name(rng, body);
        if (random_per_mille(rng, 30)) /* begins later */
            (void)json_object_set_new(body, "begin",
                                      json_integer(world_wall_ns(p->w) / SECOND + random_range(rng, -60, 120)));
    }
    send_json(p, "POST", path, body, refuse);
}

/* Sends several changes in one transaction, which is executed completely or not at all. */
static void transact(struct sim_user *p)
{
    struct random_stream *rng = &p->w->users_rng;
    const struct mirror_doc *s = target(p, KIND_JOB);
    json_t *app = body_app(rng), *changes = json_array();
    name(rng, app);
    (void)json_array_append_new(changes,
                                json_pack("{s:s, s:s, s:o}", "op", "put", "kind", "job", "object", body_job(rng)));
    if (random_per_mille(rng, 700))
        (void)json_array_append_new(changes, json_pack("{s:s, s:s, s:o}", "op", "put", "kind", "app", "object", app));
    else
        json_decref(app);
    if (s)
        (void)json_array_append_new(changes, json_pack("{s:s, s:s, s:s}", "op", "delete", "kind", "job", "id", s->id));
    send_json(p, "POST", "/v1/txn", json_pack("{s:o}", "changes", changes), s && !may_change(p, s));
}

static void act_on(struct sim_user *p, enum kind kind, const char *method, const char *verb, json_t *body)
{
    const struct mirror_doc *s = target(p, kind);
    char path[256];
    if (!s) {
        json_decref(body);
        return;
    }
    (void)snprintf(path, sizeof path, "/v1/%s/%s%s%s", kinds[kind].plural, s->id, *verb ? "/" : "", verb);
    if (!random_per_mille(&p->w->users_rng, 60)) {
        send_json(p, method, path, body, !may_change(p, s));
        return;
    }
    /* If-Match with an outdated revision, so the request must fail. */
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL, match[24];
    struct sim_request ask = {.method = method,
                              .path = path,
                              .body = text,
                              .if_match = str_u64(s->revision - 1, match),
                              .refuse = true,
                              .harmless = true,
                              .invariant = 20};
    user_send(p, &ask);
    free(text);
    json_decref(body);
}

static enum kind some_kind(struct random_stream *rng)
{
    return RANDOM_PICK(rng, enum kind, KIND_APP, KIND_APP, KIND_JOB, KIND_JOB, KIND_JOB, KIND_VM);
}

static void change(struct sim_user *p)
{
    struct random_stream *rng = &p->w->users_rng;
    switch (random_below(rng, 13)) {
    case 0:
    case 1:
    case 2: act_on(p, KIND_APP, "POST", "scale", json_pack("{s:i}", "replicas", (int)random_range(rng, 0, 6))); break;
    case 3:
    case 4: {
        json_t *body = body_patch(rng);
        act_on(p, some_kind(rng), "PATCH", "", body);
        break;
    }
    case 5: {
        const char *verb = RANDOM_PICK(rng, char *, "stop", "start", "start", "restart");
        act_on(p, RANDOM_PICK(rng, enum kind, KIND_APP, KIND_VM), "POST", verb, NULL);
        break;
    }
    case 6:
    case 7:
        act_on(p, KIND_JOB, "POST", RANDOM_PICK(rng, char *, "hold", "release", "release", "cancel", "requeue"), NULL);
        break;
    case 8: act_on(p, KIND_APP, "PUT", "", body_app(rng)); break;
    case 9: act_on(p, KIND_JOB, "PUT", "", body_job(rng)); break;
    case 12: act_on(p, KIND_JOB, "PATCH", "", batch_patch(p->w)); break;
    case 10: act_on(p, KIND_APP, "PUT", "settings", json_pack("{s:s}", "colour", "green")); break;
    default: act_on(p, KIND_APP, "POST", RANDOM_PICK(rng, char *, "stop", "start"), NULL); break;
    }
}

/* Checks that a user without a role sees only its own workloads. */
static void list_answered(struct sim_world *w, void *ctx, const struct request_outcome *o)
{
    const struct sim_user *p = ctx;
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(o->body, "items"), i, item)
    {
        const char *owner = json_string_value(json_object_get(item, "owner"));
        if (owner && strcmp(owner, p->id) != 0)
            world_breach(w, 21, "%s is shown %s's", p->id, owner);
    }
}

static void look(struct sim_user *p)
{
    struct random_stream *rng = &p->w->users_rng;
    enum kind kind = some_kind(rng);
    const struct mirror_doc *s = target(p, kind);
    char path[256];
    (void)snprintf(path, sizeof path, "/v1/%s", kinds[kind].plural);
    if (s && random_per_mille(rng, 500))
        (void)snprintf(path, sizeof path, "/v1/%s%s/%s", random_per_mille(rng, 500) ? "" : "why/", kinds[kind].plural,
                       s->id);
    struct sim_request ask = {.method = "GET", .path = path, .harmless = true, .invariant = 20, .ctx = p};
    if (strcmp(p->role, "user") == 0)
        ask.then = list_answered;
    if (random_per_mille(rng, 200))
        ask.path = RANDOM_PICK(rng, char *, "/v1/events", "/v1/whoami", "/v1/services", "/v1/nodes", "/healthz");
    user_send(p, &ask);
}

/* ---- misuse ----------------------------------------------------------------------------------------------------- */

static void wrong_body(struct sim_user *p)
{
    struct random_stream *rng = &p->w->users_rng;
    size_t len;
    const char *text = body_invalid(rng, &len);
    struct sim_request ask = {.method = "POST",
                              .path = RANDOM_PICK(rng, char *, "/v1/apps", "/v1/jobs", "/v1/vms"),
                              .body = text,
                              .body_len = len,
                              .refuse = true,
                              .harmless = true,
                              .invariant = 20};
    user_send(p, &ask);
}

static void wrong_token(struct sim_user *p)
{
    struct random_stream *rng = &p->w->users_rng;
    char token[TOKEN_TEXT_MAX];
    (void)snprintf(token, sizeof token, "%s", p->token);
    size_t len = strlen(token);
    if (len > 4)
        token[len - 1 - random_below(rng, 4)] ^= 1;
    struct sim_request ask = {
        .method = "POST",
        .path = "/v1/jobs",
        .token = random_per_mille(rng, 500) ? token : RANDOM_PICK(rng, char *, "", "berth_", "berth_a_b", "x"),
        .body = "{}",
        .refuse = true,
        .harmless = true,
        .invariant = 20};
    user_send(p, &ask);
}

/* Sends requests that only administrators may send. */
static void forbidden_request(struct sim_user *p)
{
    struct random_stream *rng = &p->w->users_rng;
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
    size_t at = random_below(rng, sizeof rows / sizeof *rows);
    struct sim_request ask = {.method = rows[at].method,
                              .path = rows[at].path,
                              .body = *rows[at].body ? rows[at].body : NULL,
                              .refuse = true,
                              .harmless = true,
                              .invariant = 20};
    if (strcmp(p->role, "user") == 0 || strcmp(p->role, "viewer") == 0)
        user_send(p, &ask);
}

/* Uses an idempotency key again, with the same or with another request. */
static void repeat(struct sim_user *p)
{
    struct random_stream *rng = &p->w->users_rng;
    if (!p->kept_len)
        return;
    const struct repeatable_request *k = &p->kept[random_below(rng, p->kept_len)];
    const struct repeatable_request *other = random_per_mille(rng, 700) ? k : &p->kept[random_below(rng, p->kept_len)];
    struct sim_request ask = {.method = other->method, .path = other->path, .body = other->body, .key = k->key};
    user_send(p, &ask);
    if (random_per_mille(rng, 300)) /* concurrently */
        user_send(p, &ask);
}

/* ---- schedule of actions ---------------------------------------------------------------------------------------- */

static void act(struct sim_world *w, struct sim_user *p)
{
    size_t draw = random_below(&w->users_rng, 100);
    size_t works = w->mirror.of[KIND_JOB].len + w->mirror.of[KIND_APP].len + w->mirror.of[KIND_VM].len;
    if (draw < 23 && works > WORKS_MAX * w->people->at.len) /* old workloads are deleted */
        act_on(p, some_kind(&w->users_rng), "DELETE", "", NULL);
    else if (draw < 23)
        create(p);
    else if (draw < 26)
        transact(p);
    else if (draw < 57)
        change(p);
    else if (draw < 66)
        act_on(p, some_kind(&w->users_rng), "DELETE", "", NULL);
    else if (draw < 78)
        look(p);
    else if (draw < 84)
        wrong_body(p);
    else if (draw < 87)
        wrong_token(p);
    else if (draw < 90)
        forbidden_request(p);
    else
        repeat(p);
}

static void user_act_loop(struct sim_world *w, void *arg)
{
    struct sim_user *p = arg;
    unsigned rate = w->options->rates.people ? w->options->rates.people : 100;
    struct random_stream *rng = &w->users_rng;
    if (w->calm)
        return;
    /* Does a few actions in a row, then pauses. */
    int64_t pause_ns =
        random_per_mille(rng, 500) ? random_range(rng, MILLISECOND, 2 * SECOND) : random_range(rng, SECOND, MINUTE);
    world_schedule(w, pause_ns * 100 / rate, user_act_loop, p, NULL);
    if (p->token[0])
        act(w, p);
}

static void admin_act_loop(struct sim_world *w, void *arg)
{
    unsigned rate = w->options->rates.people ? w->options->rates.people : 100;
    struct random_stream *rng = &w->users_rng;
    bool busy = admin_set_up(w);
    if (!busy && w->calm)
        busy = batch_calm(w);
    if (!busy && !w->calm)
        admin_act(w);
    world_schedule(w, busy ? 100 * MILLISECOND : random_range(rng, SECOND, 40 * SECOND) * 100 / rate, admin_act_loop,
                   arg, NULL);
}

struct sim_people *sim_users_new(struct sim_world *w, const char *admin_token)
{
    static const char *const roles[] = {"user", "user", "manager", "user", "viewer", "user", "user", "operator"};
    struct sim_people *all = mem_zalloc(sizeof *all);
    struct random_stream *rng = &w->users_rng;
    size_t users = w->options->users ? w->options->users : (size_t)random_range(rng, 3, 9);
    (void)snprintf(all->admin_token, sizeof all->admin_token, "%s", admin_token);
    all->nodes = w->options->nodes ? w->options->nodes : (size_t)random_range(rng, 3, 14);
    for (size_t i = 0; i < users && i < USERS_MAX; i++) {
        struct sim_user *p = mem_zalloc(sizeof *p);
        p->w = w;
        (void)snprintf(p->id, sizeof p->id, "user%zu", i);
        if (i % 5 != 4)
            (void)snprintf(p->group, sizeof p->group, "group%zu", i % 3);
        p->role = roles[i % (sizeof roles / sizeof *roles)];
        vec_push(&all->at, p);
        world_schedule(w, random_range(rng, SECOND, 20 * SECOND), user_act_loop, p, NULL);
    }
    world_schedule(w, MILLISECOND, admin_act_loop, NULL, NULL);
    return all;
}

void sim_users_free(struct sim_people *all)
{
    if (!all)
        return;
    for (size_t i = 0; i < all->at.len; i++) {
        for (size_t k = 0; k < REPEATABLE_REQUESTS_MAX; k++)
            kept_done(&all->at.at[i]->kept[k]);
        mem_free(all->at.at[i]);
    }
    for (size_t i = 0; i < all->asking.len; i++)
        mem_free(all->asking.at[i]);
    vec_done(&all->at);
    vec_done(&all->asking);
    mem_free(all);
}

const char *sim_users_admin_token(const struct sim_world *w)
{
    return w->people->admin_token;
}

bool sim_users_watcher(const struct sim_world *w, const char **ret_user, const char **ret_token)
{
    const struct sim_user *p = w->people->at.len ? w->people->at.at[0] : NULL;
    if (!p || !p->token[0])
        return false;
    *ret_user = p->id;
    *ret_token = p->token;
    return true;
}
