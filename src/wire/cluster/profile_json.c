/* profile_json.c - profiles of the cluster file: named lists of filters and weighted scores. */
#include <errno.h>
#include <string.h>

#include "wire/doc/objects.h"
#include "wire/text/words.h"

static const char *filter_candidate(const void *ctx, size_t i)
{
    (void)ctx;
    return berth_filter_at(i, NULL);
}

static const char *score_candidate(const void *ctx, size_t i)
{
    (void)ctx;
    return berth_score_at(i, NULL);
}

static int check_plugin_name(struct reader *r, const char *kind, const char *(*candidate)(const void *, size_t),
                             const char *name)
{
    const char *known;
    for (size_t i = 0; (known = candidate(NULL, i)); i++)
        if (strcmp(known, name) == 0)
            return 0;
    char buf[QUOTE_MAX];
    const char *guess = suggest(name, candidate, NULL);
    return err_set(r->err, EINVAL, "there is no %s %s%s%s%s", kind, quote(name, buf), guess ? "; did you mean \"" : "",
                   guess ? guess : "", guess ? "\"?" : "");
}

static int filters_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int rc = texts_read(r, key, value, object);
    const struct berth_profile *profile = object;
    for (size_t i = 0; rc == 0 && i < profile->filters_len; i++)
        rc = in_item(r, i, check_plugin_name(r, "filter", filter_candidate, profile->filters[i]));
    return rc;
}

static int scores_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    static const struct key weight = {.at = offsetof(struct berth_weight, weight)};
    if (!json_is_object(value))
        return expected(r, "an object like {least_allocated: 1}", value);
    struct berth_weight *weights = ARENA_ARRAY(r->arena, struct berth_weight, json_object_size(value));
    size_t len = 0;
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)value, name, member)
    {
        int rc = check_plugin_name(r, "score", score_candidate, name);
        if (rc < 0)
            return rc;
        weights[len].score = text_keep(r, name);
        rc = i32_read(r, &weight, member, &weights[len++]);
        if (rc < 0)
            return in_member(r, name, rc);
    }
    list_set(key, object, weights, len);
    return 0;
}

#define AT(field) offsetof(struct berth_profile, field)
static const struct key profile_rows[] = {
    KEY("name", "text", "required; a profile with a built-in name replaces it", text_read, .at = AT(name)),
    KEY("filters", "list of names", "default: all", filters_read, .at = AT(filters), .len_at = AT(filters_len)),
    KEY("scores", "{name: weight}", "weights from 1 to 100", scores_read, .at = AT(scores), .len_at = AT(scores_len)),
    KEY("resources", "list of names", "resources for allocation scores; default: cpu and memory", texts_read,
        .at = AT(resources), .len_at = AT(resources_len)),
    KEY("steps", "whole number",
        "number of steps to which scores are rounded, so that similar nodes are equal; default: no rounding", u32_read,
        .at = AT(steps)),
    KEY("allow_over", "true or false",
        "a node that is overcommitted in one resource accepts pods that do not request it", bool_read,
        .at = AT(allow_over)),
};
#undef AT
KEY_TABLE(profile_keys, "profile", profile_rows);

int profile_entry_read(struct reader *r, const json_t *value, struct berth_profile *ret)
{
    struct berth_profile profile = {0};
    int rc = table_read(r, value, &profile_keys, &profile);
    if (rc < 0)
        return rc;
    if (!profile.name || !*profile.name)
        return missing(r, "name");
    *ret = profile;
    return 0;
}
