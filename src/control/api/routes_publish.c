/* routes_publish.c - routes of derived configuration, health, metrics and the API description. */
#include <errno.h>
#include <string.h>

#include "control/api/openapi.h"
#include "control/api/routes.h"
#include "control/control_parts.h"
#include "control/node/node.h"
#include "control/watch/derived_parts.h"
#include "wire/text/words.h"

static const char content_json[] = "application/json";

/* Answers the document or, with ?watch=HASH, a stream of its versions. */
static int derived_answer(struct request *c, int (*write)(const struct state *s, const char *id, struct str *to),
                          const char *id)
{
    const char *known = request_query(c, "watch");

    if (known && strlen(known) >= DERIVED_HASH_MAX)
        return err_set(&c->err, EINVAL, "watch: expected the hash of the known document, or nothing");
    if (known)
        return watch_open_derived(c, write, id, known);
    int rc = write(c->state, id, &c->answer.text);
    if (rc < 0)
        return err_set(&c->err, -rc, "the document does not exist any more");
    c->answer.content_type = content_json;
    (void)derived_hash(&c->answer.text, c->answer.etag);
    c->answer.revision = state_revision(c->state);
    return 0;
}

/* Returns the node that an argument names, if the caller is its agent or may manage nodes. */
static const char *own_node(struct request *c)
{
    char buf[QUOTE_MAX], id[ID_MAX + 1];
    const struct object *node = NULL;

    if (id_fold("id", c->args[0], id, NULL) == 0)
        node = state_find(c->state, KIND_NODE, id);
    if (node && (permit(&c->caller, PERMIT_REPORT, node->id, "") || permit(&c->caller, PERMIT_NODES, "", "")))
        return node->id;
    if (node && request_may_see(c, node))
        (void)err_set(&c->err, EACCES,
                      "only the node's agent and users who may manage nodes can read the "
                      "configuration of a node");
    else
        (void)err_set(&c->err, ENOENT, "no node %s; see 'berth get nodes'", quote(c->args[0], buf));
    return NULL;
}

static int node_config(struct request *c)
{
    const char *node = own_node(c);
    int rc = node ? node_epoch_check(c, node) : -c->err.code;
    return rc < 0 ? rc : derived_answer(c, node_config_write, node);
}

static int node_gateway(struct request *c)
{
    const char *node = own_node(c);
    return node ? derived_answer(c, gateway_config_write, node) : -c->err.code;
}

static int services(struct request *c)
{
    return derived_answer(c, services_write, services_scope(&c->caller, &c->arena));
}

static int service(struct request *c)
{
    const struct object *app = request_object(c, KIND_APP, c->args[0], PERMIT_READ);
    return app ? derived_answer(c, service_info_write, app->id) : -c->err.code;
}

static int rbac(struct request *c)
{
    if (!c->caller.node[0] && !permit(&c->caller, PERMIT_USERS, "", ""))
        return err_set(&c->err, EACCES,
                       "only agents and users who may manage all users can read the table of "
                       "permissions");
    return derived_answer(c, rbac_write, c->caller.node);
}

/* ---- about the daemon ------------------------------------------------------------------------------------------- */

static void count_states(struct request *c, struct metrics *m)
{
    size_t nodes[BERTH_NODE_LOST + 1] = {0}, instances[BERTH_ENDED + 1] = {0}, len;
    const struct object *const *list = state_list(c->state, KIND_NODE, &len);

    for (size_t i = 0; i < len; i++)
        nodes[list[i]->node->state]++;
    list = state_list(c->state, KIND_INSTANCE, &len);
    for (size_t i = 0; i < len; i++)
        instances[list[i]->instance->state]++;
    for (unsigned i = 0; i < sizeof nodes / sizeof *nodes; i++)
        metric_set(m, METRIC_NODES, i, (double)nodes[i]);
    for (unsigned i = 0; i < sizeof instances / sizeof *instances; i++)
        metric_set(m, METRIC_INSTANCES, i, (double)instances[i]);
    for (unsigned k = 0; k < KINDS; k++) {
        (void)state_list(c->state, (enum kind)k, &len);
        metric_set(m, METRIC_OBJECTS, k, (double)len);
    }
}

static int metrics(struct request *c)
{
    struct metrics *m = control_metrics(c->control);
    struct store *store = control_store(c->control);

    if (!permit(&c->caller, PERMIT_SYSTEM, "", ""))
        return err_set(&c->err, EACCES, "metrics cover the work of all users and need the permission 'system: all'");
    count_states(c, m);
    metric_set(m, METRIC_REVISION, 0, (double)store_revision(store));
    metric_set(m, METRIC_STORE_BYTES, 0, (double)store_size(store));
    metric_set(m, METRIC_WATCHERS, 0, (double)watch_hub_len(control_hub(c->control)));
    metric_set(m, METRIC_CLOCK_AHEAD, 0, (double)c->control->clock_ahead_ns / 1e9);
    for (unsigned i = 0; i < ALARMS; i++)
        metric_set(m, METRIC_ALARM, i, c->control->alarms[i].since_ns != 0);
    metrics_write(m, &c->answer.text);
    node_statuses_metrics(c->control->lives, c->state, &c->answer.text);
    c->answer.content_type = "text/plain; version=0.0.4; charset=utf-8";
    return 0;
}

static int alarms(struct request *c)
{
    json_t *items = json_array();
    for (unsigned i = 0; i < ALARMS; i++) {
        const struct alarm_state *a = &c->control->alarms[i];
        char since[TIMESTAMP_MAX];
        if (a->since_ns)
            (void)json_array_append_new(items, json_pack("{s:s, s:s, s:s}", "alarm", alarm_name(i), "since",
                                                         timestamp_text(a->since_ns, since), "text", a->text));
    }
    c->answer.body = json_pack("{s:o}", "items", items);
    return 0;
}

/* Liveness: berthd answers requests. */
static int healthz(struct request *c)
{
    c->answer.body = json_pack("{s:s}", "status", "ok");
    return 0;
}

/* Readiness: berthd accepts changes. */
static int readyz(struct request *c)
{
    const char *refuses = control_refuses(c->control);
    return refuses ? err_set(&c->err, ENOSPC, "%s", refuses) : healthz(c);
}

static int version(struct request *c)
{
    c->answer.body = json_pack("{s:s, s:s, s:i}", "version", berth_version(), "api", "v1", "schema", SCHEMA_VERSION);
    return 0;
}

static int openapi(struct request *c)
{
    openapi_write(&c->answer.text);
    c->answer.content_type = content_json;
    return 0;
}

#define STREAM .flags = ROUTE_STREAMS, .query = "watch"
const struct route publish_routes[] = {
    ROUTE("GET", "/v1/nodes/{id}/config", PERMIT_SELF, .run = node_config,
          .summary = "Read the desired state of a "
                     "node",
          .flags = ROUTE_STREAMS, .query = "watch,epoch"),
    ROUTE("GET", "/v1/nodes/{id}/gateway", PERMIT_SELF, .run = node_gateway,
          .summary = "Read the routes from a node to every service", STREAM),
    ROUTE("GET", "/v1/services", PERMIT_READ, .run = services, .summary = "List the endpoints of all services", STREAM),
    ROUTE("GET", "/v1/services/{id}", PERMIT_READ, .run = service, .summary = "List the endpoints of a service",
          STREAM),
    ROUTE("GET", "/v1/rbac", PERMIT_SELF, .run = rbac, .summary = "Read the table of permissions", STREAM),
    ROUTE("GET", "/v1/alarms", PERMIT_CLUSTER, .run = alarms, .summary = "List active alarms"),
    ROUTE("GET", "/metrics", PERMIT_SYSTEM, .run = metrics, .summary = "Metrics for Prometheus"),
    ROUTE("GET", "/healthz", PERMIT_PUBLIC, .run = healthz, .flags = ROUTE_PROBE,
          .summary = "Liveness: the daemon "
                     "responds"),
    ROUTE("GET", "/readyz", PERMIT_PUBLIC, .run = readyz, .flags = ROUTE_PROBE,
          .summary = "Readiness: the daemon accepts changes"),
    ROUTE("GET", "/version", PERMIT_PUBLIC, .run = version, .summary = "Version of the daemon"),
    ROUTE("GET", "/openapi.json", PERMIT_PUBLIC, .run = openapi,
          .summary = "This API reference in "
                     "machine-readable form",
          .flags = ROUTE_HEAVY),
};
#undef STREAM
const size_t publish_routes_len = sizeof publish_routes / sizeof *publish_routes;
