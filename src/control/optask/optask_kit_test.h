/* optask_kit_test.h - for tests of OpTasks: nodes, agents' reports, and the state of an OpTask on each node. */
#pragma once

#include "control/node/join_kit_test.h"
#include "control/optask/optask.h"

enum { EPOCH = 7 };

static inline void node_add(struct kit *k, const char *id, const char *more)
{
    char body[256];
    (void)snprintf(body, sizeof body, "{id: %s, allocatable: {cpu: 4, memory: 8Gi}%s%s}", id, *more ? ", " : "", more);
    kit_call(k, ADMIN, "POST", "/v1/nodes", body);
    assert_int_equal(k->status, 201);
}

static inline void report(struct kit *k, const char *node, unsigned seq)
{
    char path[128], body[128], who[80];
    (void)snprintf(path, sizeof path, "/v1/nodes/%s/report", node);
    (void)snprintf(body, sizeof body, "{epoch: %d, seq: %u, instances: []}", EPOCH, seq);
    (void)snprintf(who, sizeof who, "node:%s", node);
    kit_call(k, who, "POST", path, body);
    assert_int_equal(k->status, 200);
}

static inline void say(struct kit *k, const char *node, const char *key, const char *body)
{
    char path[128], who[80];
    (void)snprintf(path, sizeof path, "/v1/nodes/%s/optasks/%s", node, key);
    (void)snprintf(who, sizeof who, "node:%s", node);
    kit_call(k, who, "POST", path, body);
}

/* Returns the state of an OpTask as a whole and on each node: "stopped: a=failed b=pending". */
static inline const char *stands(struct kit *k, const char *key)
{
    static char text[512];
    char path[128];
    size_t i;
    json_t *node;
    (void)snprintf(path, sizeof path, "/v1/optasks/%s", key);
    control_pump(k->control);
    control_pump(k->control);
    kit_call(k, ADMIN, "GET", path, NULL);
    assert_int_equal(k->status, 200);
    json_t *status = json_object_get(k->body, "status");
    int len = snprintf(text, sizeof text, "%s:", json_string_value(json_object_get(status, "state")));
    json_array_foreach(json_object_get(status, "nodes"), i, node)
    {
        const char *fault = json_string_value(json_object_get(node, "fault"));
        len += snprintf(text + len, sizeof text - (size_t)len, " %s=%s%s%s",
                        json_string_value(json_object_get(node, "node")),
                        json_string_value(json_object_get(node, "state")), fault ? "/" : "", fault ? fault : "");
    }
    return text;
}
