/* random_docs.c - random documents that users submit. */
#include "sim/cluster/random_docs.h"

#include <stdio.h>
#include <string.h>

static void set(json_t *doc, const char *key, json_t *value)
{
    (void)json_object_set_new(doc, key, value);
}

static json_t *amount(struct random_stream *rng, int64_t low, int64_t high, const char *unit)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%d%s", (int)random_range(rng, low, high), unit);
    return json_string(text);
}

/* ---- workloads -------------------------------------------------------------------------------------------------- */

static json_t *gpu(struct random_stream *rng)
{
    if (random_per_mille(rng, 500))
        return json_real(RANDOM_PICK(rng, double, 0.25, 0.5));
    json_t *need = json_pack("{s:i}", "count", (int)random_range(rng, 1, 2));
    if (random_per_mille(rng, 300))
        set(need, "model", json_string(RANDOM_PICK(rng, char *, "A", "B")));
    return need;
}

static void shape(struct random_stream *rng, json_t *doc)
{
    json_t *requests = json_object();
    set(requests, "cpu", amount(rng, 1, random_per_mille(rng, 900) ? 20 : 60, "00m"));
    if (random_per_mille(rng, 700))
        set(requests, "memory", amount(rng, 1, 64, "28Mi"));
    set(doc, "requests", requests);
    if (random_per_mille(rng, 120))
        set(doc, "gpu", gpu(rng));
    if (random_per_mille(rng, 80))
        set(doc, "ports", json_pack("[i]", (int)random_range(rng, 8080, 8084)));
    if (random_per_mille(rng, 120))
        set(doc, "require", json_pack("{s:s}", "disk", RANDOM_PICK(rng, char *, "ssd", "hdd")));
    if (random_per_mille(rng, 150))
        set(doc, "tolerations", json_pack("[s]", RANDOM_PICK(rng, char *, "spot", "*", "site=remote")));
    if (random_per_mille(rng, 60))
        set(doc, "arch", json_string(RANDOM_PICK(rng, char *, "amd64", "arm64")));
    if (random_per_mille(rng, 60))
        set(doc, "runtime", json_string(RANDOM_PICK(rng, char *, "process", "oci")));
    if (random_per_mille(rng, 80))
        set(doc, "max_per_node", json_integer(random_range(rng, 1, 2)));
    if (random_per_mille(rng, 100))
        set(doc, "priority", json_integer(random_range(rng, -5, 10)));
    if (random_per_mille(rng, 60))
        set(doc, "limits", json_pack("{s:{s:s, s:s}}", "cpu", "amount", "500m", "max", "2"));
    if (random_per_mille(rng, 700)) /* the default of ten minutes is long for the simulation */
        set(doc, "fence", amount(rng, 40, 180, "s"));
}

static void lost(struct random_stream *rng, json_t *doc)
{
    if (random_per_mille(rng, 200))
        set(doc, "on_lost", json_string(RANDOM_PICK(rng, char *, "replace", "fence", "wait")));
}

json_t *body_app(struct random_stream *rng)
{
    json_t *doc = json_object();
    shape(rng, doc);
    lost(rng, doc);
    set(doc, "replicas", json_integer(random_range(rng, 0, 100) < 4 ? 0 : random_range(rng, 1, 5)));
    if (random_per_mille(rng, 400))
        set(doc, "endpoints", json_pack("[{s:s}]", "name", "http"));
    if (random_per_mille(rng, 100))
        set(doc, "labels", json_pack("{s:s}", "app", RANDOM_PICK(rng, char *, "web", "db")));
    if (random_per_mille(rng, 80)) {
        set(doc, "labels", json_pack("{s:s}", "app", "web"));
        const char *where = RANDOM_PICK(rng, char *, "zone", "node");
        set(doc, RANDOM_PICK(rng, char *, "spread", "apart"), json_string(where));
    }
    if (random_per_mille(rng, 200))
        set(doc, "on_drain", json_string(RANDOM_PICK(rng, char *, "move", "wait", "stop")));
    if (random_per_mille(rng, 100))
        set(doc, "min_available", json_integer(random_range(rng, 1, 2)));
    if (random_per_mille(rng, 100))
        set(doc, "stopped", json_true());
    if (random_per_mille(rng, 100))
        set(doc, "settings", json_pack("{s:s}", "colour", "blue"));
    return doc;
}

json_t *body_job(struct random_stream *rng)
{
    json_t *doc = json_object();
    shape(rng, doc);
    lost(rng, doc);
    set(doc, "replicas", json_integer(random_range(rng, 1, 6)));
    set(doc, "command", json_pack("[s, s]", "/bin/sleep", "5"));
    if (random_per_mille(rng, 150))
        set(doc, "hold", json_true());
    if (random_per_mille(rng, 200))
        set(doc, "gang", random_per_mille(rng, 700) ? json_true() : json_string("pair"));
    else if (random_per_mille(rng, 100)) {
        set(doc, "gang", json_true());
        set(doc, "gang_min", json_integer(1));
    }
    return doc;
}

json_t *body_vm(struct random_stream *rng)
{
    json_t *doc = json_object();
    shape(rng, doc);
    set(doc, "image", json_string("debian"));
    if (random_per_mille(rng, 100))
        set(doc, "stopped", json_true());
    return doc;
}

json_t *body_patch(struct random_stream *rng)
{
    json_t *doc = json_object();
    switch (random_below(rng, 6)) {
    case 0: set(doc, "requests", json_pack("{s:o}", "cpu", amount(rng, 1, 30, "00m"))); break;
    case 1: set(doc, "priority", json_integer(random_range(rng, -5, 10))); break;
    case 2: set(doc, "display", json_string("Another name")); break;
    case 3: set(doc, "replicas", json_integer(random_range(rng, 1, 4))); break;
    case 4: set(doc, "env", json_pack("{s:s}", "MODE", "fast")); break;
    default: set(doc, "require", random_per_mille(rng, 500) ? json_null() : json_pack("{s:s}", "disk", "ssd")); break;
    }
    return doc;
}

/* ---- nodes ------------------------------------------------------------------------------------------------------ */

json_t *body_capabilities(struct random_stream *rng)
{
    json_t *doc = json_object(), *allocatable = json_object();
    set(allocatable, "cpu", amount(rng, 2, 16, ""));
    set(allocatable, "memory", amount(rng, 4, 64, "Gi"));
    if (random_per_mille(rng, 150))
        set(allocatable, "pods", json_integer(random_range(rng, 3, 12)));
    set(doc, "allocatable", allocatable);
    if (random_per_mille(rng, 250)) {
        const char *model = RANDOM_PICK(rng, char *, "A", "B");
        int count = (int)random_range(rng, 1, 4);
        set(doc, "gpus", json_pack("{s:i, s:s, s:s}", "count", count, "model", model, "memory", "40Gi"));
    }
    if (random_per_mille(rng, 100))
        set(doc, "overcommit", json_pack("{s:i}", "cpu", 2));
    if (random_per_mille(rng, 200))
        set(doc, "runtimes", json_pack("[s]", RANDOM_PICK(rng, char *, "process", "oci")));
    if (random_per_mille(rng, 300))
        set(doc, "ports", json_pack("[i, i]", 22, 8080));
    return doc;
}

json_t *body_settings(struct random_stream *rng)
{
    json_t *doc = json_object();
    set(doc, "zone", json_string(RANDOM_PICK(rng, char *, "a", "b", "c")));
    if (random_per_mille(rng, 600))
        set(doc, "labels", json_pack("{s:s}", "disk", RANDOM_PICK(rng, char *, "ssd", "hdd")));
    if (random_per_mille(rng, 100))
        set(doc, "taints",
            json_pack("[s]",
                      RANDOM_PICK(rng, char *, "spot:NoSchedule", "site=remote:NoSchedule", "old:PreferNoSchedule")));
    return doc;
}

json_t *body_node(struct random_stream *rng)
{
    json_t *doc = body_capabilities(rng), *settings = body_settings(rng);
    (void)json_object_update(doc, settings);
    json_decref(settings);
    if (random_per_mille(rng, 700))
        set(doc, "arch", json_string(RANDOM_PICK(rng, char *, "amd64", "amd64", "arm64")));
    set(doc, "state", json_string(random_per_mille(rng, 900) ? "joining" : "cordoned"));
    return doc;
}

/* ---- invalid bodies --------------------------------------------------------------------------------------------- */

const char *body_invalid(struct random_stream *rng, size_t *ret_len)
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
    const char *text = rows[random_below(rng, sizeof rows / sizeof *rows)];
    *ret_len = strlen(text);
    return text;
}
