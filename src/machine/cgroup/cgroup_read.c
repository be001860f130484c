/* cgroup_read.c - reads limits from an instance's object of node_config. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/vec.h"
#include "machine/cgroup/cgroup_parts.h"
#include "machine/cgroup/hugepage.h"
#include "wire/text/quantity.h"
#include "wire/text/words.h"

enum { WEIGHT_MAX = 10000 };

/* Offsets of the fields for amount and weight of a limit; -1: not supported. */
struct limit_fields {
    const char *resource;
    ptrdiff_t amount_at, weight_at;
};

#define AT(field) ((ptrdiff_t)offsetof(struct cgroup_limits, field))
static const struct limit_fields rows[] = {
    {"cpu",    AT(cpu_milli),    AT(cpu_weight)},
    {"memory", AT(memory_bytes), -1            },
    {"pids",   AT(pids),         -1            },
    {"io",     AT(io_bytes),     AT(io_weight) },
};
#undef AT

static const struct limit_fields *row_find(const char *resource)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].resource, resource) == 0)
            return &rows[i];
    return NULL;
}

static int weight_read(const json_t *value, int64_t *ret, struct berth_err *err)
{
    int64_t weight = json_integer_value(value);
    if (!json_is_integer(value) || weight < 1 || weight > WEIGHT_MAX)
        return err_set(err, EINVAL, "weight: expected a whole number from 1 to %d", WEIGHT_MAX);
    *ret = weight;
    return 0;
}

/* Reads {"amount": A} or {"weight": W}; *ret_known false: cgroups do not support it. */
static int limit_read(const char *resource, const json_t *value, struct cgroup_limits *l, bool *ret_known,
                      struct berth_err *err)
{
    const json_t *weight = json_object_get(value, "weight"), *amount = json_object_get(value, "amount");
    const struct limit_fields *row = row_find(resource);
    int64_t page_bytes = hugepage_bytes(resource), number = 0;
    if (!weight == !amount)
        return err_set(err, EINVAL, "set either an amount or a weight");
    int rc = weight ? weight_read(weight, &number, err) : quantity_parse(resource, amount, &number, err);
    if (rc < 0)
        return rc;
    if (amount && number < 0)
        return err_set(err, EINVAL, "the amount is below 0");
    ptrdiff_t at = !row ? -1 : weight ? row->weight_at : row->amount_at;
    *ret_known = at >= 0 || (page_bytes && amount);
    if (at >= 0 && number == 0)
        return err_set(err, EINVAL, "the amount must be above 0; raise it or omit the limit");
    if (at >= 0)
        *(int64_t *)((char *)l + at) = number;
    return 0; /* the limit of huge pages comes from the request (pages_of_requests) */
}

static int name_compare(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int limits_walk(const json_t *limits, struct cgroup_limits *l, char other[static CGROUP_LIST_MAX],
                       struct berth_err *err)
{
    VEC(const char *) unknown = {0};
    const char *resource;
    const json_t *value;
    int rc = 0;
    json_object_foreach((json_t *)limits, resource, value)
    {
        char quoted[QUOTE_MAX];
        bool known = false;
        rc = limit_read(resource, value, l, &known, err);
        if (rc < 0) {
            err_prefix(err, "limits: %s", shorten(resource, quoted));
            break;
        }
        if (!known)
            vec_push(&unknown, resource);
    }
    if (rc == 0 && unknown.len)
        qsort(unknown.at, unknown.len, sizeof *unknown.at, name_compare);
    for (size_t i = 0; rc == 0 && i < unknown.len; i++)
        cgroup_names_add(other, unknown.at[i]);
    vec_done(&unknown);
    return rc;
}

static void pages_of_requests(const json_t *config, struct cgroup_limits *l)
{
    struct hugepages pages[HUGEPAGE_SIZES_MAX];
    size_t len = hugepages_read(config, pages);
    for (size_t i = 0; i < len && i < CGROUP_PAGES_MAX; i++) {
        l->hugepages[i].page_bytes = pages[i].page_bytes;
        l->hugepages[i].bytes = pages[i].bytes;
    }
}

int cgroup_limits_read(const json_t *config, struct cgroup_limits *ret, char ret_other[static CGROUP_LIST_MAX],
                       struct berth_err *err)
{
    struct cgroup_limits l = {0};
    char other[CGROUP_LIST_MAX] = "";
    const json_t *limits = json_object_get(config, "limits"),
                 *cpu = json_object_get(json_object_get(config, "requests"), "cpu");
    if (cpu) {
        int rc = quantity_parse("cpu", cpu, &l.cpu_request, err);
        if (rc == 0 && l.cpu_request < 0)
            rc = err_set(err, EINVAL, "the amount is below 0");
        if (rc < 0) {
            err_prefix(err, "requests: cpu");
            return rc;
        }
    }
    if (limits && !json_is_object(limits))
        return err_set(err, EINVAL, "limits: expected an object such as {\"memory\": {\"amount\": \"2Gi\"}}");
    int rc = limits_walk(limits, &l, other, err);
    if (rc < 0)
        return rc;
    pages_of_requests(config, &l);
    *ret = l;
    memcpy(ret_other, other, sizeof other);
    return 0;
}
