/* lists.c - the functions of keys.h that parse lists and maps. */
#include <string.h>

#include "wire/text/keys.h"
#include "wire/text/moment.h"
#include "wire/text/quantity.h"

/* The fields are pointers of different types with the same representation. */
void list_set(const struct key *key, void *object, const void *at, size_t len)
{
    memcpy(key_field(key, object), &at, sizeof at);
    memcpy((char *)object + key->len_at, &len, sizeof len);
}

/* Returns the length of a list; a single value counts as a list of one. */
static size_t list_len(const json_t *value)
{
    return json_is_array(value) ? json_array_size(value) : 1;
}

static const json_t *list_at(const json_t *value, size_t i)
{
    return json_is_array(value) ? json_array_get(value, i) : value;
}

int texts_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    size_t len = list_len(value);
    const char **texts = ARENA_ARRAY(r->arena, const char *, len);
    for (size_t i = 0; i < len; i++) {
        int rc = label_text_of(r, list_at(value, i), &texts[i]);
        if (rc < 0)
            return json_is_array(value) ? in_item(r, i, rc) : rc;
    }
    list_set(key, object, texts, len);
    return 0;
}

static int item_read(struct reader *r, const struct object_kind *kind, const json_t *value, void *item)
{
    if (kind->initial)
        memcpy(item, kind->initial, kind->size);
    int rc = !json_is_object(value) && kind->read_short ? kind->read_short(r, value, item)
                                                        : table_read(r, value, kind->table, item);
    if (rc == 0 && kind->finish)
        rc = kind->finish(r, item);
    return rc;
}

int objects_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const struct object_kind *kind = key->arg;
    size_t len = list_len(value);
    char *items = arena_zalloc(r->arena, arena_product(len, kind->size));
    for (size_t i = 0; i < len; i++) {
        int rc = item_read(r, kind, list_at(value, i), items + i * kind->size);
        if (rc < 0)
            return json_is_array(value) ? in_item(r, i, rc) : rc;
    }
    list_set(key, object, items, len);
    return 0;
}

typedef int member_read(struct reader *r, const char *name, const json_t *value, void *item);

/* Parses an object whose keys are names chosen by the user, with a record of `size` bytes for each. */
static int map_read(struct reader *r, const struct key *key, const json_t *value, void *object, const char *what,
                    size_t size, member_read *read)
{
    if (!json_is_object(value))
        return expected(r, what, value);
    char *items = arena_zalloc(r->arena, arena_product(json_object_size(value), size));
    size_t len = 0;
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)value, name, member)
    {
        int rc = read(r, text_keep(r, name), member, items + len++ * size);
        if (rc < 0)
            return in_member(r, name, rc);
    }
    list_set(key, object, items, len);
    return 0;
}

static int amount_member(struct reader *r, const char *name, const json_t *value, void *item)
{
    struct berth_amount *amount = item;
    amount->resource = name;
    return amount_of(r, name, value, &amount->amount);
}

int amounts_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return map_read(r, key, value, object, "an object like {cpu: 2, memory: 4Gi}", sizeof(struct berth_amount),
                    amount_member);
}

static int time_member(struct reader *r, const char *name, const json_t *value, void *item)
{
    struct berth_amount *time = item;
    time->resource = name;
    return timestamp_parse(value, &time->amount, r->err);
}

int times_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return map_read(r, key, value, object, "an object like {traffic: 2026-03-01T00:00:00Z}",
                    sizeof(struct berth_amount), time_member);
}

static int ratio_member(struct reader *r, const char *name, const json_t *value, void *item)
{
    struct berth_amount *ratio = item;
    ratio->resource = name;
    return ratio_parse(value, &ratio->amount, r->err);
}

int ratios_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return map_read(r, key, value, object, "an object like {cpu: 1.5}", sizeof(struct berth_amount), ratio_member);
}

static int label_member(struct reader *r, const char *name, const json_t *value, void *item)
{
    struct berth_label *label = item;
    label->key = name;
    return json_is_null(value) ? 0 : label_text_of(r, value, &label->value);
}

int labels_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return map_read(r, key, value, object, "an object like {disk: ssd}", sizeof(struct berth_label), label_member);
}
