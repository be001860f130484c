/* join_gpus.c - GPUs of a machine, from what its agent says to the node's document.
 *
 * The document has which there are, in an order that instances hold them by; whether they are well is read from `probed`
 * (wire/doc/node_doc.c). So a machine cannot give itself GPUs: at the join it fills an empty list, afterwards an administrator
 * accepts what is new.
 */
#include <string.h>

#include "base/mem.h"
#include "control/node/join.h"

/* What of an entry is the document's; the rest is for people, and changes. */
static json_t *entry_make(const json_t *said)
{
    static const char *const keys[] = {"count", "model", "memory", "uuid"};
    json_t *entry = json_object();
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (json_object_get(said, keys[i]))
            (void)json_object_set_new(entry, keys[i], json_deep_copy(json_object_get(said, keys[i])));
    return entry;
}

static const char *uuid_of(const json_t *entry)
{
    return json_string_value(json_object_get(entry, "uuid"));
}

static bool lists(const json_t *list, const char *uuid)
{
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one)
    {
        if (uuid_of(one) && strcmp(uuid_of(one), uuid) == 0)
            return true;
    }
    return false;
}

static bool all_named(const json_t *list)
{
    size_t i;
    const json_t *one;
    json_array_foreach(list, i, one)
    {
        if (!uuid_of(one))
            return false;
    }
    return json_is_array(list);
}

/* Each stays in its place, whoever holds it. One that is gone makes room for one that is new, the rest comes at the end; what
 * is gone at the end goes. */
static json_t *merged(const json_t *had, const json_t *said)
{
    json_t *list = json_array(), *fresh = json_array();
    size_t i, next = 0;
    const json_t *one;
    json_array_foreach(said, i, one)
    {
        if (!lists(had, uuid_of(one)))
            (void)json_array_append_new(fresh, entry_make(one));
    }
    json_array_foreach(had, i, one)
    {
        bool gone = !lists(said, uuid_of(one)) && next < json_array_size(fresh);
        (void)json_array_append(list, gone ? json_array_get(fresh, next++) : (json_t *)one);
    }
    while (next < json_array_size(fresh))
        (void)json_array_append(list, json_array_get(fresh, next++));
    while (json_array_size(list) && !lists(said, uuid_of(json_array_get(list, json_array_size(list) - 1))))
        (void)json_array_remove(list, json_array_size(list) - 1);
    json_decref(fresh);
    return list;
}

void probed_gpus_take(json_t *doc, const json_t *probed, bool replace)
{
    const json_t *said = json_object_get(probed, "gpus"), *had = json_object_get(doc, "gpus"), *one;
    size_t i;
    if (!said || json_is_null(said) || (had && !replace))
        return;
    if (had && all_named(had) && all_named(said)) {
        (void)json_object_set_new(doc, "gpus", merged(had, said));
        return;
    }
    if (!json_is_array(said)) { /* as short as documents may have it, or nonsense that is refused where it is read */
        (void)json_object_set_new(doc, "gpus", json_deep_copy(said));
        return;
    }
    json_t *list = json_array();
    json_array_foreach(said, i, one)
    {
        (void)json_array_append_new(list, json_is_object(one) ? entry_make(one) : json_deep_copy(one));
    }
    (void)json_object_set_new(doc, "gpus", list);
}

int64_t probed_gpus_grown(const json_t *doc)
{
    const json_t *said = json_object_get(json_object_get(doc, "probed"), "gpus"), *had = json_object_get(doc, "gpus");
    size_t i, fresh = 0;
    const json_t *one;
    if (!all_named(said) || (had && !all_named(had)))
        return 0; /* of lists that were written by hand nothing is known */
    json_array_foreach(said, i, one)
    {
        fresh += !lists(had, uuid_of(one));
    }
    return fresh ? (int64_t)json_array_size(said) : 0;
}
