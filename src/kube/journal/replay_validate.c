#include "kube/journal/replay_validate.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "control/kind/kind.h"
#include "kube/job/job.h"

enum { PLACES_MAX = 1 << 22 }; /* maximum number of pod slots */
/* Far enough from the limits that sums cannot overflow. */
#define MOMENT_MIN (-(INT64_MAX / 4))
#define INSTANCE_MAX (INT64_MAX / 2)

/* ---- instances -------------------------------------------------------------------------------------------------- */

void replay_numbers_clear(struct replay_numbers *n)
{
    vec_done(&n->at);
    map_done(&n->by_number);
    *n = (struct replay_numbers){0};
}

static bool number_same(const void *ctx, uint32_t value, const void *key)
{
    return ((const struct replay_numbers *)ctx)->at.at[value] == *(const uint64_t *)key;
}

/* False: the number exists already. */
static bool number_add(struct replay_numbers *n, uint64_t number)
{
    if (map_find(&n->by_number, hash_u64(number), number_same, n, &number) != MAP_NONE)
        return false;
    map_add(&n->by_number, hash_u64(number), (uint32_t)n->at.len);
    vec_push(&n->at, number);
    n->most = number > n->most ? number : n->most;
    return true;
}

/* ---- numbers in documents --------------------------------------------------------------------------------------- */

static const struct number_rule {
    unsigned word;
    const char *key;
    int64_t least, most;
    bool needed;
} numbers[] = {
    {CACHE_POD,        "created",    MOMENT_MIN, REPLAY_MOMENT_MAX,      false},
 /* may be far in the future by a long grace period */
    {CACHE_POD,        "deleted",    MOMENT_MIN, INT64_MAX,              false},
    {CACHE_POD,        "bound",      MOMENT_MIN, REPLAY_MOMENT_MAX,      false},
    {CACHE_POD,        "instance",   0,          INSTANCE_MAX,           false},
    {WORD_ASSUME,      "instance",   0,          INSTANCE_MAX,           true },
    {WORD_TASKS,       "instance",   0,          INSTANCE_MAX,           true },
    {WORD_TASKS,       "ordinal",    0,          KUBE_TASKS_MAX - 1,     true },
    {WORD_TASKS,       "attempt",    1,          BERTH_REPLICAS_MAX - 1, true },
    {WORD_TASK_ENDS,   "instance",   0,          INSTANCE_MAX,           true },
    {WORD_TASK_ENDS,   "ordinal",    0,          KUBE_TASKS_MAX - 1,     true },
    {WORD_FORGET,      "not_before", MOMENT_MIN, REPLAY_MOMENT_MAX,      true },
    {WORD_BACKOFF,     "not_before", MOMENT_MIN, REPLAY_MOMENT_MAX,      true },
    {WORD_BACKOFF,     "failures",   0,          UINT32_MAX,             true },
    {WORD_RENEW,       "instances",  0,          INSTANCE_MAX,           true },
    {WORD_RENEW,       "places",     0,          PLACES_MAX,             true },
    {WORD_ROLE_CLAIMS, "tasks",      0,          KUBE_TASKS_MAX,         true },
    {WORD_ROLE_CLAIMS, "min",        0,          KUBE_TASKS_MAX,         true },
    {WORD_ROLE_CLAIMS, "priority",   INT32_MIN,  INT32_MAX,              true },
};

static const char *text_of(const json_t *doc, const char *key)
{
    const char *text = json_string_value(json_object_get(doc, key));
    return text ? text : "";
}

static bool number_right(const struct number_rule *n, const json_t *doc)
{
    const json_t *value = json_object_get(doc, n->key);
    int64_t number = json_integer_value(value);
    return value ? json_is_integer(value) && number >= n->least && number <= n->most : !n->needed;
}

static const char *number_wrong(enum journal_word word, const json_t *doc)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].word == word && !number_right(&numbers[i], doc))
            return numbers[i].key;
    return NULL;
}

/* ---- names ------------------------------------------------------------------------------------------------------ */

static size_t colons(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == ':';
    return count;
}

/* "namespace:name" with a uid; the id is the uid if that would be too long. */
static bool pod_named(const char *id, const json_t *doc)
{
    const char *uid = text_of(doc, json_object_get(doc, "gone") ? "gone" : "uid"), *colon = strchr(id, ':');
    bool known = json_is_null(doc) || (!json_object_get(doc, "t") && !json_object_get(doc, "gone"));
    return colons(id) == 1 && colon > id && colon[1] && (known ? strlen(id) <= BERTH_NAME_MAX : *uid && !colons(uid));
}

/* "namespace:job:role". */
static bool role_named(const char *id)
{
    const char *first = strchr(id, ':'), *last = strrchr(id, ':');
    return colons(id) == 2 && first > id && last > first + 1 && last[1] && strlen(id) <= BERTH_NAME_MAX;
}

static bool role_is_of(const char *id, const json_t *doc)
{
    const char *namespace = text_of(doc, "namespace");
    size_t len = strcspn(id, ":");
    return strlen(namespace) == len && memcmp(namespace, id, len) == 0 && *text_of(doc, "job");
}

/* "queues/gpu". */
static bool tenant_named(const char *id)
{
    static const enum kind some[] = {KIND_QUEUE, KIND_GROUP, KIND_USER, KIND_DOMAIN, KIND_POLICY};
    const char *slash = strchr(id, '/');
    for (size_t i = 0; slash && i < sizeof some / sizeof *some; i++)
        if (strlen(kinds[some[i]].plural) == (size_t)(slash - id) &&
            memcmp(kinds[some[i]].plural, id, (size_t)(slash - id)) == 0)
            return slash[1] && strlen(slash + 1) <= BERTH_NAME_MAX;
    return false;
}

static bool is_number(const char *id)
{
    size_t len = strlen(id);
    return len > 0 && len < 20 && strspn(id, "0123456789") == len;
}

static bool is_named(enum journal_word word, const char *id, const json_t *doc)
{
    switch ((int)word) {
    case CACHE_POD: return pod_named(id, doc);
    case WORD_ROLES: return role_named(id) && (json_is_null(doc) || role_is_of(id, doc));
    case WORD_TASKS: {
        const char *name = text_of(doc, "name");
        return role_named(id) && *name && !colons(name);
    }
    case WORD_TASK_ENDS:
    case WORD_TASKS_RERUN:
    case WORD_ROLE_CHANGED: return role_named(id);
    case WORD_PROMOTE:
    case WORD_FORGET:
    case WORD_STOPPING: return is_number(id);
    case WORD_TENANTS:
    case WORD_TENANT_DROP:
    case WORD_TENANT_RECALL:
    case WORD_TENANT_FORCE:
    case WORD_TENANT_USAGE: return tenant_named(id);
    case WORD_SETTLE:
    case WORD_RENEW:
    case WORD_TENANT_RECHECK:
    case WORD_TENANT_CLAIMED: return !*id;
    default: return *id;
    }
}

/* ---- the check -------------------------------------------------------------------------------------------------- */

/* For objects, roles and claims, null means that they are gone. */
static bool may_be_null(enum journal_word word)
{
    return word < WORD_SETTLE || word == WORD_ROLES || word == WORD_ROLE_CLAIMS;
}

/* The state of waiting pods occurs only in a base. */
static bool only_in_base(enum journal_word word)
{
    return word == WORD_BACKOFF || word == WORD_CLAIM_VOLUMES || word == WORD_RENEW || word == WORD_TENANT_FORCE ||
           word == WORD_TENANT_CLAIMED;
}

/* In a base, instances must have valid and distinct numbers. */
static const char *instance_wrong(enum journal_word word, const json_t *doc, struct replay_numbers *given)
{
    uint64_t instance = (uint64_t)json_integer_value(json_object_get(doc, "instance"));
    bool needed = word == WORD_ASSUME || word == WORD_TASKS || word == WORD_TASK_ENDS;
    if (word == WORD_RENEW)
        return (uint64_t)json_integer_value(json_object_get(doc, "instances")) < given->most
                   ? "its number of instances is too low"
                   : NULL;
    if (!needed && (word != (enum journal_word)CACHE_POD || !instance))
        return NULL;
    if (!instance)
        return "its instance is missing";
    return number_add(given, instance) ? NULL : "its instance is already used";
}

int replay_validate_change(enum journal_word word, const char *id, const json_t *doc, bool base,
                           struct replay_numbers *given, struct berth_err *err)
{
    bool null = json_is_null(doc) && may_be_null(word);
    if (!null && !json_is_object(doc))
        return err_set(err, EBADMSG, "it is not an object");
    if (only_in_base(word) && !base)
        return err_set(err, EBADMSG, "it is only allowed in a base");
    if (!is_named(word, id, doc))
        return err_set(err, EBADMSG, "its name is invalid");
    const char *key = null ? NULL : number_wrong(word, doc);
    if (key)
        return err_set(err, EBADMSG, "its '%s' is missing or out of range", key);
    const char *why = base ? instance_wrong(word, doc, given) : NULL;
    return why ? err_set(err, EBADMSG, "%s", why) : 0;
}
