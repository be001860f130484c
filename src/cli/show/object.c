#include "cli/show/object.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "cli/lib/suggest.h"
#include "wire/text/document.h"
#include "wire/text/yaml.h"

enum { NEAR_LOOKED_AT = 1000, DEPTH_MAX = 8 };

const struct option change_options[] = {
    DRY_RUN_ROW(change_values, dry_run),
};
const size_t change_options_len = sizeof change_options / sizeof change_options[0];

void object_path(struct str *path, const struct object_target *target)
{
    str_addf(path, "/v1/%s", target->collection->plural);
    if (target->id)
        path_add(path, target->id);
}

/* Suggests the id of the object with this id or name. The id may differ from the name: NAME.OWNER of another user, or
 * the number of a job. */
static void nearest_hint_print(struct api *a, const struct object_target *target, const json_t *items, const char *word)
{
    char id[ID_TEXT_MAX];
    json_t *item;
    size_t i;

    json_array_foreach(items, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));
        object_id(item, id);
        if (strcmp(id, word) != 0 && !(name && strcmp(name, word) == 0))
            continue;
        if (name && id[strspn(id, "0123456789")] == '\0')
            cli_hint(a->cli, "Did you mean '%s %s', which is named '%s'?", target->collection->kind, id, name);
        else
            cli_hint(a->cli, "Did you mean '%s'?", id);
        return;
    }
}

/* Reads only one page of the kind, which is cheap enough after a mistake. */
void object_suggest_nearest(struct api *a, const struct object_target *target)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    struct api_error trouble;
    char limit[24];
    char id[ID_TEXT_MAX];
    struct suggestions near;
    json_t *item;
    size_t i;

    str_addf(&path, "/v1/%s", target->collection->plural);
    query_add(&path, "limit", str_u64(NEAR_LOOKED_AT, limit));
    if (api_try(a, &(struct api_request){.method = "GET", .path = str_text(&path)}, &answer, &trouble) != EXIT_OK)
        return;
    const json_t *items = json_object_get(answer.body, "items");
    suggest_init(&near, target->id);
    json_array_foreach(items, i, item)
    {
        const char *name = json_string_value(json_object_get(item, "name"));
        object_id(item, id);
        if (strcmp(id, target->id) == 0)
            return; /* the object exists: the error has another reason */
        if (name)
            suggest_offer(&near, name);
        if (json_is_string(json_object_get(item, "id")))
            suggest_offer(&near, json_string_value(json_object_get(item, "id")));
    }
    if (near.len)
        nearest_hint_print(a, target, items, near.at[0]);
}

int object_error_print(struct api *a, const struct object_target *target, const struct api_error *trouble)
{
    int rc = api_error_print(a, trouble);

    if (rc == EXIT_NOT_FOUND && target->id)
        object_suggest_nearest(a, target);
    return rc;
}

int object_try(struct api *a, const struct object_target *target, json_t **ret, struct api_error *ret_trouble)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};

    object_path(&path, target);
    int rc = api_try(a, &(struct api_request){.method = "GET", .path = str_text(&path)}, &answer, ret_trouble);
    if (rc != EXIT_OK)
        return rc;
    if (!json_is_object(answer.body)) {
        *ret_trouble = (struct api_error){.code = EXIT_FAILED, .status = answer.status};
        err_set(&ret_trouble->err, EPROTO, "the response of %s is not an object", a->connection.server);
        return EXIT_FAILED;
    }
    *ret = take_ptr(&answer.body);
    return EXIT_OK;
}

int object_get(struct api *a, const struct object_target *target, json_t **ret)
{
    struct api_error trouble;
    int rc = object_try(a, target, ret, &trouble);

    return rc == EXIT_OK ? rc : object_error_print(a, target, &trouble);
}

void object_done_print(const struct cli *cli, const char *kind, const char *id, const char *done, bool dry_run)
{
    fprintf(cli->out, "%s/%s %s%s\n", kind, id, done, dry_run ? " (dry run)" : "");
}

int object_do(struct api *a, const struct object_target *target, const struct object_act *act, json_t **ret_answer)
{
    CLEANUP(api_answer) struct api_answer answer = {0};
    CLEANUP(str) struct str path = {0};
    struct api_error trouble;
    char id[ID_TEXT_MAX];

    object_path(&path, target);
    if (act->sub)
        str_addf(&path, "/%s", act->sub);
    if (act->query)
        str_addf(&path, "?%s", act->query);
    struct api_request request = {
        .method = act->method, .path = str_text(&path), .body = act->body, .dry_run = act->dry_run};
    int rc = api_try(a, &request, &answer, &trouble);
    if (rc != EXIT_OK)
        return object_error_print(a, target, &trouble);
    const json_t *said = act->dry_run ? json_object_get(answer.body, "answer") : answer.body;
    if (act->done)
        object_done_print(a->cli, target->collection->kind,
                          *object_id(said, id) ? id
                          : target->id         ? target->id
                                               : "?",
                          act->done, act->dry_run);
    if (ret_answer)
        *ret_answer = take_ptr(&answer.body);
    return EXIT_OK;
}

/* ---- KEY=VALUE -------------------------------------------------------------------------------------------------- */

static int pair_value(const struct cli *cli, const char *word, const char *text, json_t **ret)
{
    struct berth_err err;
    size_t len = strlen(text);

    if (strchr("{[\"", text[0]) && text[0]) {
        json_error_t problem;
        *ret = json_loadb(text, len, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &problem);
        return *ret ? EXIT_OK : cli_fail(cli, EXIT_USAGE, "%s: invalid JSON: %s", word, problem.text);
    }
    if (len == 0) {
        *ret = json_string("");
        return EXIT_OK;
    }
    int rc = yaml_scalar(text, len, ret);
    if (rc == 0 && *ret)
        return EXIT_OK;
    err_set(&err, -rc, "number out of range; put text in double quotes");
    return cli_fail(cli, EXIT_USAGE, "%s: %s", word, err.text);
}

/* Creates the objects for the keys before the last one; NULL if a value that is not an object is in the way, or the
 * path is too deep. */
static json_t *parent_of(json_t *object, char *key, char **ret_last)
{
    char *dot;

    for (int depth = 0; (dot = strchr(key, '.')); depth++) {
        *dot = '\0';
        json_t *below = json_object_get(object, key);
        if (!below) {
            below = json_object();
            json_object_set_new(object, key, below);
        }
        if (!json_is_object(below) || !*key || depth == DEPTH_MAX)
            return NULL;
        object = below;
        key = dot + 1;
    }
    *ret_last = key;
    return object;
}

int pairs_parse(const struct cli *cli, const char *const *words, size_t len, json_t *ret)
{
    for (size_t i = 0; i < len; i++) {
        const char *equals = strchr(words[i], '=');
        CLEANUP(mem) char *key = NULL;
        CLEANUP(json) json_t *value = NULL;
        char *last = NULL;
        if (!equals || equals == words[i])
            return cli_fail(cli, EXIT_USAGE, "'%s' should be KEY=VALUE", words[i]);
        int rc = pair_value(cli, words[i], equals + 1, &value);
        if (rc != EXIT_OK)
            return rc;
        key = mem_strdup(words[i]);
        key[equals - words[i]] = '\0';
        json_t *parent = parent_of(ret, key, &last);
        if (!parent || !*last)
            return cli_fail(cli, EXIT_USAGE, "'%s': not a key that can be set", words[i]);
        json_object_set(parent, last, value);
    }
    return EXIT_OK;
}
