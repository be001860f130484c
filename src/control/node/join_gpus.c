/* join_gpus.c - merges the GPUs that a machine's agent reports into the node's document.
 *
 * The document lists the GPUs in the order of the indices by which instances use them. Their health is read from
 * `probed` (wire/doc/node_doc.c). A machine cannot add GPUs by itself: the join fills an empty list, later an
 * administrator accepts new GPUs.
 */
#include <string.h>

#include "base/mem.h"
#include "control/node/join.h"

/* Returns the members of a reported entry that the document keeps; the others are for display and change. */
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

/* Merges the lists. Known GPUs keep their index, which instances use. New GPUs take the indices of removed ones, then
 * the end. Removed GPUs at the end are dropped. */
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

void probed_gpus_apply(json_t *doc, const json_t *probed, bool replace)
{
    const json_t *said = json_object_get(probed, "gpus"), *had = json_object_get(doc, "gpus"), *one;
    size_t i;
    if (!said || json_is_null(said) || (had && !replace))
        return;
    if (had && all_named(had) && all_named(said)) {
        (void)json_object_set_new(doc, "gpus", merged(had, said));
        return;
    }
    if (!json_is_array(said)) { /* a short form that documents allow, or an invalid value that the reader rejects */
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
        return 0; /* hand-written lists have no UUIDs to compare */
    json_array_foreach(said, i, one)
    {
        fresh += !lists(had, uuid_of(one));
    }
    return fresh ? (int64_t)json_array_size(said) : 0;
}
