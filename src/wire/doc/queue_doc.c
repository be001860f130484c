/* queue_doc.c - documents of queues, policies and routing rules. */
#include "wire/doc/queue_doc.h"

#include <errno.h>
#include <string.h>

#include "wire/doc/objects.h"

#define LONG_NS (INT64_C(3650) * 86400 * 1000000000)

static int length_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int64_t ns = 0;
    int rc = duration_read(r, &(struct key){0}, value, &ns);
    if (rc == 0 && (ns < 1000000000 || ns > LONG_NS))
        return expected(r, "a duration from 1s to 3650d", value);
    if (rc == 0)
        *(int64_t *)key_field(key, object) = ns;
    return rc;
}

int queue_names_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    size_t len = json_is_array(value) ? json_array_size(value) : 1;
    if (len > QUEUE_LIST_MAX)
        return err_set(r->err, EINVAL, "%zu names; at most %d are allowed", len, QUEUE_LIST_MAX);
    return texts_read(r, key, value, object);
}

/* ---- queues ----------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct queue_doc, field)
#define LIST(field) .at = AT(field), .len_at = AT(field##_len)
static const struct key queue_rows[] = {
    KEY("parent", "text", "the parent queue; resources of its jobs also count there", line_read, .at = AT(parent)),
    KEY("priority", "whole number", "within a tier, queues with higher priority go first; default: 0", i32_read,
        .at = AT(priority)),
    KEY("priority_class", "whole number", "added to the priority of its jobs; default: 0", i32_read,
        .at = AT(priority_class)),
    KEY("weight", "1 to 1000000", "weight among queues of the same parent; default: 1", quota_weight_read,
        .at = AT(weight)),
    KEY("share", "true or false", "guarantee the queue the share of its weight in its parent or the cluster", bool_read,
        .at = AT(share)),
    KEY("quota", "{`limits`, `guarantees`, `admitted`, `totals`}", "quota of all jobs of the queue", quota_read,
        .at = AT(quota)),
    KEY("users", "list of names", "users who may use it, in addition to `groups`; default: all users", queue_names_read,
        LIST(users)),
    KEY("groups", "list of names", "groups whose users may use it", queue_names_read, LIST(groups)),
    KEY("domains", "list of names", "domains in which its jobs may run; default: all", queue_names_read, LIST(domains)),
    KEY("policy", "text", "ordering policy: one of /v1/policies or a built-in one; default: that of the settings",
        line_read, .at = AT(policy)),
    KEY("time_limit", "duration", "default time limit of its jobs", length_read, .at = AT(time_limit_ns)),
    KEY("max_time", "duration", "maximum time limit of its jobs", length_read, .at = AT(max_time_ns)),
};
#undef LIST
#undef AT
static KEY_TABLE(queue_keys, "queue", queue_rows);

const struct key_table *const queue_tables[] = {&queue_keys, &identity_keys, &meta_keys, &created_keys, NULL};

int queue_doc_read(const json_t *doc, struct arena *arena, struct queue_doc *ret, struct berth_err *err)
{
    struct queue_doc d = {0};
    int rc = document_fill(doc, arena, &queue_keys, &d, &d.meta, err);
    if (rc < 0)
        return rc;
    if (d.max_time_ns && d.time_limit_ns > d.max_time_ns)
        return err_set(err, EINVAL, "time_limit: is longer than max_time");
    *ret = d;
    return 0;
}

/* ---- policies --------------------------------------------------------------------------------------------------- */

static int weights_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_object(value))
        return expected(r, "an object like {age: 10, fair: 40}", value);
    struct berth_weight *weights = ARENA_ARRAY(r->arena, struct berth_weight, json_object_size(value));
    size_t len = 0;
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)value, name, member)
    {
        json_int_t n = json_integer_value(member);
        if (!json_is_integer(member) || n == 0 || n < -BERTH_WEIGHT_MAX || n > BERTH_WEIGHT_MAX)
            return in_member(r, name, expected(r, "a whole number from -100 to 100, and not 0", member));
        weights[len++] = (struct berth_weight){text_keep(r, name), (int32_t)n};
    }
    list_set(key, object, weights, len);
    return 0;
}

/* Reads text that may have several lines. */
static int formula_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const char *text = json_string_value(value);
    if (!text)
        return expected(r, "the text of a formula", value);
    if (json_string_length(value) > FORMULA_BYTES_MAX)
        return err_set(r->err, EINVAL, "has %zu bytes; at most %d are allowed", json_string_length(value),
                       FORMULA_BYTES_MAX);
    *(const char **)key_field(key, object) = text_keep(r, text);
    return 0;
}

#define AT(field) offsetof(struct policy_doc, field)
static const struct key policy_rows[] = {
    KEY("ranking", "text", "how jobs are ordered: a ranking that is built in, or `formula`; default: `fifo`", line_read,
        .at = AT(ranking)),
    KEY("weights", "{factor: weight}", "weights for `multifactor`: -100 to 100 each, not 0", weights_read,
        .at = AT(weights), .len_at = AT(weights_len)),
    KEY("formula", "text", "formula for `formula`: in Lua, over the factors; higher values go first", formula_read,
        .at = AT(formula)),
};
#undef AT
static KEY_TABLE(policy_keys, "policy", policy_rows);

const struct key_table *const policy_tables[] = {&policy_keys, &identity_keys, &meta_keys, &created_keys, NULL};

int policy_doc_read(const json_t *doc, struct arena *arena, struct policy_doc *ret, struct berth_err *err)
{
    struct policy_doc d = {0};
    int rc = document_fill(doc, arena, &policy_keys, &d, &d.meta, err);
    if (rc < 0)
        return rc;
    if (!d.ranking || !*d.ranking)
        d.ranking = d.formula ? "formula" : d.weights_len ? "multifactor" : "fifo";
    if ((strcmp(d.ranking, "formula") == 0) != (d.formula != NULL))
        return err_set(err, EINVAL, d.formula ? "formula: is only for the ranking formula" : "formula: missing");
    if (d.weights_len && strcmp(d.ranking, "multifactor") != 0)
        return err_set(err, EINVAL, "weights: are only for the ranking multifactor");
    *ret = d;
    return 0;
}

/* ---- routing rules ---------------------------------------------------------------------------------------------- */

static int count_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return expected(r, "a whole number of 0 or more", value);
    return i64_read(r, key, value, object);
}

#define AT(field) offsetof(struct route_rule, field)
static const struct key when_rows[] = {
    KEY("user", "user", "owner of the job", line_read, .at = AT(user)),
    KEY("group", "group", "group of the owner", line_read, .at = AT(group)),
    KEY("queue", "text", "current or requested queue", line_read, .at = AT(queue)),
    KEY("class", "text", "that it says", line_read, .at = AT(class_name)),
    KEY("type", "text", "that it says", line_read, .at = AT(type)),
    KEY("network", "text", "that it says", line_read, .at = AT(network)),
    KEY("gpus_min", "whole number", "minimum total request of all pods", count_read, .at = AT(gpus_min)),
    KEY("gpus_max", "whole number", "maximum", count_read, .at = AT(gpus_max)),
    KEY("pods_min", "whole number", "minimum number of pods", count_read, .at = AT(pods_min)),
    KEY("pods_max", "whole number", "maximum", count_read, .at = AT(pods_max)),
    KEY("waited", "duration", "minimum time since submission; applies to pending jobs", length_read,
        .at = AT(waited_ns)),
    KEY("used", "whole number", "minimum recent core hours of the owner; applies to pending jobs", count_read,
        .at = AT(used)),
};
#undef AT
static KEY_TABLE(when_keys, "when", when_rows);

static int when_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    (void)key;
    return table_read(r, value, &when_keys, object);
}

static const struct key rule_rows[] = {
    KEY("when", "{`user`, `group`, `queue`, `class`, `type`, ...}",
        "conditions, all of which must match; default: "
        "always",
        when_read),
    KEY("queue", "text", "the target queue; required", line_read, .at = offsetof(struct route_rule, to)),
};
static KEY_TABLE(rule_keys, "route", rule_rows);

static int rule_finish(struct reader *r, void *item)
{
    const struct route_rule *rule = item;
    return rule->to && *rule->to ? 0 : missing(r, "queue");
}

static const struct object_kind rule_kind = {
    .table = &rule_keys,
    .size = sizeof(struct route_rule),
    .initial = &(const struct route_rule){.gpus_min = -1, .gpus_max = -1, .pods_min = -1, .pods_max = -1, .used = -1},
    .finish = rule_finish,
};

static int rules_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (json_array_size(value) > ROUTES_MAX)
        return err_set(r->err, EINVAL, "%zu rules; at most %d are allowed", json_array_size(value), ROUTES_MAX);
    struct key with_kind = *key;
    with_kind.arg = &rule_kind;
    return objects_read(r, &with_kind, value, object);
}

#define AT(field) offsetof(struct routes_doc, field)
static const struct key routes_rows[] = {
    KEY("rules", "list of {`when`, `queue`}", "the first matching rule sets the queue of a job that names none",
        rules_read, .at = AT(rules), .len_at = AT(rules_len)),
    KEY("v", "whole number", "version of the stored format; set by the daemon", i64_read, .at = AT(version)),
};
#undef AT
KEY_TABLE(routes_keys, "routes", routes_rows);

int routes_doc_read(const json_t *doc, struct arena *arena, struct routes_doc *ret, struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    struct routes_doc d = {0};
    int rc = table_read(&r, doc, &routes_keys, &d);
    if (rc == 0)
        *ret = d;
    return rc;
}
