/* shape_json.c - the requests of one pod: keys that are inline in a workload. */
#include <errno.h>
#include <string.h>

#include "wire/doc/objects.h"
#include "wire/text/quantity.h"

/* ---- GPUs -------------------------------------------------------------------------------------------------------- */

static int share_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int64_t milli;
    int rc = ratio_parse(value, &milli, r->err);
    if (rc < 0)
        return rc;
    if (milli <= 0 || milli > BERTH_GPU_MILLI)
        return expected(r, "a share of one GPU, above 0 and at most 1", value);
    *(uint32_t *)key_field(key, object) = (uint32_t)milli;
    return 0;
}

static int models_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (((const struct berth_gpu_need *)object)->models)
        return err_set(r->err, EINVAL, "give either model or models");
    return texts_read(r, key, value, object);
}

#define AT(field) offsetof(struct berth_gpu_need, field)
static const struct key gpu_need_rows[] = {
    KEY("count", "whole number", "number of GPUs, all on one node; default: 1", u32_read, .at = AT(count)),
    KEY("share", "0.001 to 1", "fraction of one GPU instead of whole GPUs", share_read, .at = AT(milli)),
    KEY("memory", "amount", "whole GPUs: minimum size of each; a share: minimum free memory", quantity_read,
        .at = AT(memory_bytes), .arg = "memory"),
    KEY("model", "text", "model of the GPU", models_read, .at = AT(models), .len_at = AT(models_len)),
    KEY("models", "list of texts", "any of these models", models_read, .at = AT(models), .len_at = AT(models_len)),
};
#undef AT
KEY_TABLE(gpu_need_keys, "gpu", gpu_need_rows);

/* `gpu: 2` requests two GPUs, `gpu: 0.5` half of one. */
static int gpu_need_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    struct berth_gpu_need need = {.count = 1};
    static const struct key count = {.at = offsetof(struct berth_gpu_need, count)},
                            share = {.at = offsetof(struct berth_gpu_need, milli)};
    int rc = json_is_integer(value) ? u32_read(r, &count, value, &need)
             : json_is_real(value)  ? share_read(r, &share, value, &need)
                                    : table_read(r, value, &gpu_need_keys, &need);
    if (rc == 0)
        *(struct berth_gpu_need *)key_field(key, object) = need;
    return rc;
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

struct limit_entry {
    struct berth_limit limit;
    int64_t weight; /* INT64_MIN: none */
};

#define AT(field) offsetof(struct limit_entry, field)
static const struct key limit_rows[] = {
    KEY("amount", "amount", "hard limit", quantity_read, .at = AT(limit.amount)),
    KEY("max", "amount", "maximum under load, if the node has free resources", quantity_read, .at = AT(limit.max)),
    KEY("weight", "whole number", "instead of an amount: the weight under contention", i64_read, .at = AT(weight)),
};
#undef AT
KEY_TABLE(limit_keys, "limit", limit_rows);

static int limit_read(struct reader *r, const char *resource, const json_t *value, struct berth_limit *ret)
{
    struct limit_entry entry = {.limit.resource = resource, .weight = INT64_MIN};
    r->resource = resource;
    int rc = json_is_object(value) ? table_read(r, value, &limit_keys, &entry)
                                   : amount_of(r, resource, value, &entry.limit.amount);
    if (rc < 0)
        return rc;
    if (entry.weight != INT64_MIN) {
        if (entry.limit.amount || entry.limit.max)
            return err_set(r->err, EINVAL, "give either an amount or a weight");
        entry.limit.kind = BERTH_WEIGHTED;
        entry.limit.amount = entry.weight;
    }
    *ret = entry.limit;
    return 0;
}

static int limits_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_object(value))
        return expected(r, "an object like {memory: 2Gi}", value);
    struct berth_limit *limits = ARENA_ARRAY(r->arena, struct berth_limit, json_object_size(value));
    size_t len = 0;
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)value, name, member)
    {
        int rc = limit_read(r, name, member, &limits[len++]);
        if (rc < 0)
            return in_member(r, name, rc);
    }
    list_set(key, object, limits, len);
    return 0;
}

/* ---- ports ------------------------------------------------------------------------------------------------------- */

static const struct enum_word protocol_words[] = {
    {"tcp",  BERTH_TCP },
    {"udp",  BERTH_UDP },
    {"sctp", BERTH_SCTP},
    {NULL,   0         },
};

static int u16_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 0 || number > UINT16_MAX)
        return expected(r, "a whole number from 0 to 65535", value);
    *(uint16_t *)key_field(key, object) = (uint16_t)number;
    return 0;
}

#define AT(field) offsetof(struct berth_port, field)
static const struct key port_rows[] = {
    KEY("port", "1 to 65535", "the first or only port", u16_read, .at = AT(port)),
    KEY("count", "whole number", "number of consecutive ports; default: 1", u16_read, .at = AT(count)),
    KEY("protocol", "`tcp`, `udp` or `sctp`", "default: `tcp`", word_read, .at = AT(protocol), .arg = protocol_words),
    KEY("address", "text", "address of the node; default: all addresses", text_read, .at = AT(address)),
};
#undef AT
KEY_TABLE(port_keys, "port", port_rows);

/* Parses the digits at *p as a port number; 0: none. */
static uint32_t port_number(const char **p)
{
    uint32_t number = 0;
    for (; **p >= '0' && **p <= '9'; (*p)++)
        number = number > UINT16_MAX ? number : number * 10 + (uint32_t)(**p - '0');
    return number > UINT16_MAX ? 0 : number;
}

/* Parses 8080, "53/udp", "9000-9009/tcp". */
static int port_short(struct reader *r, const json_t *value, void *item)
{
    static const char what[] = "a port like 8080, \"53/udp\" or \"9000-9009\"";
    static const struct key whole = {.at = offsetof(struct berth_port, port)};
    struct berth_port *port = item;
    if (json_is_integer(value))
        return u16_read(r, &whole, value, item);
    if (!json_is_string(value))
        return expected(r, what, value);

    const char *p = json_string_value(value);
    uint32_t first = port_number(&p), last = first;
    if (*p == '-') {
        p++;
        last = port_number(&p);
    }
    unsigned protocol = BERTH_TCP;
    if (first == 0 || last < first || (*p && *p != '/'))
        return expected(r, what, value);
    if (*p == '/') {
        int rc = word_find(r, protocol_words, p + 1, &protocol);
        if (rc < 0)
            return rc;
    }
    *port = (struct berth_port){
        .protocol = (enum berth_protocol)protocol, .port = (uint16_t)first, .count = (uint16_t)(last - first + 1)};
    return 0;
}

const struct object_kind port_kind = {.table = &port_keys, .size = sizeof(struct berth_port), .read_short = port_short};

/* ---- the shape --------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct berth_shape, field)
#define LIST(field) .at = AT(field), .len_at = AT(field##_len)
static const char texts_form[] = "list of texts";
static const struct key shape_rows[] = {
    KEY("requests", "{resource: amount}", "resources reserved for each pod on its node", amounts_read, LIST(requests)),
    KEY("gpu", "[gpu](#gpu), a count, or a share", "GPUs", gpu_need_read, .at = AT(gpu)),
    KEY("limits", "{resource: amount or [limit](#limit)}", "limits enforced by the agent", limits_read, LIST(limits)),
    KEY("node", "text", "only this node", text_read, .at = AT(node)),
    KEY("arch", "text", "required processor architecture", text_read, .at = AT(arch)),
    KEY("runtime", "text", "required runtime", text_read, .at = AT(runtime)),
    KEY("domains", texts_form, "only in one of these domains", texts_read, LIST(domains)),
    KEY("require", "[conditions](#conditions)", "required labels of nodes", require_read, LIST(require)),
    KEY("prefer", "list of [preference](#preference)", "preferred labels of nodes", prefer_read, LIST(prefer)),
    KEY("tolerations", "list of [toleration](#toleration)", "tolerated taints", objects_read, LIST(tolerations),
        .arg = &toleration_kind),
    KEY("ports", "list of [port](#port)", "ports of the node, used exclusively by each pod", objects_read, LIST(ports),
        .arg = &port_kind),
    KEY("volumes", texts_form, "ids of mounted volumes", texts_read, LIST(volumes)),
    KEY("images", texts_form, "images to start from; nodes that have them are preferred", texts_read, LIST(images)),
    KEY("near_zone", "text", "the zone of the data or clients", text_read, .at = AT(near_zone)),
    KEY("spread", "list of [spread](#spread)", "spread constraints over zones, racks, nodes, ...", objects_read,
        LIST(spread), .arg = &spread_kind),
    KEY("near", "list of [near](#near-and-apart)", "affinity to pods", near_read, LIST(near)),
    KEY("apart", "list of [apart](#near-and-apart)", "anti-affinity to pods", near_read, LIST(near), .arg = "apart"),
    KEY("max_per_node", "whole number", "maximum pods of this workload on one node; 0: no limit", u32_read,
        .at = AT(max_per_node)),
};
#undef LIST
#undef AT
KEY_TABLE(shape_keys, "shape", shape_rows);
