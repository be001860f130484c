/* gateway.c - routes from one node to every service: the same for all nodes, except for the order of the targets. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"
#include "control/watch/derived_out.h"
#include "control/watch/derived_parts.h"
#include "wire/text/document.h"

struct named_port {
    char *name;
    uint16_t port;                /* of an instance: the reported port */
    enum berth_protocol protocol; /* of an app */
};

/* Cached values of one object's document, valid while its revision is unchanged. */
struct gateway_object {
    enum kind kind;
    char *id;
    uint64_t revision;
    uint64_t round;               /* last refresh that used this entry */
    char *address, *zone;         /* of a node */
    VEC(struct named_port) ports; /* of an instance: its bound ports; of an app: its endpoints */
    uint32_t weight;              /* of an app */
};

struct gateway_target {
    uint64_t instance;
    const char *node, *address, *zone;
    uint16_t port;
    uint32_t weight;
};

struct gateway_route {
    const char *service, *endpoint;
    enum berth_protocol protocol;
    size_t targets, targets_len; /* index in gateway.targets, and number */
};

struct gateway_config {
    VEC(struct gateway_object *) seen;
    struct map map; /* (kind, id) to position in `seen` */
    uint64_t round;
    VEC(struct gateway_route) routes; /* texts belong to `seen` */
    VEC(struct gateway_target) targets;
    struct str text; /* routes and targets as text, for comparison */
    char hash[DERIVED_HASH_MAX];
};

/* ---- cache of documents ----------------------------------------------------------------------------------------- */

struct gateway_object_key {
    enum kind kind;
    const char *id;
};

static bool cached_same(const void *ctx, uint32_t at, const void *key)
{
    const struct gateway_config *g = ctx;
    const struct gateway_object_key *k = key;
    return g->seen.at[at]->kind == k->kind && strcmp(g->seen.at[at]->id, k->id) == 0;
}

static void cached_clear(struct gateway_object *e)
{
    mem_free(e->address);
    mem_free(e->zone);
    for (size_t i = 0; i < e->ports.len; i++)
        mem_free(e->ports.at[i].name);
    e->ports.len = 0;
    e->address = e->zone = NULL;
}

static void cached_free(struct gateway_object *e)
{
    cached_clear(e);
    vec_done(&e->ports);
    mem_free(e->id);
    mem_free(e);
}

static void cache_drop(struct gateway_config *g)
{
    for (size_t i = 0; i < g->seen.len; i++)
        cached_free(g->seen.at[i]);
    g->seen.len = 0;
    map_done(&g->map);
}

static void cached_port_add(struct gateway_object *e, const char *name, uint16_t port, enum berth_protocol protocol)
{
    struct named_port named = {.name = mem_strdup(name), .port = port, .protocol = protocol};
    vec_push(&e->ports, named);
}

static void cached_read(struct gateway_object *e, const struct state *s, const struct object *o)
{
    struct arena arena;
    CLEANUP(json) json_t *doc = object_doc(o);
    int rc = 0;

    cached_clear(e);
    arena_init(&arena);
    if (o->kind == KIND_NODE) {
        struct node_address place = node_place(s, o->id, &arena);
        e->address = mem_strdup(place.address);
        e->zone = mem_strdup(place.zone);
    } else if (o->kind == KIND_INSTANCE) {
        struct instance_doc read;
        rc = instance_doc_read(doc, &arena, &read, NULL);
        for (size_t i = 0; rc == 0 && i < read.ports_len; i++)
            cached_port_add(e, read.ports[i].endpoint, read.ports[i].port, BERTH_TCP);
    } else {
        struct work_doc read;
        rc = work_doc_read(doc, &arena, &read, NULL);
        for (size_t i = 0; rc == 0 && i < read.endpoints_len; i++)
            cached_port_add(e, read.endpoints[i].name, 0, read.endpoints[i].protocol);
        e->weight = rc == 0 ? read.weight : 0;
    }
    assert(rc == 0); /* the document was parsed when it arrived */
    e->revision = o->revision;
    arena_done(&arena);
}

static const struct gateway_object *gateway_object_get(struct gateway_config *g, const struct state *s,
                                                       const struct object *o)
{
    uint64_t hash = hash_bytes(o->id, strlen(o->id), o->kind + 1u);
    uint32_t at = map_find(&g->map, hash, cached_same, g, &(struct gateway_object_key){o->kind, o->id});
    struct gateway_object *e;

    if (at == MAP_NONE) {
        e = mem_zalloc(sizeof *e);
        e->kind = o->kind;
        e->id = mem_strdup(o->id);
        map_add(&g->map, hash, (uint32_t)g->seen.len);
        vec_push(&g->seen, e);
    } else {
        e = g->seen.at[at];
    }
    if (e->revision != o->revision)
        cached_read(e, s, o);
    e->round = g->round;
    return e;
}

/* ---- routes ----------------------------------------------------------------------------------------------------- */

struct gateway_config *gateway_new(void)
{
    return mem_zalloc(sizeof(struct gateway_config));
}

void gateway_free(struct gateway_config *g)
{
    if (!g)
        return;
    cache_drop(g);
    vec_done(&g->seen);
    vec_done(&g->routes);
    vec_done(&g->targets);
    str_done(&g->text);
    mem_free(g);
}

static uint16_t port_of(const struct gateway_object *instance, const char *endpoint)
{
    for (size_t i = 0; i < instance->ports.len; i++)
        if (strcmp(instance->ports.at[i].name, endpoint) == 0)
            return instance->ports.at[i].port;
    return 0;
}

/* Adds an instance that is ready and has reported the port of this endpoint. */
static void target_add(struct gateway_config *g, const struct state *s, const struct object *instance,
                       const char *endpoint, uint32_t weight)
{
    const struct object *node = state_find(s, KIND_NODE, instance->instance->node);
    const struct gateway_object *ports = gateway_object_get(g, s, instance),
                                *place = node ? gateway_object_get(g, s, node) : NULL;
    uint16_t port = port_of(ports, endpoint);

    if (!port)
        return;
    struct gateway_target target = {
        .instance = instance->instance->number,
        .node = place ? place->id : "",
        .address = place ? place->address : "",
        .zone = place ? place->zone : "",
        .port = port,
        .weight = weight,
    };
    vec_push(&g->targets, target);
}

static void service_add(struct gateway_config *g, const struct state *s, const struct object *app)
{
    const struct gateway_object *read = gateway_object_get(g, s, app);

    for (size_t e = 0; e < read->ports.len; e++) {
        struct gateway_route route = {
            .service = read->id,
            .endpoint = read->ports.at[e].name,
            .protocol = read->ports.at[e].protocol,
            .targets = g->targets.len,
        };
        for (size_t i = 0; i < app->work->instances_len; i++) {
            const struct instance_view *instance = app->work->instances[i]->instance;
            if (instance->ready && instance_serves(instance))
                target_add(g, s, app->work->instances[i], route.endpoint, read->weight);
        }
        route.targets_len = g->targets.len - route.targets;
        if (route.targets_len)
            vec_push(&g->routes, route);
    }
}

/* Writes routes and targets as text, with zones, because zones determine the order of targets. */
static void text_make(struct gateway_config *g)
{
    str_clear(&g->text);
    for (size_t r = 0; r < g->routes.len; r++) {
        const struct gateway_route *route = &g->routes.at[r];
        str_addf(&g->text, "%s\n%s\n%d\n", route->service, route->endpoint, (int)route->protocol);
        for (size_t t = 0; t < route->targets_len; t++) {
            const struct gateway_target *target = &g->targets.at[route->targets + t];
            str_addf(&g->text, " %llu\n%s\n%s\n%s\n%u\n%u\n", (unsigned long long)target->instance, target->node,
                     target->address, target->zone, target->port, target->weight);
        }
    }
}

bool gateway_refresh(struct gateway_config *g, const struct state *s)
{
    char hash[DERIVED_HASH_MAX];
    size_t len, used = 0;
    const struct object *const *apps = state_list(s, KIND_APP, &len);

    g->round++;
    g->routes.len = g->targets.len = 0;
    for (size_t i = 0; i < len; i++)
        service_add(g, s, apps[i]);
    text_make(g);
    for (size_t i = 0; i < g->seen.len; i++)
        used += g->seen.at[i]->round == g->round;
    if (g->seen.len > 2 * used + 1024) {
        /* most entries belong to deleted objects: drops the cache and reads the present objects */
        g->routes.len = g->targets.len = 0;
        cache_drop(g);
        for (size_t i = 0; i < len; i++)
            service_add(g, s, apps[i]);
    }
    (void)derived_hash(&g->text, hash);
    bool differs = strcmp(hash, g->hash) != 0;
    memcpy(g->hash, hash, sizeof hash);
    return differs;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

enum { HERE, SAME_ZONE, ELSEWHERE, DISTANCES };

static int distance_of(const struct gateway_target *t, const char *node, const char *zone)
{
    if (strcmp(t->node, node) == 0)
        return HERE;
    return *zone && strcmp(t->zone, zone) == 0 ? SAME_ZONE : ELSEWHERE;
}

static void route_write(struct json_out *o, const struct gateway_config *g, const struct gateway_route *route,
                        const char *node, const char *zone)
{
    json_out_open(o, NULL, '{');
    json_out_text(o, "service", route->service);
    json_out_text(o, "endpoint", route->endpoint);
    json_out_text(o, "protocol", protocol_name(route->protocol));
    json_out_open(o, "targets", '[');
    for (int distance = HERE; distance < DISTANCES; distance++) {
        for (size_t i = 0; i < route->targets_len; i++) {
            const struct gateway_target *t = &g->targets.at[route->targets + i];
            if (distance_of(t, node, zone) != distance)
                continue;
            json_out_open(o, NULL, '{');
            json_out_number(o, "instance", t->instance);
            json_out_text(o, "node", t->node);
            json_out_text(o, "address", t->address);
            json_out_number(o, "port", t->port);
            json_out_number(o, "weight", t->weight);
            json_out_close(o, '}');
        }
    }
    json_out_close(o, ']');
    json_out_close(o, '}');
}

int gateway_write(const struct gateway_config *g, const struct state *s, const char *node, struct str *to)
{
    struct arena arena;
    struct json_out o = {.to = to};

    if (!state_find(s, KIND_NODE, node))
        return -ENOENT;
    arena_init(&arena);
    struct node_address here = node_place(s, node, &arena);
    json_out_open(&o, NULL, '{');
    json_out_text(&o, "node", node);
    json_out_open(&o, "routes", '[');
    for (size_t i = 0; i < g->routes.len; i++)
        route_write(&o, g, &g->routes.at[i], node, here.zone);
    json_out_close(&o, ']');
    json_out_close(&o, '}');
    arena_done(&arena);
    return 0;
}

int gateway_config_write(const struct state *s, const char *node, struct str *to)
{
    if (!state_find(s, KIND_NODE, node))
        return -ENOENT;
    struct gateway_config *g = gateway_new();
    (void)gateway_refresh(g, s);
    int rc = gateway_write(g, s, node, to);
    gateway_free(g);
    return rc;
}
