/* bodies.c - random documents that users submit. */
#include "sim/cluster/bodies.h"

#include <stdio.h>
#include <string.h>

static void set(json_t *doc, const char *key, json_t *value)
{
    (void)json_object_set_new(doc, key, value);
}

static json_t *amount(struct chance *luck, int64_t low, int64_t high, const char *unit)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%d%s", (int)chance_range(luck, low, high), unit);
    return json_string(text);
}

/* ---- workloads -------------------------------------------------------------------------------------------------- */

static json_t *gpu(struct chance *luck)
{
    if (chance_in(luck, 500))
        return json_real(CHANCE_PICK(luck, double, 0.25, 0.5));
    json_t *need = json_pack("{s:i}", "count", (int)chance_range(luck, 1, 2));
    if (chance_in(luck, 300))
        set(need, "model", json_string(CHANCE_PICK(luck, char *, "A", "B")));
    return need;
}

static void shape(struct chance *luck, json_t *doc)
{
    json_t *requests = json_object();
    set(requests, "cpu", amount(luck, 1, chance_in(luck, 900) ? 20 : 60, "00m"));
    if (chance_in(luck, 700))
        set(requests, "memory", amount(luck, 1, 64, "28Mi"));
    set(doc, "requests", requests);
    if (chance_in(luck, 120))
        set(doc, "gpu", gpu(luck));
    if (chance_in(luck, 80))
        set(doc, "ports", json_pack("[i]", (int)chance_range(luck, 8080, 8084)));
    if (chance_in(luck, 120))
        set(doc, "require", json_pack("{s:s}", "disk", CHANCE_PICK(luck, char *, "ssd", "hdd")));
    if (chance_in(luck, 150))
        set(doc, "tolerations", json_pack("[s]", CHANCE_PICK(luck, char *, "spot", "*", "site=remote")));
    if (chance_in(luck, 60))
        set(doc, "arch", json_string(CHANCE_PICK(luck, char *, "amd64", "arm64")));
    if (chance_in(luck, 60))
        set(doc, "runtime", json_string(CHANCE_PICK(luck, char *, "process", "oci")));
    if (chance_in(luck, 80))
        set(doc, "max_per_node", json_integer(chance_range(luck, 1, 2)));
    if (chance_in(luck, 100))
        set(doc, "priority", json_integer(chance_range(luck, -5, 10)));
    if (chance_in(luck, 60))
        set(doc, "limits", json_pack("{s:{s:s, s:s}}", "cpu", "amount", "500m", "max", "2"));
    if (chance_in(luck, 700)) /* the default of ten minutes is long for the simulation */
        set(doc, "fence", amount(luck, 40, 180, "s"));
}

static void lost(struct chance *luck, json_t *doc)
{
    if (chance_in(luck, 200))
        set(doc, "on_lost", json_string(CHANCE_PICK(luck, char *, "replace", "fence", "wait")));
}

json_t *body_app(struct chance *luck)
{
    json_t *doc = json_object();
    shape(luck, doc);
    lost(luck, doc);
    set(doc, "replicas", json_integer(chance_range(luck, 0, 100) < 4 ? 0 : chance_range(luck, 1, 5)));
    if (chance_in(luck, 400))
        set(doc, "endpoints", json_pack("[{s:s}]", "name", "http"));
    if (chance_in(luck, 100))
        set(doc, "labels", json_pack("{s:s}", "app", CHANCE_PICK(luck, char *, "web", "db")));
    if (chance_in(luck, 80)) {
        set(doc, "labels", json_pack("{s:s}", "app", "web"));
        const char *where = CHANCE_PICK(luck, char *, "zone", "node");
        set(doc, CHANCE_PICK(luck, char *, "spread", "apart"), json_string(where));
    }
    if (chance_in(luck, 200))
        set(doc, "on_drain", json_string(CHANCE_PICK(luck, char *, "move", "wait", "stop")));
    if (chance_in(luck, 100))
        set(doc, "min_available", json_integer(chance_range(luck, 1, 2)));
    if (chance_in(luck, 100))
        set(doc, "stopped", json_true());
    if (chance_in(luck, 100))
        set(doc, "settings", json_pack("{s:s}", "colour", "blue"));
    return doc;
}

json_t *body_job(struct chance *luck)
{
    json_t *doc = json_object();
    shape(luck, doc);
    lost(luck, doc);
    set(doc, "replicas", json_integer(chance_range(luck, 1, 6)));
    set(doc, "command", json_pack("[s, s]", "/bin/sleep", "5"));
    if (chance_in(luck, 150))
        set(doc, "hold", json_true());
    if (chance_in(luck, 200))
        set(doc, "gang", chance_in(luck, 700) ? json_true() : json_string("pair"));
    else if (chance_in(luck, 100)) {
        set(doc, "gang", json_true());
        set(doc, "gang_min", json_integer(1));
    }
    return doc;
}

json_t *body_vm(struct chance *luck)
{
    json_t *doc = json_object();
    shape(luck, doc);
    set(doc, "image", json_string("debian"));
    if (chance_in(luck, 100))
        set(doc, "stopped", json_true());
    return doc;
}

json_t *body_patch(struct chance *luck)
{
    json_t *doc = json_object();
    switch (chance_below(luck, 6)) {
    case 0: set(doc, "requests", json_pack("{s:o}", "cpu", amount(luck, 1, 30, "00m"))); break;
    case 1: set(doc, "priority", json_integer(chance_range(luck, -5, 10))); break;
    case 2: set(doc, "display", json_string("Another name")); break;
    case 3: set(doc, "replicas", json_integer(chance_range(luck, 1, 4))); break;
    case 4: set(doc, "env", json_pack("{s:s}", "MODE", "fast")); break;
    default: set(doc, "require", chance_in(luck, 500) ? json_null() : json_pack("{s:s}", "disk", "ssd")); break;
    }
    return doc;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

json_t *body_capabilities(struct chance *luck)
{
    json_t *doc = json_object(), *allocatable = json_object();
    set(allocatable, "cpu", amount(luck, 2, 16, ""));
    set(allocatable, "memory", amount(luck, 4, 64, "Gi"));
    if (chance_in(luck, 150))
        set(allocatable, "pods", json_integer(chance_range(luck, 3, 12)));
    set(doc, "allocatable", allocatable);
    if (chance_in(luck, 250)) {
        const char *model = CHANCE_PICK(luck, char *, "A", "B");
        int count = (int)chance_range(luck, 1, 4);
        set(doc, "gpus", json_pack("{s:i, s:s, s:s}", "count", count, "model", model, "memory", "40Gi"));
    }
    if (chance_in(luck, 100))
        set(doc, "overcommit", json_pack("{s:i}", "cpu", 2));
    if (chance_in(luck, 200))
        set(doc, "runtimes", json_pack("[s]", CHANCE_PICK(luck, char *, "process", "oci")));
    if (chance_in(luck, 300))
        set(doc, "ports", json_pack("[i, i]", 22, 8080));
    return doc;
}

json_t *body_settings(struct chance *luck)
{
    json_t *doc = json_object();
    set(doc, "zone", json_string(CHANCE_PICK(luck, char *, "a", "b", "c")));
    if (chance_in(luck, 600))
        set(doc, "labels", json_pack("{s:s}", "disk", CHANCE_PICK(luck, char *, "ssd", "hdd")));
    if (chance_in(luck, 100))
        set(doc, "taints",
            json_pack("[s]",
                      CHANCE_PICK(luck, char *, "spot:NoSchedule", "site=remote:NoSchedule", "old:PreferNoSchedule")));
    return doc;
}

json_t *body_node(struct chance *luck)
{
    json_t *doc = body_capabilities(luck), *settings = body_settings(luck);
    (void)json_object_update(doc, settings);
    json_decref(settings);
    if (chance_in(luck, 700))
        set(doc, "arch", json_string(CHANCE_PICK(luck, char *, "amd64", "amd64", "arm64")));
    set(doc, "state", json_string(chance_in(luck, 900) ? "joining" : "cordoned"));
    return doc;
}

/* ---- invalid bodies --------------------------------------------------------------------------------------------- */

const char *body_wrong(struct chance *luck, size_t *ret_len)
{
    static const char *const rows[] = {
        "{",
        "[]",
        "null",
        "\"app\"",
        "{\"name\": \"x\", \"replicas\": -1}",
        "{\"name\": \"x\", \"replicas\": 99999999999}",
        "{\"name\": \"x\", \"replicas\": 1.5}",
        "{\"name\": \"x\", \"requests\": {\"cpu\": \"-3\"}}",
        "{\"name\": \"x\", \"requests\": {\"cpu\": \"1e99\"}}",
        "{\"name\": \"x\", \"requests\": {\"cpu\": 1}, \"resources\": {\"cpu\": 1}}",
        "{\"name\": \"x\", \"unknown\": 1}",
        "{\"name\": \"x\", \"name\": \"y\"}",
        "{\"name\": \"x\", \"volumes\": [\"not-there\"]}",
        "{\"name\": \"x\", \"gpu\": 1.5}",
        "{\"name\": \"x\", \"ports\": [0]}",
        "{\"name\": \"x\", \"ports\": [70000]}",
        "{\"name\": \"x\", \"owner\": \"nobody-there\"}",
        "{\"name\": \"x\", \"owner\": 5}",
        "{\"name\": \"x\", \"command\": \"rm -rf /\"}",
        "{\"name\": \"x\", \"priority\": \"high\"}",
        "{\"name\": \"x\", \"kind\": \"node\"}",
        "{\"name\": \"x\\u0000y\", \"command\": [\"\\u0000\"]}",
        "{\"name\": \"\xff\xfe\"}",
        "{\"name\": \"x\", \"env\": {\"a=b\": \"c\"}}",
        "{\"name\": \"x\", \"a\": [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
        "{\"name\": \"x\"} {\"name\": \"y\"}",
    };
    const char *text = rows[chance_below(luck, sizeof rows / sizeof *rows)];
    *ret_len = strlen(text);
    return text;
}
