/* cluster_file_fuzz.c - any file gives a cluster that can be planned and a plan that can be written, or an error
 * message.
 */
#include "wire/cluster/cluster_file.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "wire/cluster/plan_json.h"
#include "wire/text/document.h"

enum { MANY = 20, VALUES_MAX = 5000 };

/* Counts values; an alias counts as all values that it repeats. Stops beyond the limit. */
static size_t values_of(const json_t *value, size_t seen)
{
    const char *key;
    json_t *member;
    size_t i;
    if (++seen > VALUES_MAX)
        return seen;
    json_array_foreach((json_t *)value, i, member) seen = values_of(member, seen);
    json_object_foreach((json_t *)value, key, member) seen = values_of(member, seen);
    return seen;
}

/* Reduces large counts, which are valid but too slow to fuzz. */
static void numbers_shrink(json_t *value)
{
    static const char *const keys[] = {"count", "replicas", "ordinal"};
    const char *key;
    json_t *member;
    size_t i;
    for (i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *number = json_object_get(value, keys[i]);
        if (json_is_integer(number) && json_integer_value(number) > MANY)
            (void)json_integer_set(number, json_integer_value(number) % MANY);
    }
    json_array_foreach(value, i, member) numbers_shrink(member);
    json_object_foreach(value, key, member) numbers_shrink(member);
}

static void plan(struct cluster_file *f)
{
    struct berth_snapshot *snapshot = berth_freeze(f->cluster, f->now_ns, f->seed);
    struct berth_plan *made = NULL;
    struct berth_err err = {0};
    struct berth_policy policy = {.profile = f->profiles_len ? f->profiles : NULL};
    if (berth_plan_make(snapshot, &policy, &made, &err) == 0) {
        char *text = NULL;
        size_t len = 0;
        FILE *to = open_memstream(&text, &len);
        assert(to && plan_json_write(made, to) == 0);
        (void)fclose(to);
        json_t *doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
        assert(doc);
        json_decref(doc);
        free(text);
        berth_plan_free(made);
    } else {
        assert(err.text[0]);
    }
    berth_snapshot_free(snapshot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *shared = NULL;
    if (document_parse((const char *)data, size, "fuzz", &shared, NULL) < 0)
        return 0;
    /* numbers_shrink changes values, so shared ones are copied */
    json_t *doc = values_of(shared, 0) <= VALUES_MAX ? json_deep_copy(shared) : NULL;
    json_decref(shared);
    if (!doc)
        return 0;
    numbers_shrink(doc);

    struct cluster_file f;
    struct berth_err err = {0};
    int rc = cluster_file_parse(doc, NULL, NULL, &f, &err);
    json_decref(doc);
    assert(rc == -err.code);
    if (rc < 0) {
        assert(err.text[0]);
        return 0;
    }
    plan(&f);
    cluster_file_done(&f);
    return 0;
}
