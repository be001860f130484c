/* settings.c - checks the settings of an app against the app's schema. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "wire/doc/objects.h"
#include "wire/text/document.h"
#include "wire/text/words.h"

enum { SETTINGS_MAX = 1024, SETTING_TEXT_MAX = 65536 };

enum setting_type { SETTING_TEXT, SETTING_INTEGER, SETTING_NUMBER, SETTING_BOOLEAN };

static const struct enum_word type_words[] = {
    {"text",    SETTING_TEXT   },
    {"integer", SETTING_INTEGER},
    {"number",  SETTING_NUMBER },
    {"boolean", SETTING_BOOLEAN},
    {NULL,      0              },
};

struct setting {
    enum setting_type type;
    bool required;
    const char *help;
    const json_t *initial, *min, *max, *values, *typed; /* NULL: not given */
};

static int type_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    ((struct setting *)object)->typed = value;
    return word_read(r, key, value, object);
}

#define AT(field) offsetof(struct setting, field)
static const struct key setting_rows[] = {
    KEY("type", "`text`, `integer`, `number` or `boolean`", "required", type_read, .at = AT(type), .arg = type_words),
    KEY("default", "value", "default value", raw_read, .at = AT(initial)),
    KEY("min", "number", "least value; of a text, its length in bytes", raw_read, .at = AT(min)),
    KEY("max", "number", "largest value; of a text, its length in bytes", raw_read, .at = AT(max)),
    KEY("values", "list of values", "allowed values", raw_read, .at = AT(values)),
    KEY("required", "true or false", "required, or has a default", bool_read, .at = AT(required)),
    KEY("help", "text", "description", text_read, .at = AT(help)),
};
#undef AT
static KEY_TABLE(setting_keys, "setting", setting_rows);

/* Returns a number below 0, 0 or above 0. Compares integers as integers, because a double would round them. */
static int number_compare(const json_t *a, const json_t *b)
{
    if (json_is_integer(a) && json_is_integer(b)) {
        json_int_t x = json_integer_value(a), y = json_integer_value(b);
        return (x > y) - (x < y);
    }
    double x = json_number_value(a), y = json_number_value(b);
    return (x > y) - (x < y);
}

static bool value_same(const json_t *a, const json_t *b)
{
    return json_is_number(a) && json_is_number(b) ? number_compare(a, b) == 0 : json_equal(a, b);
}

static int value_type_check(struct reader *r, enum setting_type type, const json_t *value)
{
    switch (type) {
    case SETTING_TEXT:
        if (!json_is_string(value))
            return expected(r, "text", value);
        return json_string_length(value) <= SETTING_TEXT_MAX
                   ? 0
                   : err_set(r->err, EINVAL, "has more than %d bytes", SETTING_TEXT_MAX);
    case SETTING_INTEGER: return json_is_integer(value) ? 0 : expected(r, "a whole number", value);
    case SETTING_NUMBER: return json_is_number(value) ? 0 : expected(r, "a number", value);
    case SETTING_BOOLEAN: return json_is_boolean(value) ? 0 : expected(r, "true or false", value);
    }
    return -EINVAL;
}

static int range_check(struct reader *r, const struct setting *s, const json_t *value)
{
    CLEANUP(json)
    json_t *measured =
        s->type == SETTING_TEXT ? json_integer((json_int_t)json_string_length(value)) : json_incref((json_t *)value);
    const char *what = s->type == SETTING_TEXT ? "the length is" : "is";
    if (s->min && number_compare(measured, s->min) < 0)
        return err_set(r->err, EINVAL, "%s below the least allowed, %g", what, json_number_value(s->min));
    if (s->max && number_compare(measured, s->max) > 0)
        return err_set(r->err, EINVAL, "%s above the most allowed, %g", what, json_number_value(s->max));
    return 0;
}

static int value_check(struct reader *r, const struct setting *s, const json_t *value)
{
    int rc = value_type_check(r, s->type, value);
    if (rc == 0)
        rc = range_check(r, s, value);
    if (rc < 0 || !s->values)
        return rc;
    for (size_t i = 0; i < json_array_size(s->values); i++)
        if (value_same(json_array_get(s->values, i), value))
            return 0;
    return expected(r, "one of the values in its schema", value);
}

static int bounds_check(struct reader *r, const struct setting *s)
{
    const json_t *bounds[] = {s->min, s->max};
    static const char *const names[] = {"min", "max"};
    for (size_t i = 0; i < 2; i++) {
        if (!bounds[i])
            continue;
        if (s->type == SETTING_BOOLEAN)
            return in_member(r, names[i], err_set(r->err, EINVAL, "a boolean cannot have bounds"));
        if (!json_is_number(bounds[i]))
            return in_member(r, names[i], expected(r, "a number", bounds[i]));
    }
    if (s->min && s->max && number_compare(s->min, s->max) > 0)
        return err_set(r->err, EINVAL, "max: is below min");
    return 0;
}

/* Reads one entry of a schema and checks its values against its type. */
static int setting_read(struct reader *r, const json_t *value, struct setting *ret)
{
    struct setting s = {0};
    int rc = table_read(r, value, &setting_keys, &s);
    if (rc < 0)
        return rc;
    if (!s.typed)
        return missing(r, "type");
    if ((rc = bounds_check(r, &s)) < 0)
        return rc;
    if (s.values &&
        (!json_is_array(s.values) || json_array_size(s.values) == 0 || json_array_size(s.values) > SETTINGS_MAX))
        return in_member(r, "values", expected(r, "a list of 1 to 1024 values", s.values));
    for (size_t i = 0; i < json_array_size(s.values); i++)
        if ((rc = value_type_check(r, s.type, json_array_get(s.values, i))) < 0)
            return in_member(r, "values", in_item(r, i, rc));
    if (s.initial && (rc = value_check(r, &s, s.initial)) < 0)
        return in_member(r, "default", rc);
    *ret = s;
    return 0;
}

static int name_check(struct reader *r, const char *name)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    char buf[QUOTE_MAX];
    size_t len = strlen(name);
    if (len == 0 || len > 63 || strspn(name, allowed) != len)
        return err_set(r->err, EINVAL,
                       "%s is not a valid name of a setting: at most 63 letters, digits, '_', '.' "
                       "and '-'",
                       quote(name, buf));
    return 0;
}

static int map_check(struct reader *r, const json_t *map)
{
    const char *name;
    json_t *member;
    if (!json_is_object(map))
        return expected(r, "an object", map);
    if (json_object_size(map) > SETTINGS_MAX)
        return err_set(r->err, EINVAL, "more than %d settings", SETTINGS_MAX);
    json_object_foreach((json_t *)map, name, member)
    {
        int rc = name_check(r, name);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int settings_schema_check(const json_t *schema, struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    struct arena arena;
    struct setting s;
    const char *name;
    json_t *member;
    arena_init(&arena);
    reader_init(&r, &arena, err ? err : &own);
    int rc = map_check(&r, schema);
    if (rc == 0)
        json_object_foreach((json_t *)schema, name, member)
        {
            rc = in_member(&r, name, setting_read(&r, member, &s));
            if (rc < 0)
                break;
        }
    arena_done(&arena);
    return rc;
}

static const char *name_candidate(const void *ctx, size_t i)
{
    void *iter = json_object_iter((json_t *)ctx);
    for (; iter && i; i--)
        iter = json_object_iter_next((json_t *)ctx, iter);
    return iter ? json_object_iter_key(iter) : NULL;
}

/* Gives every setting of the schema its value or default; rejects unknown settings. */
static int against_schema(struct reader *r, const json_t *schema, const json_t *settings, json_t *to)
{
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)schema, name, member)
    {
        struct setting s = {0};
        const json_t *value = json_object_get(settings, name);
        int rc = setting_read(r, member, &s);
        if (rc < 0)
            return in_member(r, name, rc);
        if (json_is_null(value))
            value = NULL;
        if (value && (rc = value_check(r, &s, value)) < 0)
            return in_member(r, name, rc);
        if (!value && !s.initial && s.required)
            return missing(r, name);
        if (value || s.initial)
            (void)json_object_set(to, name, (json_t *)(value ? value : s.initial));
    }
    json_object_foreach((json_t *)settings, name, member)
    {
        char buf[QUOTE_MAX];
        if (json_object_get(schema, name))
            continue;
        const char *guess = suggest(name, name_candidate, schema);
        return err_set(r->err, EINVAL, "there is no setting %s%s%s%s", quote(name, buf),
                       guess ? "; did you mean \"" : "", guess ? guess : "", guess ? "\"?" : "");
    }
    return 0;
}

/* Without a schema any plain values are accepted. */
static int without_schema(struct reader *r, const json_t *settings, json_t *to)
{
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)settings, name, member)
    {
        if (json_is_null(member))
            continue;
        if (json_is_array(member) || json_is_object(member))
            return in_member(r, name, expected(r, "text, a number, true or false", member));
        if (json_string_length(member) > SETTING_TEXT_MAX)
            return in_member(r, name, err_set(r->err, EINVAL, "has more than %d bytes", SETTING_TEXT_MAX));
        (void)json_object_set(to, name, member);
    }
    return 0;
}

int settings_check(const json_t *schema, const json_t *settings, json_t **ret, struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    struct arena arena;
    CLEANUP(json) json_t *none = json_object();
    CLEANUP(json) json_t *to = json_object();
    if (!settings || json_is_null(settings))
        settings = none;
    arena_init(&arena);
    reader_init(&r, &arena, err ? err : &own);
    int rc = map_check(&r, settings);
    if (rc == 0 && schema && !json_is_null(schema))
        rc = json_is_object(schema) ? against_schema(&r, schema, settings, to) : expected(&r, "an object", schema);
    else if (rc == 0)
        rc = without_schema(&r, settings, to);
    arena_done(&arena);
    if (rc == 0)
        *ret = take_ptr(&to);
    return rc;
}
