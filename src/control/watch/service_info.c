/* service_info.c - the endpoints of a service, derived from the reports of its instances and from its app. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "control/api/permit.h"
#include "control/watch/derived_out.h"
#include "control/watch/derived_parts.h"
#include "wire/text/document.h"

/* An instance that serves clients. */
struct service_member {
    const struct object *object;
    struct node_address place;
    const struct port_report *ports;
    size_t ports_len;
};

static struct service_member *members_read(const struct state *s, const struct work_view *work, struct arena *arena,
                                           json_t *docs, size_t *ret_len)
{
    struct service_member *members = ARENA_ARRAY(arena, struct service_member, work->instances_len);
    size_t len = 0;

    for (size_t i = 0; i < work->instances_len; i++) {
        const struct object *o = work->instances[i];
        struct instance_doc read;
        if (!instance_serves(o->instance))
            continue;
        json_t *doc = object_doc(o);
        (void)json_array_append_new(docs, doc); /* keeps the document alive: names of ports point into it */
        int rc = instance_doc_read(doc, arena, &read, NULL);
        assert(rc == 0); /* the document was parsed when it arrived */
        (void)rc;
        members[len++] = (struct service_member){
            .object = o,
            .place = node_place(s, o->instance->node, arena),
            .ports = read.ports,
            .ports_len = read.ports_len,
        };
    }
    *ret_len = len;
    return members;
}

static uint16_t member_port(const struct service_member *m, const char *endpoint)
{
    for (size_t i = 0; i < m->ports_len; i++)
        if (strcmp(m->ports[i].endpoint, endpoint) == 0)
            return m->ports[i].port;
    return 0;
}

static void endpoint_write(struct json_out *o, const struct work_doc *doc, size_t index,
                           const struct service_member *members, size_t members_len)
{
    const struct endpoint *endpoint = &doc->endpoints[index];

    json_out_open(o, NULL, '{');
    json_out_text(o, "name", endpoint->name);
    json_out_text(o, "protocol", protocol_name(endpoint->protocol));
    json_out_open(o, "instances", '[');
    for (size_t i = 0; i < members_len; i++) {
        const struct instance_view *instance = members[i].object->instance;
        uint16_t port = member_port(&members[i], endpoint->name);
        if (!port)
            continue;
        json_out_open(o, NULL, '{');
        json_out_number(o, "instance", instance->number);
        json_out_text(o, "node", instance->node);
        json_out_text(o, "address", members[i].place.address);
        json_out_number(o, "port", port);
        json_out_number(o, "weight", doc->weight);
        json_out_bool(o, "ready", instance->ready);
        json_out_close(o, '}');
    }
    json_out_close(o, ']');
    json_out_close(o, '}');
}

/* Writes the instances that clients choose among, weighted. */
static void selector_write(struct json_out *o, const struct object *app, const struct work_doc *doc,
                           const struct service_member *members, size_t members_len)
{
    json_out_open(o, "selector", '{');
    json_out_text(o, "app", app->id);
    json_out_text(o, "choose", "weighted");
    json_out_open(o, "instances", '[');
    for (size_t i = 0; i < members_len; i++) {
        if (!members[i].object->instance->ready)
            continue;
        json_out_open(o, NULL, '{');
        json_out_number(o, "instance", members[i].object->instance->number);
        json_out_number(o, "weight", doc->weight);
        json_out_close(o, '}');
    }
    json_out_close(o, ']');
    json_out_close(o, '}');
}

static void service_write(const struct state *s, const struct object *app, struct json_out *o, const char *key)
{
    struct arena arena;
    struct work_doc read;
    CLEANUP(json) json_t *doc = object_doc(app);
    CLEANUP(json) json_t *docs = json_array();
    size_t members_len;

    arena_init(&arena);
    int rc = work_doc_read(doc, &arena, &read, NULL);
    assert(rc == 0); /* the document was parsed when it arrived */
    (void)rc;
    struct service_member *members = members_read(s, app->work, &arena, docs, &members_len);
    json_out_open(o, key, '{');
    json_out_text(o, "service", app->id);
    selector_write(o, app, &read, members, members_len);
    json_out_open(o, "endpoints", '[');
    for (size_t i = 0; i < read.endpoints_len; i++)
        endpoint_write(o, &read, i, members, members_len);
    json_out_close(o, ']');
    json_out_close(o, '}');
    arena_done(&arena);
}

int service_info_write(const struct state *s, const char *app, struct str *to)
{
    const struct object *object = state_find(s, KIND_APP, app);
    struct json_out o = {.to = to};

    if (!object)
        return -ENOENT;
    service_write(s, object, &o, NULL);
    return 0;
}

/* ---- all services ----------------------------------------------------------------------------------------------- */

const char *services_scope(const struct caller *caller, struct arena *arena)
{
    enum scope scope = caller->scope[PERMIT_READ];
    /* Contains only what restricts the view, so that callers with the same view share one document. */
    return arena_fmt(arena, "%d/%s/%s", (int)scope, scope == SCOPE_ALL ? "" : caller->user,
                     scope == SCOPE_GROUP ? caller->group : "");
}

int services_write(const struct state *s, const char *scope, struct str *to)
{
    char user[ID_MAX + 1] = "", group[ID_MAX + 1] = "";
    const char *slash = strchr(scope, '/'), *second = slash ? strchr(slash + 1, '/') : NULL;
    struct json_out o = {.to = to};
    size_t len;

    assert(second && *scope >= '0' && *scope <= '0' + SCOPE_ALL);
    memcpy(user, slash + 1, (size_t)(second - slash - 1) < sizeof user ? (size_t)(second - slash - 1) : 0);
    memcpy(group, second + 1, strlen(second + 1) < sizeof group ? strlen(second + 1) : 0);
    struct caller caller = {.user = user, .group = group, .role = "", .node = "", .token = ""};
    caller.scope[PERMIT_READ] = (enum scope)(*scope - '0');

    const struct object *const *apps = state_list(s, KIND_APP, &len);
    json_out_open(&o, NULL, '{');
    json_out_open(&o, "items", '[');
    for (size_t i = 0; i < len; i++)
        if (permit(&caller, PERMIT_READ, apps[i]->owner, apps[i]->group))
            service_write(s, apps[i], &o, NULL);
    json_out_close(&o, ']');
    json_out_close(&o, '}');
    return 0;
}
