/* health_read.c - parses a health check of node_config. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/mem.h"
#include "machine/health/health_parts.h"
#include "wire/text/words.h"

enum { COMMAND_MAX = 256, FAILURES_MAX = 1000 };

static int number_read(const json_t *check, const char *key, int64_t least, int64_t most, int64_t *ret,
                       struct berth_err *err)
{
    const json_t *value = json_object_get(check, key);
    if (!value)
        return 0;
    int64_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < least || number > most)
        return err_set(err, EINVAL, "%s: expected a whole number from %lld to %lld", key, (long long)least,
                       (long long)most);
    *ret = number;
    return 0;
}

static int exec_read(const json_t *value, struct health_plan *p, struct berth_err *err)
{
    size_t len = json_array_size(value);
    if (!json_is_array(value) || len == 0 || len > COMMAND_MAX)
        return err_set(err, EINVAL, "expected a list with a program and its arguments");
    for (size_t i = 0; i < len; i++)
        if (!json_is_string(json_array_get(value, i)))
            return err_set(err, EINVAL, "[%zu]: expected text", i);
    p->argv = mem_zarray(len + 1, sizeof *p->argv);
    for (size_t i = 0; i < len; i++)
        p->argv[i] = mem_strdup(json_string_value(json_array_get(value, i)));
    return 0;
}

static int endpoint_read(const json_t *value, struct health_plan *p, struct berth_err *err)
{
    const char *endpoint = json_string_value(json_object_get(value, "endpoint"));
    if (!endpoint || !*endpoint)
        return err_set(err, EINVAL, "endpoint: expected the name of one of its endpoints");
    p->endpoint = mem_strdup(endpoint);
    return 0;
}

/* The path is copied into the request line, so it must not contain spaces or line ends. */
static int http_read(const json_t *value, struct health_plan *p, struct berth_err *err)
{
    const json_t *given = json_object_get(value, "path");
    const char *path = given ? json_string_value(given) : "/";
    bool ok = path && *path == '/' && strlen(path) <= HEALTH_PATH_MAX;
    for (const char *at = path; ok && *at; at++)
        ok = *at > ' ' && *at < 0x7f;
    if (!ok)
        return err_set(err, EINVAL, "path: expected a path such as /healthy, without spaces");
    p->path = mem_strdup(path);
    return endpoint_read(value, p, err);
}

static const struct {
    const char *key;
    enum health_kind kind;
    int (*read)(const json_t *value, struct health_plan *p, struct berth_err *err);
} kinds[] = {
    {"exec", HEALTH_EXEC, exec_read    },
    {"http", HEALTH_HTTP, http_read    },
    {"tcp",  HEALTH_TCP,  endpoint_read},
};
static const char *const others[] = {"every_ns", "timeout_ns", "delay_ns", "failures"};

static int keys_check(const json_t *check, struct berth_err *err)
{
    const char *key;
    const json_t *value;
    json_object_foreach((json_t *)check, key, value)
    {
        char quoted[QUOTE_MAX];
        bool known = false;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            known = known || strcmp(kinds[i].key, key) == 0;
        for (size_t i = 0; i < sizeof others / sizeof *others; i++)
            known = known || strcmp(others[i], key) == 0;
        if (!known)
            return err_set(err, EINVAL, "%s: unknown key", quote(key, quoted));
    }
    return 0;
}

static int plan_read(const json_t *check, struct health_plan *p, struct berth_err *err)
{
    size_t given = 0;
    int rc = json_is_object(check) ? keys_check(check, err) : err_set(err, EINVAL, "expected an object");
    for (size_t i = 0; rc == 0 && i < sizeof kinds / sizeof *kinds; i++) {
        const json_t *value = json_object_get(check, kinds[i].key);
        if (!value)
            continue;
        if (given++)
            return err_set(err, EINVAL, "use only one of exec, http and tcp");
        p->kind = kinds[i].kind;
        rc = kinds[i].read(value, p, err);
        if (rc < 0)
            err_prefix(err, "%s", kinds[i].key);
    }
    if (rc == 0 && !given)
        return err_set(err, EINVAL, "expected exec, http or tcp");
    if (rc == 0)
        rc = number_read(check, "every_ns", HEALTH_NS_MIN, HEALTH_NS_MAX, &p->every_ns, err);
    if (rc == 0)
        rc = number_read(check, "timeout_ns", HEALTH_NS_MIN, HEALTH_NS_MAX, &p->timeout_ns, err);
    if (rc == 0)
        rc = number_read(check, "delay_ns", 0, HEALTH_NS_MAX, &p->delay_ns, err);
    if (rc == 0)
        rc = number_read(check, "failures", 1, FAILURES_MAX, &p->failures, err);
    if (rc == 0 && p->timeout_ns >= p->every_ns) {
        if (json_object_get(check, "timeout_ns"))
            return err_set(err, EINVAL, "timeout_ns: must be less than every_ns");
        p->timeout_ns = p->every_ns / 2; /* the default timeout is not below this short interval */
    }
    return rc;
}

int health_plan_read(const json_t *check, struct health_plan *ret, struct berth_err *err)
{
    struct health_plan p = {.every_ns = 10 * HEALTH_SECOND_NS, .timeout_ns = HEALTH_SECOND_NS, .failures = 3};
    int rc = plan_read(check, &p, err);
    if (rc < 0) {
        err_prefix(err, "health");
        health_plan_done(&p);
        return rc;
    }
    *ret = p;
    return 0;
}

void health_plan_done(struct health_plan *p)
{
    for (size_t i = 0; p->argv && p->argv[i]; i++)
        mem_free(p->argv[i]);
    mem_free(p->argv);
    mem_free(p->endpoint);
    mem_free(p->path);
    *p = (struct health_plan){0};
}
