/* work_defaults.c - default requests and a default memory limit for workloads that have none.
 *
 * Defaults are written into the document when the workload is created. So the owner sees them, quotas count them, plans
 * and replays need no setting, and workloads that were stored before stay as they are. Given values are kept: amounts,
 * weights, and limits that follow use.
 */
#include <errno.h>
#include <string.h>

#include "control/kind/work.h"
#include "control/system/settings_table.h"
#include "wire/text/quantity.h"

enum { DEFAULTS_MAX = 16 };

struct default_request {
    const char *resource, *text;
    int64_t amount;
};

/* Parses "cpu=50m,memory=256Mi". */
static int defaults_read(const char *text, struct arena *arena, struct default_request *ret, size_t *ret_len,
                         struct berth_err *err)
{
    size_t len = 0;
    for (const char *p = text; *p;) {
        size_t part = strcspn(p, ","), name = strcspn(p, "=");
        if (name == 0 || name >= part || len == DEFAULTS_MAX)
            return err_set(err, EINVAL, "expected something like cpu=50m,memory=256Mi, found %.80s", p);
        struct default_request *r = &ret[len++];
        r->resource = arena_strndup(arena, p, name);
        r->text = arena_strndup(arena, p + name + 1, part - name - 1);
        int rc = quantity_parse_text(r->resource, r->text, &r->amount, err);
        if (rc == 0 && r->amount <= 0)
            rc = err_set(err, EINVAL, "expected more than 0");
        if (rc < 0)
            return err ? err_prefix(err, "%s", r->resource) : rc;
        p += part + (p[part] == ',');
    }
    *ret_len = len;
    return 0;
}

int work_defaults_check(const char *text, struct arena *arena, struct berth_err *err)
{
    struct default_request requests[DEFAULTS_MAX];
    size_t len;
    return defaults_read(text, arena, requests, &len, err);
}

/* Returns a member of an object in the document; NULL: none, or not an object. */
static json_t *doc_member(const json_t *doc, const char *key, const char *resource)
{
    return json_object_get(json_object_get(doc, key), resource);
}

/* Returns whether an amount above 0 is requested. An unreadable amount counts as requested and is rejected later. */
static bool is_requested(const json_t *doc, const char *resource)
{
    int64_t amount;
    const json_t *value = doc_member(doc, "requests", resource);
    return value && (quantity_parse(resource, value, &amount, NULL) < 0 || amount != 0);
}

static void put(json_t *doc, const char *key, const char *resource, json_t *value)
{
    json_t *object = json_object_get(doc, key);
    if (!object)
        (void)json_object_set_new(doc, key, object = json_object());
    (void)json_object_set_new(object, resource, value);
}

/* Returns the default, or a limit that is below the default. */
static json_t *request_of(const json_t *doc, const struct default_request *r)
{
    int64_t limit;
    json_t *value = doc_member(doc, "limits", r->resource);
    value = json_is_object(value) ? json_object_get(value, "amount") : value;
    bool less = value && quantity_parse(r->resource, value, &limit, NULL) == 0 && limit > 0 && limit < r->amount;
    return less ? json_copy(value) : json_string(r->text);
}

/* A stored workload without a request keeps none. */
static void requests_fill(struct request *c, const json_t *old, json_t *doc)
{
    struct default_request requests[DEFAULTS_MAX];
    size_t len = 0;
    const json_t *given = json_object_get(doc, "requests");
    const char *text = system_setting_text(c->state, SETTING_DEFAULT_REQUESTS, &c->arena);
    if ((given && !json_is_object(given)) || defaults_read(text, &c->arena, requests, &len, NULL) < 0)
        return;
    bool machine = json_object_get(doc, "vm") != NULL; /* a VM states its guest's memory itself, or is rejected */
    for (size_t i = 0; i < len; i++) {
        const char *resource = requests[i].resource;
        if (is_requested(doc, resource) || (old && !is_requested(old, resource)) ||
            (machine && strcmp(resource, "memory") == 0))
            continue;
        put(doc, "requests", resource, request_of(doc, &requests[i]));
    }
}

static bool same_memory(const json_t *a, const json_t *b)
{
    int64_t x, y;
    return a && b && quantity_parse("memory", a, &x, NULL) == 0 && quantity_parse("memory", b, &y, NULL) == 0 && x == y;
}

/* Sets the memory limit to the request. A limit that equalled the request follows a changed request, unless another
 * limit is given. */
static void limit_fill(struct request *c, const json_t *old, json_t *doc)
{
    json_t *request = doc_member(doc, "requests", "memory"), *limit = doc_member(doc, "limits", "memory");
    const json_t *limits = json_object_get(doc, "limits"), *was = doc_member(old, "limits", "memory");
    if (!is_requested(doc, "memory") || json_object_get(doc, "vm") || (limits && !json_is_object(limits)) ||
        strcmp(system_setting_text(c->state, SETTING_MEMORY_LIMIT, &c->arena), "request") != 0)
        return;
    bool follows =
        limit && was && json_equal(limit, (json_t *)was) && same_memory(was, doc_member(old, "requests", "memory"));
    if (limit ? !follows : old && !was)
        return;
    if (!same_memory(limit, request))
        put(doc, "limits", "memory", json_copy(request));
}

void work_defaults(struct request *c, const json_t *old, json_t *doc)
{
    if (json_is_true(json_object_get(doc, "system")))
        return;
    requests_fill(c, old, doc);
    limit_fill(c, old, doc);
}
