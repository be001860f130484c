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

static json_t *number_text(struct chance *luck, int64_t low, int64_t high, const char *unit)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%d%s", (int)chance_range(luck, low, high), unit);
    return json_string(text);
}

static const char *queue_name(struct chance *luck)
{
    return CHANCE_PICK(luck, char *, "low", "prod", "lab", "deep", "default");
}

/* ---- jobs ------------------------------------------------------------------------------------------------------- */

static void one_of_none(json_t *doc)
{
    (void)json_object_del(doc, "gang");
    (void)json_object_del(doc, "gang_min");
    (void)json_object_del(doc, "replicas");
}

static void array(struct chance *luck, json_t *doc)
{
    one_of_none(doc);
    json_t *array = json_pack("{s:i, s:i}", "from", 0, "to", (int)chance_range(luck, 0, 9));
    if (chance_in(luck, 600))
        set(array, "parallel", json_integer(chance_range(luck, 1, 4)));
    set(doc, "array", array);
}

static void elastic(struct chance *luck, json_t *doc)
{
    int64_t least = chance_range(luck, 1, 3);
    one_of_none(doc);
    set(doc, "min", json_integer(least));
    set(doc, "max", json_integer(least + chance_range(luck, 0, 4)));
}

static void roles(struct chance *luck, json_t *doc)
{
    json_t *worker = json_pack("{s:s, s:i}", "name", "worker", "replicas", (int)chance_range(luck, 1, 4));
    one_of_none(doc);
    (void)json_object_del(doc, "ports");
    if (chance_in(luck, 300))
        set(worker, "min", json_integer(1));
    set(doc, "roles", json_pack("[{s:s, s:i}, o]", "name", "driver", "replicas", 1, worker));
}

/* Adds dependencies on existing jobs, finished or not. Some belong to other users, some are deleted before the request
 * runs. */
static void after(struct world *w, json_t *doc)
{
    struct chance *luck = &w->people_luck;
    json_t *list = json_array();
    for (int64_t n = chance_range(luck, 1, AFTER_DRAWN_MAX); n > 0 && w->mirror.of[KIND_JOB].len; n--) {
        const struct seen *job = w->mirror.of[KIND_JOB].at[chance_below(luck, w->mirror.of[KIND_JOB].len)];
        int64_t number = 0;
        if (str_parse_i64(job->id, &number))
            (void)json_array_append_new(
                list, json_pack("{s:I, s:s}", "job", (json_int_t)number, "when",
                                CHANCE_PICK(luck, char *, "ok", "ok", "started", "failed", "ended", "ended")));
    }
    set(doc, "after", list);
}

static void times(struct world *w, json_t *doc)
{
    struct chance *luck = &w->people_luck;
    if (chance_in(luck, 250))
        set(doc, "time_limit", number_text(luck, 20, 900, "s"));
    if (chance_in(luck, 250))
        set(doc, "estimate", number_text(luck, 5, 900, "s"));
    if (chance_in(luck, 30))
        set(doc, "deadline", json_integer(world_wall_ns(w) / SECOND + chance_range(luck, 30, 1800)));
    if (chance_in(luck, 50))
        set(doc, "min_run", number_text(luck, 0, 120, "s"));
}

json_t *batch_job(struct world *w)
{
    struct chance *luck = &w->people_luck;
    json_t *doc = body_job(luck);
    if (chance_in(luck, 200)) /* large enough to block other jobs */
        set(json_object_get(doc, "requests"), "cpu", json_integer(chance_range(luck, 2, 5)));
    size_t sort = chance_below(luck, 100);
    if (sort < 12)
        array(luck, doc);
    else if (sort < 20)
        elastic(luck, doc);
    else if (sort < 28)
        roles(luck, doc);
    if (chance_in(luck, 300))
        set(doc, "queue", json_string(queue_name(luck)));
    if (chance_in(luck, 250))
        set(doc, "priority", json_integer(chance_range(luck, -5, 10)));
    if (chance_in(luck, 300))
        set(doc, "name", json_string(CHANCE_PICK(luck, char *, "train", "sweep", "etl")));
    if (json_object_get(doc, "name") && chance_in(luck, 250))
        set(doc, "singleton", json_true());
    if (chance_in(luck, 100))
        after(w, doc);
    times(w, doc);
    if (chance_in(luck, 60))
        set(doc, "preempt", json_string(CHANCE_PICK(luck, char *, "requeue", "cancel")));
    if (chance_in(luck, 60))
        set(doc, CHANCE_PICK(luck, char *, "preemptible", "requeue"), json_false());
    if (chance_in(luck, 40))
        set(doc, "urgency", json_integer(chance_range(luck, -10, 10)));
    return doc;
}

json_t *batch_patch(struct world *w)
{
    struct chance *luck = &w->people_luck;
    json_t *doc = json_object();
    switch (chance_below(luck, 4)) {
    case 0: set(doc, "queue", json_string(queue_name(luck))); break;
    case 1: set(doc, "time_limit", chance_in(luck, 300) ? json_null() : number_text(luck, 20, 900, "s")); break;
    case 2: set(doc, "priority", json_integer(chance_range(luck, -5, 10))); break;
    default: set(doc, "estimate", number_text(luck, 5, 900, "s")); break;
    }
    return doc;
}

/* ---- quotas ----------------------------------------------------------------------------------------------------- */

/* Returns limits in proportion to `size`, which is larger for a group or for a queue with child queues. */
static json_t *amounts(struct chance *luck, int64_t size)
{
    json_t *doc = json_object();
    if (chance_in(luck, 500))
        set(doc, "cpu", number_text(luck, size, 8 * size, ""));
    if (chance_in(luck, 200))
        set(doc, "memory", number_text(luck, 4 * size, 40 * size, "Gi"));
    if (chance_in(luck, 500))
        set(doc, "pods", json_integer(chance_range(luck, 2 * size, 10 * size)));
    if (chance_in(luck, 200))
        set(doc, "gpu", json_integer(chance_range(luck, 1, 2 * size)));
    return doc;
}

static json_t *quota(struct chance *luck, int64_t size)
{
    if (chance_in(luck, 250))
        return json_null();
    json_t *doc = json_object();
    if (chance_in(luck, 800)) {
        json_t *limits = amounts(luck, size);
        if (chance_in(luck, 150))
            set(limits, "jobs", json_integer(chance_range(luck, 1, 6 * size)));
        set(doc, "limits", limits);
    }
    if (chance_in(luck, 250))
        set(doc, "guarantees", amounts(luck, size));
    if (chance_in(luck, 40)) {
        const char *period = CHANCE_PICK(luck, char *, "10m", "1h");
        int hours = (int)chance_range(luck, 1, 20);
        set(doc, "totals", json_pack("[{s:s, s:i, s:s}]", "resource", "cpu", "hours", hours, "period", period));
    }
    return doc;
}

static void quota_act(struct world *w)
{
    struct chance *luck = &w->people_luck;
    char path[128];
    const struct person *p = w->people->at.len ? w->people->at.at[chance_below(luck, w->people->at.len)] : NULL;
    if (!p)
        return;
    bool group = p->group[0] && chance_in(luck, 400);
    (void)snprintf(path, sizeof path, "/v1/%s/%s", group ? "groups" : "users", group ? p->group : p->id);
    json_t *body = json_pack("{s:o}", "quota", quota(luck, group ? 4 : 2));
    if (chance_in(luck, 200))
        set(body, "weight", json_integer(chance_range(luck, 1, 5)));
    if (chance_in(luck, 200))
        set(body, "level", json_integer(chance_range(luck, 0, 100)));
    admin_ask(w, "PATCH", path, body, NULL, NULL, NULL, NULL);
}

/* ---- queues ----------------------------------------------------------------------------------------------------- */

static void queue_act(struct world *w)
{
    struct chance *luck = &w->people_luck;
    const char *name = queue_name(luck);
    char path[64];
    (void)snprintf(path, sizeof path, "/v1/queues/%s", name);
    if (chance_in(luck, 60)) {
        admin_ask(w, "DELETE", path, NULL, NULL, NULL, NULL, NULL);
        return;
    }
    int class = chance_in(luck, 500) ? 0 : (int)chance_range(luck, -3, 6), priority = (int)chance_range(luck, 0, 3);
    json_t *body = json_pack("{s:i, s:i}", "priority", priority, "priority_class", class);
    if (strcmp(name, "lab") == 0 || strcmp(name, "deep") == 0)
        set(body, "parent", json_string(strcmp(name, "lab") == 0 ? "prod" : "lab"));
    if (chance_in(luck, 500))
        set(body, "policy", json_string(CHANCE_PICK(luck, char *, "fifo", "fair-share", "multifactor", "priority")));
    if (chance_in(luck, 300))
        set(body, "quota", quota(luck, 3));
    if (chance_in(luck, 80))
        set(body, "share", json_true());
    if (chance_in(luck, 150))
        set(body, "time_limit", number_text(luck, 60, 900, "s"));
    if (chance_in(luck, 80))
        set(body, "groups", json_pack("[s]", "group1"));
    admin_ask(w, "PUT", path, body, NULL, NULL, NULL, NULL);
}

/* ---- windows and settings --------------------------------------------------------------------------------------- */

static void window_act(struct world *w)
{
    struct chance *luck = &w->people_luck;
    size_t nodes = w->mirror.of[KIND_NODE].len;
    char path[64];
    (void)snprintf(path, sizeof path, "/v1/windows/w%zu", chance_below(luck, 2));
    if (chance_in(luck, 400) || !nodes) {
        admin_ask(w, "DELETE", path, NULL, NULL, NULL, NULL, NULL);
        return;
    }
    const char *node = w->mirror.of[KIND_NODE].at[chance_below(luck, nodes)]->id;
    json_t *duration = number_text(luck, 1, 8, "m");
    json_int_t start = world_wall_ns(w) / SECOND + chance_range(luck, 0, 600);
    json_t *body = json_pack("{s:I, s:o, s:[s]}", "start", start, "duration", duration, "nodes", node);
    if (chance_in(luck, 500))
        set(body, "maintenance", json_true());
    else
        set(body, "groups", json_pack("[s]", "group1"));
    admin_ask(w, "PUT", path, body, NULL, NULL, NULL, NULL);
}

static void order_act(struct world *w)
{
    struct chance *luck = &w->people_luck;
    json_t *body = json_object();
    switch (chance_below(luck, 6)) {
    case 0: set(body, "preemption", json_string(chance_in(luck, 800) ? "on" : "off")); break;
    case 1: set(body, "backfill", json_string(CHANCE_PICK(luck, char *, "on", "on", "on", "strict", "off"))); break;
    case 2: set(body, "preempt_min_run_s", json_integer(chance_range(luck, 0, chance_in(luck, 700) ? 10 : 90))); break;
    case 3: set(body, "reservations", json_integer(chance_range(luck, 0, 100))); break;
    case 4: set(body, "backfill_policy", json_string(CHANCE_PICK(luck, char *, "", "sjf", "f1"))); break;
    default:
        set(body, "policy", json_string(CHANCE_PICK(luck, char *, "fifo", "fair-share", "multifactor", "sjf")));
        break;
    }
    admin_ask(w, "PATCH", "/v1/system/settings", body, NULL, NULL, NULL, NULL);
}

void batch_act(struct world *w)
{
    size_t draw = chance_below(&w->people_luck, 100);
    if (draw < 45)
        quota_act(w);
    else if (draw < 70)
        queue_act(w);
    else if (draw < 78)
        window_act(w);
    else
        order_act(w);
}

bool batch_calm(struct world *w)
{
    const struct seen *settings = mirror_find(&w->mirror, KIND_SETTING, SETTINGS_ID);
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
