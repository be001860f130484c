#include "agent/instance/ports.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/instance/exclusive.h"
#include "base/hash.h"
#include "machine/net/port.h"
#include "wire/text/document.h"

/* Builds the claim name "port tcp/10016". The prefix avoids conflicts with an exclusive resource called "tcp". */
static const char *port_claim(const char *protocol, uint16_t port, char buf[static 32])
{
    (void)snprintf(buf, 32, "port %s/%u", protocol, port);
    return buf;
}

/* Lists ports of the range that instances have claimed but may not have bound yet. */
static size_t ports_claimed(struct agent_instance *r, const char *protocol, uint16_t start, uint16_t count,
                            uint16_t ret[static PORT_BLOCK])
{
    size_t len = 0;
    char what[32];
    for (uint16_t i = 0; i < count && len < PORT_BLOCK; i++)
        if (exclusive_claims_contain(r->agent->claims, port_claim(protocol, (uint16_t)(start + i), what)))
            ret[len++] = (uint16_t)(start + i);
    return len;
}

/* Identifies the workload: instances of one workload may use each other's ports. */
static uint64_t guard_owner(const struct agent_instance *r)
{
    const char *workload = json_string_value(json_object_get(r->config, "workload"));
    uint64_t owner = workload ? hash_bytes(workload, strlen(workload), 0) : r->id;
    return owner ? owner : 1;
}

void ports_guard(struct agent_instance *r, const char *group)
{
    struct berth_err err = {0};
    int rc = group ? port_guard_put(r->agent->guard, r->id, group, guard_owner(r), &err)
                   : err_set(&err, EOPNOTSUPP,
                             "ports of apps cannot be protected from other users: this machine has no cgroup v2");
    if (rc < 0 && !__atomic_exchange_n(&r->agent->unguarded, true, __ATOMIC_RELAXED))
        NOTE(r->agent, LEVEL_WARN, "ports.unguarded", LOG_TEXT("text", err.text));
}

void ports_poll(struct agent_instance *r)
{
    uint16_t port = 0;
    if (!port_guard_claimed(r->agent->guard, r->id, &port))
        return;
    NOTE(r->agent, LEVEL_WARN, "instance.foreign-port", LOG_NUMBER("id", (int64_t)r->id), LOG_NUMBER("port", port));
    node_foreign_port(r->agent->node, r->id, port);
}

static void ports_reserve(struct agent_instance *r)
{
    const json_t *port_specs = json_object_get(r->config, "ports"), *one;
    size_t i;
    json_array_foreach(port_specs, i, one)
    {
        json_int_t start = json_integer_value(json_object_get(one, "start"));
        json_int_t count = json_integer_value(json_object_get(one, "count"));
        if (start > 0 && start <= UINT16_MAX && count >= 0 && count <= PORT_BLOCK)
            port_guard_reserve(r->agent->guard, r->id, (uint16_t)start, (uint16_t)(count ? count : 1), guard_owner(r));
    }
}

static int port_make(struct agent_instance *r, const json_t *port_spec, struct bound_ports *b, struct berth_err *err)
{
    const char *endpoint = json_string_value(json_object_get(port_spec, "endpoint"));
    const char *protocol = json_string_value(json_object_get(port_spec, "protocol"));
    const char *listen = json_string_value(json_object_get(port_spec, "listen"));
    bool keep = listen && strcmp(listen, "socket") == 0;
    uint16_t claimed[PORT_BLOCK];
    struct port_request search = {
        .start = (uint16_t)json_integer_value(json_object_get(port_spec, "start")),
        .count = (uint16_t)json_integer_value(json_object_get(port_spec, "count")),
        .keep_socket = keep,
        .taken = claimed,
    };
    if (!protocol || (strcmp(protocol, "tcp") != 0 && strcmp(protocol, "udp") != 0))
        return err_set(err, ENOTSUP, "endpoint %s: this node supports only tcp and udp", endpoint ? endpoint : "?");
    search.protocol = strcmp(protocol, "udp") == 0 ? PORT_UDP : PORT_TCP;
    uint16_t port = 0;
    int fd = -1;
    char what[32];
    do { /* retry if another launcher claimed the port in between */
        if (fd >= 0)
            (void)close(fd);
        fd = -1;
        search.taken_len = ports_claimed(r, protocol, search.start, search.count, claimed);
        if (port_find(&search, &port, &fd, err) < 0)
            return err_prefix(err, "endpoint %s", endpoint ? endpoint : "?");
    } while (!exclusive_claims_add(r->agent->claims, r->id, port_claim(protocol, port, what)));
    b->ports[b->ports_len].endpoint = endpoint ? endpoint : "";
    b->ports[b->ports_len++].port = port;
    if (keep) {
        b->socket_names[b->sockets_len] = endpoint ? endpoint : "";
        b->sockets[b->sockets_len++] = fd;
    }
    return 0;
}

static int exclusive_make(struct agent_instance *r, const char *resource, const json_t *names, struct bound_ports *b,
                          struct berth_err *err)
{
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        CLEANUP(str) struct str what = {0};
        str_addf(&what, "piece %s/%s", resource, name ? name : "");
        if (name && exclusive_claims_add(r->agent->claims, r->id, what.at)) {
            if (!b->exclusive)
                b->exclusive = json_object();
            (void)json_object_set_new(b->exclusive, resource, json_string(name));
            return 0;
        }
    }
    return err_set(err, EBUSY, "every %s that it may use is already allocated on this node", resource);
}

int bound_ports_make(struct agent_instance *r, struct bound_ports *ret, struct berth_err *err)
{
    const json_t *ports = json_object_get(r->config, "ports");
    const char *resource;
    json_t *names;
    ports_reserve(r);
    for (size_t i = 0; i < json_array_size(ports) && ret->ports_len < ENDPOINTS_MAX; i++) {
        int rc = port_make(r, json_array_get(ports, i), ret, err);
        if (rc < 0)
            return rc;
    }
    json_object_foreach(json_object_get(r->config, "exclusive"), resource, names)
    {
        int rc = exclusive_make(r, resource, names, ret, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* Builds a valid variable name: "PORT_WEB" of "web". */
static const char *variable(struct arena *arena, const char *prefix, const char *name)
{
    char *text = arena_fmt(arena, "%s_%s", prefix, name);
    for (char *p = text; *p; p++)
        *p = isalnum((unsigned char)*p) ? (char)toupper((unsigned char)*p) : '_';
    return text;
}

void bound_ports_env(const struct bound_ports *b, struct arena *arena,
                     void (*add)(void *ctx, const char *name, const char *value), void *ctx)
{
    const char *resource;
    json_t *name;
    char number[24];
    for (size_t i = 0; i < b->ports_len; i++) {
        (void)str_u64(b->ports[i].port, number);
        if (i == 0)
            add(ctx, "PORT", number);
        add(ctx, variable(arena, "PORT", b->ports[i].endpoint), number);
    }
    json_object_foreach(b->exclusive, resource, name)
        add(ctx, variable(arena, "BERTH_EXCLUSIVE", resource), json_string_value(name));
}

static void instance_port_add(struct agent_instance *r, const char *endpoint, uint16_t port)
{
    struct instance_port one = {mem_strdup(endpoint), port};
    vec_push(&r->ports, one);
}

int bound_ports_save(struct agent_instance *r, const struct bound_ports *b, struct berth_err *err)
{
    CLEANUP(json) json_t *doc = json_pack("{s:[]}", "ports");
    for (size_t i = 0; i < b->ports_len; i++) {
        instance_port_add(r, b->ports[i].endpoint, b->ports[i].port);
        (void)json_array_append_new(
            json_object_get(doc, "ports"),
            json_pack("{s:s, s:i}", "endpoint", b->ports[i].endpoint, "port", (int)b->ports[i].port));
    }
    if (b->exclusive) {
        (void)json_object_set(doc, "exclusive", b->exclusive);
        r->exclusive = json_deep_copy(b->exclusive);
    }
    if (!b->ports_len && !b->exclusive)
        return 0;
    char *text = json_dumps(doc, JSON_COMPACT);
    int rc = instance_dir_write(r->agent->state_dir, r->id, "bound", text, err);
    free(text);
    return rc;
}

void bound_ports_read(struct agent_instance *r)
{
    CLEANUP(mem) char *text = NULL;
    const char *resource;
    json_t *name;
    ports_reserve(r);
    if (instance_dir_read(r->agent->state_dir, r->id, "bound", &text, NULL) < 0)
        return;
    CLEANUP(json) json_t *doc = json_loads(text, 0, NULL);
    const json_t *ports = json_object_get(doc, "ports"), *port_specs = json_object_get(r->config, "ports");
    for (size_t i = 0; i < json_array_size(ports) && i < ENDPOINTS_MAX; i++) {
        const json_t *one = json_array_get(ports, i);
        const char *endpoint = json_string_value(json_object_get(one, "endpoint"));
        const char *protocol = json_string_value(json_object_get(json_array_get(port_specs, i), "protocol"));
        uint16_t port = (uint16_t)json_integer_value(json_object_get(one, "port"));
        char what[32];
        instance_port_add(r, endpoint ? endpoint : "", port);
        (void)exclusive_claims_add(r->agent->claims, r->id, port_claim(protocol ? protocol : "tcp", port, what));
    }
    r->exclusive = json_deep_copy(json_object_get(doc, "exclusive"));
    json_object_foreach(r->exclusive, resource, name)
    {
        CLEANUP(str) struct str what = {0};
        str_addf(&what, "piece %s/%s", resource, json_string_value(name) ? json_string_value(name) : "");
        (void)exclusive_claims_add(r->agent->claims, r->id, what.at);
    }
}

void bound_ports_done(struct bound_ports *b)
{
    for (size_t i = 0; i < b->sockets_len; i++)
        (void)close(b->sockets[i]);
    json_decref(b->exclusive);
    *b = (struct bound_ports){0};
}
