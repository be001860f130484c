#include "cli/app/workload.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "wire/text/document.h"
#include "wire/text/quantity.h"
#include "wire/text/yaml.h"

static void text_set(json_t *object, const char *key, const char *text)
{
    if (text)
        json_object_set_new(object, key, json_string(text));
}

json_t *amount_value(const char *text)
{
    json_t *value = NULL;

    if (yaml_scalar(text, strlen(text), &value) == 0 && json_is_number(value))
        return value;
    json_decref(value);
    return json_string(text);
}

static int amount_set(const struct cli *cli, json_t *resources, const char *name, const char *text)
{
    struct berth_err err;
    int64_t amount;

    assert(name);
    if (!text)
        return EXIT_OK;
    if (quantity_parse_text(name, text, &amount, &err) != 0 || amount < 0)
        return cli_fail(cli, EXIT_USAGE, "%s: invalid amount '%s'; %s", name, text,
                        strcmp(name, "cpu") == 0 ? "use 2, 0.5 or 500m" : "use 512Mi, 2Gi or 10G");
    json_object_set_new(resources, name, amount_value(text));
    return EXIT_OK;
}

/* Splits "NAME=VALUE"; *ret_value points into the word. */
static int pair_split(const struct cli *cli, const char *option, const char *word, char **ret_name,
                      const char **ret_value)
{
    const char *equals = strchr(word, '=');

    if (!equals || equals == word)
        return cli_fail(cli, EXIT_USAGE, "--%s takes NAME=VALUE, not '%s'", option, word);
    *ret_name = mem_strdup(word);
    (*ret_name)[equals - word] = '\0';
    *ret_value = equals + 1;
    return EXIT_OK;
}

static int resources_make(const struct cli *cli, const struct workload_values *v, json_t *object)
{
    CLEANUP(json) json_t *resources = json_object();
    int rc = amount_set(cli, resources, "cpu", v->cpu);

    if (rc == EXIT_OK)
        rc = amount_set(cli, resources, "memory", v->memory);
    for (size_t i = 0; rc == EXIT_OK && i < v->resources.len; i++) {
        CLEANUP(mem) char *name = NULL;
        const char *value = "";
        rc = pair_split(cli, "resource", v->resources.at[i], &name, &value);
        if (rc == EXIT_OK)
            rc = amount_set(cli, resources, name, value);
    }
    if (rc == EXIT_OK && json_object_size(resources) > 0)
        json_object_set(object, "resources", resources);
    return rc;
}

static int env_make(const struct cli *cli, const struct workload_values *v, json_t *object)
{
    CLEANUP(json) json_t *env = json_object();

    for (size_t i = 0; i < v->env.len; i++) {
        CLEANUP(mem) char *name = NULL;
        const char *value = "";
        int rc = pair_split(cli, "env", v->env.at[i], &name, &value);
        if (rc != EXIT_OK)
            return rc;
        if (json_object_set_new(env, name, json_string(value)) != 0)
            return cli_fail(cli, EXIT_USAGE, "--env: '%s' is not UTF-8", name);
    }
    if (json_object_size(env) > 0)
        json_object_set(object, "env", env);
    return EXIT_OK;
}

/* Adds endpoints "NAME" or "NAME/PROTOCOL". */
static void endpoints_make(const struct workload_values *v, json_t *object)
{
    json_t *list = json_array();

    for (size_t i = 0; i < v->endpoints.len; i++) {
        const char *slash = strchr(v->endpoints.at[i], '/');
        size_t len = slash ? (size_t)(slash - v->endpoints.at[i]) : strlen(v->endpoints.at[i]);
        json_t *endpoint = json_object();
        json_object_set_new(endpoint, "name", json_stringn(v->endpoints.at[i], len));
        text_set(endpoint, "protocol", slash ? slash + 1 : NULL);
        json_array_append_new(list, endpoint);
    }
    if (json_array_size(list) > 0)
        json_object_set(object, "endpoints", list);
    json_decref(list);
}

static int gpu_make(const struct cli *cli, const char *text, json_t *object)
{
    json_error_t problem;

    if (!text)
        return EXIT_OK;
    json_t *value = json_loads(text, JSON_DECODE_ANY, &problem);
    if (!json_is_number(value) || json_number_value(value) <= 0) {
        json_decref(value);
        return cli_fail(cli, EXIT_USAGE, "--gpu takes a number such as 2, or a share such as 0.5, not '%s'", text);
    }
    json_object_set_new(object, "gpu", value);
    return EXIT_OK;
}

int workload_make(const struct cli *cli, const struct workload_values *v, const char *const *command,
                  size_t command_len, json_t *ret)
{
    text_set(ret, "owner", v->owner);
    text_set(ret, "display", v->display);
    text_set(ret, "image", v->image);
    text_set(ret, "workdir", v->workdir);
    if (v->replicas.given)
        json_object_set_new(ret, "replicas", json_integer((json_int_t)v->replicas.n));
    if (v->priority.given)
        json_object_set_new(ret, "priority", json_integer((json_int_t)v->priority.n));
    int rc = resources_make(cli, v, ret);
    if (rc == EXIT_OK)
        rc = gpu_make(cli, v->gpu, ret);
    if (rc == EXIT_OK)
        rc = env_make(cli, v, ret);
    if (rc != EXIT_OK)
        return rc;
    endpoints_make(v, ret);
    if (command_len == 0)
        return EXIT_OK;
    json_t *words = json_array();
    for (size_t i = 0; i < command_len; i++) {
        if (json_array_append_new(words, json_string(command[i])) != 0)
            rc = cli_fail(cli, EXIT_USAGE, "argument %zu of the command is not UTF-8", i + 1);
    }
    json_object_set_new(ret, "command", words);
    return rc;
}
