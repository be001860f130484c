/* keys.c - parses objects by their tables, and single values. */
#include "wire/text/keys.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "wire/text/decimal.h"
#include "wire/text/moment.h"
#include "wire/text/quantity.h"
#include "wire/text/words.h"

void reader_init(struct reader *r, struct arena *arena, struct berth_err *err)
{
    *r = (struct reader){.arena = arena, .err = err, .item = SIZE_MAX};
}

int expected(struct reader *r, const char *what, const json_t *found)
{
    char buf[QUOTE_MAX], number[DECIMAL_TEXT_MAX];
    const char *text = "nothing";
    switch (json_typeof(found)) {
    case JSON_STRING: text = quote(json_string_value(found), buf); break;
    case JSON_INTEGER:
    case JSON_REAL: text = decimal_text(found, number); break;
    case JSON_TRUE: text = "true"; break;
    case JSON_FALSE: text = "false"; break;
    case JSON_ARRAY: text = "a list"; break;
    case JSON_OBJECT: text = "an object"; break;
    case JSON_NULL: break;
    }
    return err_set(r->err, EINVAL, "expected %s, found %s", what, text);
}

int in_item(struct reader *r, size_t i, int rc)
{
    if (rc == 0)
        return 0;
    if (r->item != SIZE_MAX)
        (void)err_prefix(r->err, "[%zu]", r->item);
    r->item = i;
    return rc;
}

int in_member(struct reader *r, const char *name, int rc)
{
    char buf[QUOTE_MAX];
    if (rc == 0)
        return 0;
    if (r->item != SIZE_MAX)
        (void)err_prefix(r->err, "%s[%zu]", shorten(name, buf), r->item);
    else
        (void)err_prefix(r->err, "%s", shorten(name, buf));
    r->item = SIZE_MAX;
    return rc;
}

int missing(struct reader *r, const char *key)
{
    return err_set(r->err, EINVAL, "%s: missing", key);
}

/* ---- objects ---------------------------------------------------------------------------------------------------- */

struct object_parts {
    const struct object_part *at;
    size_t len;
};

static const char *key_candidate(const void *ctx, size_t i)
{
    const struct object_parts *parts = ctx;
    for (size_t p = 0; p < parts->len; i -= parts->at[p++].table->len)
        if (i < parts->at[p].table->len)
            return parts->at[p].table->keys[i].name;
    return NULL;
}

static bool key_known(const struct object_parts *parts, const char *name)
{
    const char *known;
    for (size_t i = 0; (known = key_candidate(parts, i)); i++)
        if (strcmp(known, name) == 0)
            return true;
    return false;
}

static int unknown_key(struct reader *r, const struct object_parts *parts, const json_t *value)
{
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)value, name, member)
    {
        if (key_known(parts, name))
            continue;
        char buf[QUOTE_MAX];
        const char *guess = suggest(name, key_candidate, parts);
        return err_set(r->err, EINVAL, "unknown key %s%s%s%s", quote(name, buf), guess ? "; did you mean \"" : "",
                       guess ? guess : "", guess ? "\"?" : "");
    }
    return 0;
}

int object_read(struct reader *r, const json_t *value, const struct object_part *parts, size_t parts_len)
{
    struct object_parts all = {parts, parts_len};
    if (!json_is_object(value))
        return expected(r, "an object", value);
    /* Counts the members that a table knows: if all are known, no unknown key needs to be found. */
    size_t known = 0;
    for (size_t p = 0; p < parts_len; p++) {
        const struct key_table *table = parts[p].table;
        for (size_t i = 0; i < table->len; i++) {
            const json_t *member = json_object_get(value, table->keys[i].name);
            if (!member)
                continue;
            known++;
            if (json_is_null(member))
                continue;
            int rc = table->keys[i].read(r, &table->keys[i], member, parts[p].object);
            if (rc < 0)
                return in_member(r, table->keys[i].name, rc);
        }
    }
    return known == json_object_size(value) ? 0 : unknown_key(r, &all, value);
}

int table_read(struct reader *r, const json_t *value, const struct key_table *table, void *object)
{
    return object_read(r, value, &(struct object_part){table, object}, 1);
}

/* ---- single values ---------------------------------------------------------------------------------------------- */

const char *text_keep(struct reader *r, const char *text)
{
    return r->copy_text ? arena_strdup(r->arena, text) : text;
}

int text_of(struct reader *r, const json_t *value, const char **ret)
{
    if (json_is_string(value))
        *ret = text_keep(r, json_string_value(value));
    else if (json_is_integer(value))
        *ret = arena_fmt(r->arena, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value) || json_is_boolean(value))
        return expected(r, "text (put quotes around it)", value);
    else
        return expected(r, "text", value);
    return 0;
}

int label_text_of(struct reader *r, const json_t *value, const char **ret)
{
    if (!json_is_boolean(value))
        return text_of(r, value, ret);
    *ret = json_is_true(value) ? "true" : "false";
    return 0;
}

int text_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return text_of(r, value, key_field(key, object));
}

int bool_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_boolean(value))
        return expected(r, "true or false", value);
    *(bool *)key_field(key, object) = json_is_true(value);
    return 0;
}

int choice_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_boolean(value))
        return expected(r, "true or false", value);
    *(int *)key_field(key, object) = json_is_true(value);
    return 0;
}

static int whole_of(struct reader *r, const json_t *value, int64_t min, int64_t max, int64_t *ret)
{
    if (!json_is_integer(value))
        return expected(r, "a whole number", value);
    int64_t number = json_integer_value(value);
    if (number < min || number > max)
        return err_set(r->err, ERANGE, "expected a whole number from %" PRId64 " to %" PRId64 ", found %" PRId64, min,
                       max, number);
    *ret = number;
    return 0;
}

int u32_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int64_t number = 0;
    int rc = whole_of(r, value, 0, UINT32_MAX, &number);
    if (rc == 0)
        *(uint32_t *)key_field(key, object) = (uint32_t)number;
    return rc;
}

int i32_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int64_t number = 0;
    int rc = whole_of(r, value, INT32_MIN, INT32_MAX, &number);
    if (rc == 0)
        *(int32_t *)key_field(key, object) = (int32_t)number;
    return rc;
}

int i64_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return whole_of(r, value, INT64_MIN, INT64_MAX, key_field(key, object));
}

int moment_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int64_t ns = 0;
    int rc = timestamp_parse(value, &ns, r->err);
    if (rc == 0 && ns <= 0)
        return expected(r, "a time after 1970", value);
    if (rc == 0)
        *(int64_t *)key_field(key, object) = ns;
    return rc;
}

/* jansson integers end at 2^63, so larger numbers may be quoted. */
int u64_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    uint64_t number = 0;
    if (json_is_string(value)) {
        const char *p = json_string_value(value);
        bool good = *p;
        for (; *p && good; p++)
            good = *p >= '0' && *p <= '9' && !__builtin_mul_overflow(number, 10, &number) &&
                   !__builtin_add_overflow(number, (uint64_t)(*p - '0'), &number);
        if (!good)
            return expected(r, "a whole number from 0 to 2^64-1", value);
    } else {
        int64_t small = 0;
        int rc = whole_of(r, value, 0, INT64_MAX, &small);
        if (rc < 0)
            return rc;
        number = (uint64_t)small;
    }
    *(uint64_t *)key_field(key, object) = number;
    return 0;
}

int time_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return timestamp_parse(value, key_field(key, object), r->err);
}

int duration_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return duration_parse(value, key_field(key, object), r->err);
}

int amount_of(struct reader *r, const char *resource, const json_t *value, int64_t *ret)
{
    int64_t amount = 0;
    int rc = quantity_parse(resource, value, &amount, r->err);
    if (rc < 0)
        return rc;
    if (amount < 0)
        return expected(r, "an amount of 0 or more", value);
    *ret = amount;
    return 0;
}

int quantity_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return amount_of(r, key->arg ? key->arg : r->resource, value, key_field(key, object));
}

int raw_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    (void)r;
    memcpy(key_field(key, object), &value, sizeof value);
    return 0;
}

int word_find(struct reader *r, const struct enum_word *words, const char *text, unsigned *ret)
{
    char all[256] = "", buf[QUOTE_MAX];
    for (const struct enum_word *w = words; w->name; w++) {
        if (strcasecmp(w->name, text) == 0) {
            *ret = w->value;
            return 0;
        }
        size_t len = strlen(all);
        (void)snprintf(all + len, sizeof all - len, "%s%s", len ? ", " : "", w->name);
    }
    return err_set(r->err, EINVAL, "expected one of %s, found %s", all, quote(text, buf));
}

int word_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    unsigned found;
    if (!json_is_string(value))
        return expected(r, "a word", value);
    int rc = word_find(r, key->arg, json_string_value(value), &found);
    if (rc == 0)
        memcpy(key_field(key, object), &found, sizeof found); /* a field of any enum type */
    return rc;
}
