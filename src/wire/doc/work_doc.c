/* work_doc.c - documents of apps, jobs and vms: the workload, its shape, its command, and the daemon's keys. */
#include <errno.h>
#include <string.h>

#include "wire/doc/objects.h"
#include "wire/text/words.h"

enum { ARGUMENT_MAX = 128 * 1024 }; /* the kernel's limit */

static int argument_read(struct reader *r, const json_t *value, const char **ret)
{
    int rc = text_of(r, value, ret);
    if (rc == 0 && strlen(*ret) >= ARGUMENT_MAX)
        return err_set(r->err, EINVAL, "has %zu bytes; at most %d are allowed", strlen(*ret), ARGUMENT_MAX - 1);
    return rc;
}

/* Rejects a single string in place of the list: "sleep 5" is not a program. */
int command_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_array(value))
        return expected(r, "a list like [\"/bin/sleep\", \"5\"]", value);
    size_t len = json_array_size(value);
    if (len > BERTH_LIST_MAX)
        return err_set(r->err, EINVAL, "%zu arguments; at most %d are allowed", len, BERTH_LIST_MAX);
    const char **texts = ARENA_ARRAY(r->arena, const char *, len);
    for (size_t i = 0; i < len; i++) {
        int rc = argument_read(r, json_array_get(value, i), &texts[i]);
        if (rc < 0)
            return in_item(r, i, rc);
    }
    if (len && !*texts[0])
        return in_item(r, 0, err_set(r->err, EINVAL, "expected a program, found \"\""));
    list_set(key, object, texts, len);
    return 0;
}

static int env_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_object(value))
        return expected(r, "an object like {\"HOME\": \"/tmp\"}", value);
    if (json_object_size(value) > BERTH_LIST_MAX)
        return err_set(r->err, EINVAL, "more than %d variables", BERTH_LIST_MAX);
    struct berth_label *env = ARENA_ARRAY(r->arena, struct berth_label, json_object_size(value));
    size_t len = 0;
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)value, name, member)
    {
        char buf[QUOTE_MAX];
        if (!*name || strchr(name, '=') || strlen(name) > BERTH_NAME_MAX)
            return err_set(r->err, EINVAL, "%s is not a valid variable name", quote(name, buf));
        env[len] = (struct berth_label){text_keep(r, name), ""};
        int rc = json_is_null(member) ? 0 : argument_read(r, member, &env[len].value);
        if (rc < 0)
            return in_member(r, name, rc);
        len++;
    }
    list_set(key, object, env, len);
    return 0;
}

static int path_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const char *path = NULL;
    int rc = text_of(r, value, &path);
    if (rc < 0)
        return rc;
    if (!*path || strlen(path) >= PATH_BYTES_MAX)
        return err_set(r->err, EINVAL, "expected a path of 1 to %d bytes", PATH_BYTES_MAX - 1);
    *(const char **)key_field(key, object) = path;
    return 0;
}

/* ---- endpoints --------------------------------------------------------------------------------------------------- */

static const struct enum_word protocol_words[] = {
    {"tcp",  BERTH_TCP },
    {"udp",  BERTH_UDP },
    {"sctp", BERTH_SCTP},
    {NULL,   0         },
};

static const struct enum_word listen_words[] = {
    {"port",   LISTEN_PORT  },
    {"socket", LISTEN_SOCKET},
    {NULL,     0            },
};

static int guest_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > UINT16_MAX)
        return expected(r, "a port from 1 to 65535", value);
    return u32_read(r, key, value, object);
}

static int await_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_boolean(value))
        return expected(r, "true or false", value);
    *(bool *)key_field(key, object) = json_is_false(value);
    return 0;
}

static const struct key endpoint_rows[] = {
    KEY("name", "text", "the name that clients use; required", line_read, .at = offsetof(struct endpoint, name)),
    KEY("protocol", "`tcp`, `udp` or `sctp`", "default: `tcp`", word_read, .at = offsetof(struct endpoint, protocol),
        .arg = protocol_words),
    KEY("listen", "`port` or `socket`", "the app gets the port number, or the listening socket; default: `port`",
        word_read, .at = offsetof(struct endpoint, listen), .arg = listen_words),
    KEY("guest", "1 to 65535", "for a virtual machine: the port of the guest; required there", guest_read,
        .at = offsetof(struct endpoint, guest)),
    KEY("await", "true or false",
        "for an app without `health`: an instance is ready when this tcp port accepts connections; default: true",
        await_read, .at = offsetof(struct endpoint, eager)),
};
static KEY_TABLE(endpoint_keys, "endpoint", endpoint_rows);

static int endpoint_short(struct reader *r, const json_t *value, void *item)
{
    static const struct key name = {.at = offsetof(struct endpoint, name)};
    return line_read(r, &name, value, item);
}

static int endpoint_finish(struct reader *r, void *item)
{
    const struct endpoint *e = item;
    return e->name && *e->name ? 0 : missing(r, "name");
}

static int endpoints_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    static const struct object_kind kind = {.table = &endpoint_keys,
                                            .size = sizeof(struct endpoint),
                                            .read_short = endpoint_short,
                                            .finish = endpoint_finish};
    struct key with_kind = *key;
    with_kind.arg = &kind;
    if (json_array_size(value) > ENDPOINTS_MAX)
        return err_set(r->err, EINVAL, "%zu endpoints; at most %d are allowed", json_array_size(value), ENDPOINTS_MAX);
    int rc = objects_read(r, &with_kind, value, object);
    const struct work_doc *d = object;
    for (size_t i = 0; rc == 0 && i < d->endpoints_len; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp(d->endpoints[i].name, d->endpoints[j].name) == 0)
                return in_item(r, i, err_set(r->err, EINVAL, "endpoint %s is listed twice", d->endpoints[i].name));
    return rc;
}

/* ---- the outcome ------------------------------------------------------------------------------------------------- */

const struct enum_word outcome_words[] = {
    {"",              OUTCOME_NONE         },
    {"succeeded",     OUTCOME_SUCCEEDED    },
    {"failed",        OUTCOME_FAILED       },
    {"cancelled",     OUTCOME_CANCELLED    },
    {"timed-out",     OUTCOME_TIMED_OUT    },
    {"out-of-memory", OUTCOME_OUT_OF_MEMORY},
    {"node-lost",     OUTCOME_NODE_LOST    },
    {"preempted",     OUTCOME_PREEMPTED    },
    {NULL,            0                    },
};

const char *work_outcome_name(enum work_outcome outcome)
{
    return outcome_words[outcome].name;
}

/* ---- the document ------------------------------------------------------------------------------------------------ */

static int weight_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > BERTH_WEIGHT_MAX)
        return expected(r, "a whole number from 0 to 100", value);
    return u32_read(r, key, value, object);
}

static int index_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    enum { INDEXES = (PORT_END - PORT_BASE) / PORT_BLOCK };
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) >= INDEXES)
        return expected(r, "the index of a block of ports", value);
    return i32_read(r, key, value, object);
}

#define AT(field) offsetof(struct work_doc, field)
#define LIST(field) .at = AT(field), .len_at = AT(field##_len)
static const struct key work_rows[] = {
    KEY("name", "text", "app or vm: first part of the id; job: any text", line_read, .at = AT(name)),
    KEY("owner", "user", "default: the caller", line_read, .at = AT(owner)),
    KEY("group", "group", "group of the owner; set by the daemon", line_read, .at = AT(group)),
    KEY("hold", "true or false", "job: hold until released", bool_read, .at = AT(hold)),
    KEY("stopped", "true or false", "app or vm: keep the specification, run no instances", bool_read,
        .at = AT(stopped)),
    KEY("cancelled", "true or false", "job: cancelled by its user; set by the daemon", bool_read, .at = AT(cancelled)),
    KEY("failed", "true or false", "failed, no further attempts; set by the daemon", bool_read, .at = AT(failed)),
    KEY("ended", "true or false", "app or vm: ended by itself; set by the daemon", bool_read, .at = AT(ended)),
    KEY("outcome", "text", "outcome; set by the daemon", word_read, .at = AT(outcome), .arg = outcome_words),
    KEY("error", "text", "cause of the failure; set by the daemon", message_read, .at = AT(error)),
    KEY("command", "list of texts", "program and arguments, passed unchanged", command_read, LIST(command)),
    KEY("env", "{name: text}", "environment variables", env_read, LIST(env)),
    KEY("workdir", "path", "working directory", path_read, .at = AT(workdir)),
    KEY("image", "text", "container image or VM image", path_read, .at = AT(image)),
    KEY("resources", "{resource: amount}", "alias of `requests`", amounts_read, .at = AT(workload.shape.requests),
        .len_at = AT(workload.shape.requests_len)),
    KEY("endpoints", "list of {`name`, `protocol`, `listen`, `guest`, `await`}", "app or vm: ports that it listens on",
        endpoints_read, LIST(endpoints)),
    KEY("settings", "{name: value}", "settings of the app, checked against `settings_schema`", tree_read,
        .at = AT(settings)),
    KEY("settings_schema", "{name: {`type`, ...}}", "schema of the settings", tree_read, .at = AT(settings_schema)),
    KEY("install", "{name: value}", "install configuration, never shown to the app", tree_read, .at = AT(install)),
    KEY("weight", "0 to 100", "weight of its instances in `service_info`; default: 100", weight_read, .at = AT(weight)),
    KEY("index", "whole number", "index of its port block; set by the daemon", index_read, .at = AT(port_index)),
    KEY("restart", "whole number", "number of requested restarts; set by the daemon", counter_read, .at = AT(restarts)),
    KEY("system", "true or false", "a system service; set by the daemon", bool_read, .at = AT(system)),
    KEY("stoppable", "true or false", "system service: may be disabled; set by the daemon", bool_read,
        .at = AT(stoppable)),
};
#undef LIST
#undef AT
static KEY_TABLE(work_keys, "app, job or vm", work_rows);

const struct key_table *const work_tables[] = {&work_keys,  &run_keys,  &job_keys, &workload_keys,
                                               &shape_keys, &meta_keys, NULL};

/* Rejects keys of the cluster file that have no meaning or another meaning here. */
static int foreign_keys(struct reader *r, const json_t *doc)
{
    static const struct {
        const char *key, *instead;
    } rows[] = {
        {"count",     "is only for cluster files; add objects one by one"     },
        {"kind",      "is set by the collection; leave it out"                },
        {"suspended", "use \"hold\" for a job, \"stopped\" for an app or a vm"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const json_t *found = json_object_get(doc, rows[i].key);
        if (found && !json_is_null(found))
            return err_set(r->err, EINVAL, "%s: %s", rows[i].key, rows[i].instead);
    }
    const json_t *requests = json_object_get(doc, "requests"), *resources = json_object_get(doc, "resources");
    if (requests && !json_is_null(requests) && resources && !json_is_null(resources))
        return err_set(r->err, EINVAL, "resources: is an alias of requests; give only one");
    return 0;
}

/* Limits the pods per node. The workload has the same block of ports on every node, and its pods on a node share the
 * block, so each pod needs room for a port of every endpoint. */
static void port_block_limit(const struct work_doc *d, struct berth_shape *shape)
{
    uint32_t most = (uint32_t)(PORT_BLOCK / d->endpoints_len);
    if (shape->max_per_node == 0 || shape->max_per_node > most)
        shape->max_per_node = most;
}

static void image_add(struct reader *r, const char *image, struct berth_shape *shape)
{
    for (size_t i = 0; i < shape->images_len; i++)
        if (strcmp(shape->images[i], image) == 0)
            return;
    const char **images = ARENA_ARRAY(r->arena, const char *, shape->images_len + 1);
    for (size_t i = 0; i < shape->images_len; i++)
        images[i] = shape->images[i];
    images[shape->images_len] = image;
    shape->images = images;
    shape->images_len++;
}

int work_doc_read(const json_t *doc, struct arena *arena, struct work_doc *ret, struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    struct work_doc d = {
        .stoppable = true, .port_index = -1, .weight = BERTH_WEIGHT_MAX, .run.retries = -1, .job = job_terms_initial};
    struct workload_entry entry = {.workload.replicas = 1, .count = NO_COUNT};
    const struct object_part more[] = {
        {&work_keys, &d     },
        {&run_keys,  &d.run },
        {&job_keys,  &d.job },
        {&meta_keys, &d.meta},
    };
    int rc = foreign_keys(&r, doc);
    if (rc == 0)
        rc = workload_parts_read(&r, doc, &entry, more, sizeof more / sizeof *more);
    if (rc == 0)
        rc = meta_finish(&r, &d.meta, entry.workload.id);
    if (rc < 0)
        return rc;

    if (d.workload.shape.requests_len) { /* from the key `resources` */
        entry.workload.shape.requests = d.workload.shape.requests;
        entry.workload.shape.requests_len = d.workload.shape.requests_len;
    }
    d.workload = entry.workload;
    d.workload.suspended = d.hold || d.stopped || d.cancelled || d.failed || d.ended;
    if (entry.gang_alone)
        d.workload.gang = d.workload.id;
    else if (d.workload.gang && *d.workload.gang && d.owner && *d.owner)
        /* so that no user can join another user's gang by its name */
        d.workload.gang = arena_fmt(arena, "%s/%s", d.owner, d.workload.gang);
    rc = job_finish(&r, doc, &d.job, &d.workload);
    if (rc < 0)
        return rc;
    d.meta.created_ns = d.workload.created_ns;
    if (d.port_index >= 0 && d.endpoints_len)
        port_block_limit(&d, &d.workload.shape);
    if (d.image)
        image_add(&r, d.image, &d.workload.shape);
    if (d.run.vm.given && !d.workload.shape.runtime)
        d.workload.shape.runtime = "vm";
    rc = run_finish(&r, &d, &d.workload.shape);
    if (rc == 0)
        *ret = d;
    return rc;
}
