/* batch.c - random batch requests: jobs, queues, quotas, policies, windows. */
#include "sim/cluster/batch.h"

#include <stdio.h>
#include <string.h>

#include "control/system/settings_table.h"

enum { AFTER_DRAWN_MAX = 2 };

static void set(json_t *doc, const char *key, json_t *value)
{
    (void)json_object_set_new(doc, key, value);
}

static json_t *number_text(struct random_stream *rng, int64_t low, int64_t high, const char *unit)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%d%s", (int)random_range(rng, low, high), unit);
    return json_string(text);
}

static const char *queue_name(struct random_stream *rng)
{
    return RANDOM_PICK(rng, char *, "low", "prod", "lab", "deep", "default");
}

/* ---- jobs ------------------------------------------------------------------------------------------------------- */

static void one_of_none(json_t *doc)
{
    (void)json_object_del(doc, "gang");
    (void)json_object_del(doc, "gang_min");
    (void)json_object_del(doc, "replicas");
}

static void array(struct random_stream *rng, json_t *doc)
{
    one_of_none(doc);
    json_t *array = json_pack("{s:i, s:i}", "from", 0, "to", (int)random_range(rng, 0, 9));
    if (random_per_mille(rng, 600))
        set(array, "parallel", json_integer(random_range(rng, 1, 4)));
    set(doc, "array", array);
}

static void elastic(struct random_stream *rng, json_t *doc)
{
    int64_t least = random_range(rng, 1, 3);
    one_of_none(doc);
    set(doc, "min", json_integer(least));
    set(doc, "max", json_integer(least + random_range(rng, 0, 4)));
}

static void roles(struct random_stream *rng, json_t *doc)
{
    json_t *worker = json_pack("{s:s, s:i}", "name", "worker", "replicas", (int)random_range(rng, 1, 4));
    one_of_none(doc);
    (void)json_object_del(doc, "ports");
    if (random_per_mille(rng, 300))
        set(worker, "min", json_integer(1));
    set(doc, "roles", json_pack("[{s:s, s:i}, o]", "name", "driver", "replicas", 1, worker));
}

/* Adds dependencies on existing jobs, finished or not. Some belong to other users, some are deleted before the request
 * runs. */
static void after(struct sim_world *w, json_t *doc)
{
    struct random_stream *rng = &w->users_rng;
    json_t *list = json_array();
    for (int64_t n = random_range(rng, 1, AFTER_DRAWN_MAX); n > 0 && w->mirror.of[KIND_JOB].len; n--) {
        const struct mirror_doc *job = w->mirror.of[KIND_JOB].at[random_below(rng, w->mirror.of[KIND_JOB].len)];
        int64_t number = 0;
        if (str_parse_i64(job->id, &number))
            (void)json_array_append_new(
                list, json_pack("{s:I, s:s}", "job", (json_int_t)number, "when",
                                RANDOM_PICK(rng, char *, "ok", "ok", "started", "failed", "ended", "ended")));
    }
    set(doc, "after", list);
}

static void times(struct sim_world *w, json_t *doc)
{
    struct random_stream *rng = &w->users_rng;
    if (random_per_mille(rng, 250))
        set(doc, "time_limit", number_text(rng, 20, 900, "s"));
    if (random_per_mille(rng, 250))
        set(doc, "estimate", number_text(rng, 5, 900, "s"));
    if (random_per_mille(rng, 30))
        set(doc, "deadline", json_integer(world_wall_ns(w) / SECOND + random_range(rng, 30, 1800)));
    if (random_per_mille(rng, 50))
        set(doc, "min_run", number_text(rng, 0, 120, "s"));
}

json_t *batch_job(struct sim_world *w)
{
    struct random_stream *rng = &w->users_rng;
    json_t *doc = body_job(rng);
    if (random_per_mille(rng, 200)) /* large enough to block other jobs */
        set(json_object_get(doc, "requests"), "cpu", json_integer(random_range(rng, 2, 5)));
    size_t sort = random_below(rng, 100);
    if (sort < 12)
        array(rng, doc);
    else if (sort < 20)
        elastic(rng, doc);
    else if (sort < 28)
        roles(rng, doc);
    if (random_per_mille(rng, 300))
        set(doc, "queue", json_string(queue_name(rng)));
    if (random_per_mille(rng, 250))
        set(doc, "priority", json_integer(random_range(rng, -5, 10)));
    if (random_per_mille(rng, 300))
        set(doc, "name", json_string(RANDOM_PICK(rng, char *, "train", "sweep", "etl")));
    if (json_object_get(doc, "name") && random_per_mille(rng, 250))
        set(doc, "singleton", json_true());
    if (random_per_mille(rng, 100))
        after(w, doc);
    times(w, doc);
    if (random_per_mille(rng, 60))
        set(doc, "preempt", json_string(RANDOM_PICK(rng, char *, "requeue", "cancel")));
    if (random_per_mille(rng, 60))
        set(doc, RANDOM_PICK(rng, char *, "preemptible", "requeue"), json_false());
    if (random_per_mille(rng, 40))
        set(doc, "urgency", json_integer(random_range(rng, -10, 10)));
    return doc;
}

json_t *batch_patch(struct sim_world *w)
{
    struct random_stream *rng = &w->users_rng;
    json_t *doc = json_object();
    switch (random_below(rng, 4)) {
    case 0: set(doc, "queue", json_string(queue_name(rng))); break;
    case 1: set(doc, "time_limit", random_per_mille(rng, 300) ? json_null() : number_text(rng, 20, 900, "s")); break;
    case 2: set(doc, "priority", json_integer(random_range(rng, -5, 10))); break;
    default: set(doc, "estimate", number_text(rng, 5, 900, "s")); break;
    }
    return doc;
}

/* ---- quotas ----------------------------------------------------------------------------------------------------- */

/* Returns limits in proportion to `size`, which is larger for a group or for a queue with child queues. */
static json_t *amounts(struct random_stream *rng, int64_t size)
{
    json_t *doc = json_object();
    if (random_per_mille(rng, 500))
        set(doc, "cpu", number_text(rng, size, 8 * size, ""));
    if (random_per_mille(rng, 200))
        set(doc, "memory", number_text(rng, 4 * size, 40 * size, "Gi"));
    if (random_per_mille(rng, 500))
        set(doc, "pods", json_integer(random_range(rng, 2 * size, 10 * size)));
    if (random_per_mille(rng, 200))
        set(doc, "gpu", json_integer(random_range(rng, 1, 2 * size)));
    return doc;
}

static json_t *quota(struct random_stream *rng, int64_t size)
{
    if (random_per_mille(rng, 250))
        return json_null();
    json_t *doc = json_object();
    if (random_per_mille(rng, 800)) {
        json_t *limits = amounts(rng, size);
        if (random_per_mille(rng, 150))
            set(limits, "jobs", json_integer(random_range(rng, 1, 6 * size)));
        set(doc, "limits", limits);
    }
    if (random_per_mille(rng, 250))
        set(doc, "guarantees", amounts(rng, size));
    if (random_per_mille(rng, 40)) {
        const char *period = RANDOM_PICK(rng, char *, "10m", "1h");
        int hours = (int)random_range(rng, 1, 20);
        set(doc, "totals", json_pack("[{s:s, s:i, s:s}]", "resource", "cpu", "hours", hours, "period", period));
    }
    return doc;
}

static void quota_act(struct sim_world *w)
{
    struct random_stream *rng = &w->users_rng;
    char path[128];
    const struct sim_user *p = w->people->at.len ? w->people->at.at[random_below(rng, w->people->at.len)] : NULL;
    if (!p)
        return;
    bool group = p->group[0] && random_per_mille(rng, 400);
    (void)snprintf(path, sizeof path, "/v1/%s/%s", group ? "groups" : "users", group ? p->group : p->id);
    json_t *body = json_pack("{s:o}", "quota", quota(rng, group ? 4 : 2));
    if (random_per_mille(rng, 200))
        set(body, "weight", json_integer(random_range(rng, 1, 5)));
    if (random_per_mille(rng, 200))
        set(body, "level", json_integer(random_range(rng, 0, 100)));
    admin_ask(w, "PATCH", path, body, NULL, NULL, NULL, NULL);
}

/* ---- queues ----------------------------------------------------------------------------------------------------- */

static void queue_act(struct sim_world *w)
{
    struct random_stream *rng = &w->users_rng;
    const char *name = queue_name(rng);
    char path[64];
    (void)snprintf(path, sizeof path, "/v1/queues/%s", name);
    if (random_per_mille(rng, 60)) {
        admin_ask(w, "DELETE", path, NULL, NULL, NULL, NULL, NULL);
        return;
    }
    int class = random_per_mille(rng, 500) ? 0 : (int)random_range(rng, -3, 6), priority = (int)random_range(rng, 0, 3);
    json_t *body = json_pack("{s:i, s:i}", "priority", priority, "priority_class", class);
    if (strcmp(name, "lab") == 0 || strcmp(name, "deep") == 0)
        set(body, "parent", json_string(strcmp(name, "lab") == 0 ? "prod" : "lab"));
    if (random_per_mille(rng, 500))
        set(body, "policy", json_string(RANDOM_PICK(rng, char *, "fifo", "fair-share", "multifactor", "priority")));
    if (random_per_mille(rng, 300))
        set(body, "quota", quota(rng, 3));
    if (random_per_mille(rng, 80))
        set(body, "share", json_true());
    if (random_per_mille(rng, 150))
        set(body, "time_limit", number_text(rng, 60, 900, "s"));
    if (random_per_mille(rng, 80))
        set(body, "groups", json_pack("[s]", "group1"));
    admin_ask(w, "PUT", path, body, NULL, NULL, NULL, NULL);
}

/* ---- windows and settings --------------------------------------------------------------------------------------- */

static void window_act(struct sim_world *w)
{
    struct random_stream *rng = &w->users_rng;
    size_t nodes = w->mirror.of[KIND_NODE].len;
    char path[64];
    (void)snprintf(path, sizeof path, "/v1/windows/w%zu", random_below(rng, 2));
    if (random_per_mille(rng, 400) || !nodes) {
        admin_ask(w, "DELETE", path, NULL, NULL, NULL, NULL, NULL);
        return;
    }
    const char *node = w->mirror.of[KIND_NODE].at[random_below(rng, nodes)]->id;
    json_t *duration = number_text(rng, 1, 8, "m");
    json_int_t start = world_wall_ns(w) / SECOND + random_range(rng, 0, 600);
    json_t *body = json_pack("{s:I, s:o, s:[s]}", "start", start, "duration", duration, "nodes", node);
    if (random_per_mille(rng, 500))
        set(body, "maintenance", json_true());
    else
        set(body, "groups", json_pack("[s]", "group1"));
    admin_ask(w, "PUT", path, body, NULL, NULL, NULL, NULL);
}

static void order_act(struct sim_world *w)
{
    struct random_stream *rng = &w->users_rng;
    json_t *body = json_object();
    switch (random_below(rng, 6)) {
    case 0: set(body, "preemption", json_string(random_per_mille(rng, 800) ? "on" : "off")); break;
    case 1: set(body, "backfill", json_string(RANDOM_PICK(rng, char *, "on", "on", "on", "strict", "off"))); break;
    case 2:
        set(body, "preempt_min_run_s", json_integer(random_range(rng, 0, random_per_mille(rng, 700) ? 10 : 90)));
        break;
    case 3: set(body, "reservations", json_integer(random_range(rng, 0, 100))); break;
    case 4: set(body, "backfill_policy", json_string(RANDOM_PICK(rng, char *, "", "sjf", "f1"))); break;
    default:
        set(body, "policy", json_string(RANDOM_PICK(rng, char *, "fifo", "fair-share", "multifactor", "sjf")));
        break;
    }
    admin_ask(w, "PATCH", "/v1/system/settings", body, NULL, NULL, NULL, NULL);
}

void batch_act(struct sim_world *w)
{
    size_t draw = random_below(&w->users_rng, 100);
    if (draw < 45)
        quota_act(w);
    else if (draw < 70)
        queue_act(w);
    else if (draw < 78)
        window_act(w);
    else
        order_act(w);
}

bool batch_calm(struct sim_world *w)
{
    const struct mirror_doc *settings = mirror_find(&w->mirror, KIND_SETTING, SETTINGS_ID);
    const char *backfill = settings ? json_string_value(json_object_get(settings->doc, "backfill")) : NULL;
    char path[64];
    if (backfill && strcmp(backfill, "strict") == 0) {
        admin_ask(w, "PATCH", "/v1/system/settings", json_pack("{s:s}", "backfill", "on"), NULL, NULL, NULL, NULL);
        return true;
    }
    if (!w->mirror.of[KIND_WINDOW].len)
        return false;
    (void)snprintf(path, sizeof path, "/v1/windows/%s", w->mirror.of[KIND_WINDOW].at[0]->id);
    admin_ask(w, "DELETE", path, NULL, NULL, NULL, NULL, NULL);
    return true;
}
