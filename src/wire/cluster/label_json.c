/* label_json.c - conditions on labels, taints and tolerations.
 *
 * A condition is {disk: ssd, gen: {gt: 3}} or a list of {key, op, values}; all of it must hold.
 */
#include <errno.h>
#include <string.h>

#include "wire/doc/objects.h"

enum { PREFER_WEIGHT = 1 }; /* of a preference without a weight */

/* ---- conditions -------------------------------------------------------------------------------------------------- */

static const struct enum_word match_words[] = {
    {"In",           BERTH_IN        },
    {"NotIn",        BERTH_NOT_IN    },
    {"Exists",       BERTH_EXISTS    },
    {"DoesNotExist", BERTH_NOT_EXISTS},
    {"Gt",           BERTH_GT        },
    {"Lt",           BERTH_LT        },
    {NULL,           0               },
};

#define AT(field) offsetof(struct berth_expr, field)
static const struct key expression_rows[] = {
    KEY("key", "text", "the label", text_read, .at = AT(key)),
    KEY("op", "`In`, `NotIn`, `Exists`, `DoesNotExist`, `Gt` or `Lt`", "the operator; default: `In`", word_read,
        .at = AT(match), .arg = match_words),
    KEY("values", "list of texts", "the values to compare with", texts_read, .at = AT(values),
        .len_at = AT(values_len)),
};
#undef AT
KEY_TABLE(expression_keys, "expression", expression_rows);

/* The conditions on one label. */
struct label_conditions {
    const char *const *in, *const *not_in, *const *gt, *const *lt;
    size_t in_len, not_in_len, gt_len, lt_len;
    int exists; /* -1: not given */
};

#define LIST(field)                                                                                                    \
    .at = offsetof(struct label_conditions, field), .len_at = offsetof(struct label_conditions, field##_len)
static const struct key condition_rows[] = {
    KEY("in", "text or list", "the label has one of these values", texts_read, LIST(in)),
    KEY("not_in", "text or list", "the label is missing or has none of these values", texts_read, LIST(not_in)),
    KEY("exists", "true or false", "the label exists with any value, or does not exist", choice_read,
        .at = offsetof(struct label_conditions, exists)),
    KEY("gt", "whole number", "the label is a whole number above this", texts_read, LIST(gt)),
    KEY("lt", "whole number", "the label is a whole number below this", texts_read, LIST(lt)),
};
#undef LIST
KEY_TABLE(condition_keys, "condition", condition_rows);
enum { CONDITION_EXPRS_MAX = sizeof condition_rows / sizeof *condition_rows };

/* Appends the conditions on one label to exprs, which has room. */
static int condition_read(struct reader *r, const char *name, const json_t *value, struct berth_expr *exprs,
                          size_t *len)
{
    struct label_conditions c = {.exists = -1};
    static const struct key plain = {.at = offsetof(struct label_conditions, in),
                                     .len_at = offsetof(struct label_conditions, in_len)};

    if (json_is_null(value))
        return err_set(r->err, EINVAL, "expected a value; {exists: true} asks for any");
    int rc = json_is_object(value) ? table_read(r, value, &condition_keys, &c) : texts_read(r, &plain, value, &c);
    if (rc < 0)
        return rc;
    if (c.in)
        exprs[(*len)++] = (struct berth_expr){name, BERTH_IN, c.in, c.in_len};
    if (c.not_in)
        exprs[(*len)++] = (struct berth_expr){name, BERTH_NOT_IN, c.not_in, c.not_in_len};
    if (c.exists >= 0)
        exprs[(*len)++] = (struct berth_expr){name, c.exists ? BERTH_EXISTS : BERTH_NOT_EXISTS, NULL, 0};
    if (c.gt)
        exprs[(*len)++] = (struct berth_expr){name, BERTH_GT, c.gt, c.gt_len};
    if (c.lt)
        exprs[(*len)++] = (struct berth_expr){name, BERTH_LT, c.lt, c.lt_len};
    return 0;
}

static int expression_finish(struct reader *r, void *item)
{
    const struct berth_expr *e = item;
    return e->key ? 0 : missing(r, "key");
}

/* Reads all conditions of a term; does not change the weight. */
static int term_read(struct reader *r, const json_t *value, struct berth_term *term)
{
    static const struct object_kind expression_kind = {
        .table = &expression_keys, .size = sizeof(struct berth_expr), .finish = expression_finish};
    static const struct key list = {.at = offsetof(struct berth_term, exprs),
                                    .len_at = offsetof(struct berth_term, exprs_len),
                                    .arg = &expression_kind};
    if (json_is_array(value))
        return objects_read(r, &list, value, term);
    if (!json_is_object(value))
        return expected(r, "conditions like {disk: ssd}", value);

    struct berth_expr *exprs =
        ARENA_ARRAY(r->arena, struct berth_expr, arena_product(json_object_size(value), CONDITION_EXPRS_MAX));
    size_t len = 0;
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)value, name, member)
    {
        int rc = condition_read(r, name, member, exprs, &len);
        if (rc < 0)
            return in_member(r, name, rc);
    }
    term->exprs = exprs;
    term->exprs_len = len;
    return 0;
}

int select_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return term_read(r, value, key_field(key, object));
}

/* Returns the list of {any: [condition, ...]}. A label named "any" has plain values, never conditions. */
static const json_t *alternatives(const json_t *value)
{
    const json_t *any = json_object_get(value, "any"), *first = json_array_get(any, 0);
    bool conditions = json_is_object(first) || json_is_array(first);
    return json_object_size(value) == 1 && conditions ? any : NULL;
}

int require_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const json_t *any = alternatives(value);
    size_t len = any ? json_array_size(any) : 1;
    struct berth_term *terms = ARENA_ARRAY(r->arena, struct berth_term, len);
    for (size_t i = 0; i < len; i++) {
        int rc = term_read(r, any ? json_array_get(any, i) : value, &terms[i]);
        if (rc < 0)
            return any ? in_item(r, i, rc) : rc;
    }
    list_set(key, object, terms, len);
    return 0;
}

static const struct key preference_rows[] = {
    KEY("weight", "whole number", "1 to 100, or negative to avoid; default: 1", i32_read,
        .at = offsetof(struct berth_term, weight)),
    KEY("select", "conditions", "condition on the labels of nodes", select_read, .at = 0),
};
KEY_TABLE(preference_keys, "preference", preference_rows);

static int preference_finish(struct reader *r, void *item)
{
    const struct berth_term *term = item;
    return term->exprs ? 0 : missing(r, "select");
}

int prefer_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    static const struct berth_term initial = {.weight = PREFER_WEIGHT};
    static const struct object_kind kind = {
        .table = &preference_keys, .size = sizeof(struct berth_term), .initial = &initial, .finish = preference_finish};
    const json_t *select = json_object_get(value, "select");
    if (json_is_object(value) && !json_is_object(select) && !json_is_array(select)) { /* conditions without a weight */
        struct berth_term *term = ARENA_NEW(r->arena, struct berth_term);
        *term = initial;
        int rc = term_read(r, value, term);
        if (rc == 0)
            list_set(key, object, term, 1);
        return rc;
    }
    struct key list = *key;
    list.arg = &kind;
    return objects_read(r, &list, value, object);
}

/* ---- taints and tolerations -------------------------------------------------------------------------------------- */

static const struct enum_word effect_words[] = {
    {"NoSchedule",       BERTH_NO_SCHEDULE       },
    {"PreferNoSchedule", BERTH_PREFER_NO_SCHEDULE},
    {"NoExecute",        BERTH_NO_EXECUTE        },
    {NULL,               0                       },
};
static const char effect_form[] = "`NoSchedule`, `PreferNoSchedule` or `NoExecute`";

/* Parses key[=value][:Effect]. */
static int short_read(struct reader *r, const json_t *value, const char *what, const char **key, const char **tail,
                      enum berth_effect *effect)
{
    if (!json_is_string(value))
        return expected(r, what, value);
    char *text = arena_strdup(r->arena, json_string_value(value));
    char *colon = strrchr(text, ':');
    if (colon) {
        unsigned found;
        *colon = 0;
        int rc = word_find(r, effect_words, colon + 1, &found);
        if (rc < 0)
            return rc;
        *effect = (enum berth_effect)found;
    }
    char *equals = strchr(text, '=');
    if (equals)
        *equals = 0;
    if (!*text)
        return expected(r, what, value);
    *key = text;
    *tail = equals ? equals + 1 : NULL;
    return 0;
}

static const struct key taint_rows[] = {
    KEY("key", "text", "required", text_read, .at = offsetof(struct berth_taint, key)),
    KEY("value", "text", "default: none", text_read, .at = offsetof(struct berth_taint, value)),
    KEY("effect", effect_form, "effect on pods that do not tolerate the taint; required", word_read,
        .at = offsetof(struct berth_taint, effect), .arg = effect_words),
};
KEY_TABLE(taint_keys, "taint", taint_rows);

static int taint_short(struct reader *r, const json_t *value, void *item)
{
    struct berth_taint *t = item;
    return short_read(r, value, "a taint like \"key=value:NoSchedule\"", &t->key, &t->value, &t->effect);
}

static int taint_finish(struct reader *r, void *item)
{
    const struct berth_taint *t = item;
    if (!t->key)
        return missing(r, "key");
    return t->effect ? 0 : missing(r, "effect");
}

const struct object_kind taint_kind = {.table = &taint_keys,
                                       .size = sizeof(struct berth_taint),
                                       .read_short = taint_short,
                                       .finish = taint_finish};

static const struct key toleration_rows[] = {
    KEY("key", "text", "key of the taint; default: every taint", text_read,
        .at = offsetof(struct berth_toleration, key)),
    KEY("value", "text", "value of the taint; default: any value", text_read,
        .at = offsetof(struct berth_toleration, value)),
    KEY("effect", effect_form, "effect of the taint; default: any effect", word_read,
        .at = offsetof(struct berth_toleration, effect), .arg = effect_words),
};
KEY_TABLE(toleration_keys, "toleration", toleration_rows);

static int toleration_short(struct reader *r, const json_t *value, void *item)
{
    struct berth_toleration *t = item;
    if (json_is_string(value) && strcmp(json_string_value(value), "*") == 0)
        return 0;
    return short_read(r, value, "a toleration like \"key=value:NoSchedule\", \"key\" or \"*\"", &t->key, &t->value,
                      &t->effect);
}

static int toleration_finish(struct reader *r, void *item)
{
    struct berth_toleration *t = item;
    (void)r;
    t->exists = !t->value;
    return 0;
}

const struct object_kind toleration_kind = {.table = &toleration_keys,
                                            .size = sizeof(struct berth_toleration),
                                            .read_short = toleration_short,
                                            .finish = toleration_finish};
