/* instance_doc.c - documents of instances and facts, and what agents report. */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "wire/objects.h"
#include "wire/quantity.h"

enum { REPORT_ITEMS_MAX = 100000, ERROR_BYTES_MAX = 512 };

/* ---- ports as reported ------------------------------------------------------------------------------------------- */

static int bound_port_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    json_int_t number = json_integer_value(value);
    if (!json_is_integer(value) || number < 1 || number > UINT16_MAX)
        return expected(r, "a port from 1 to 65535", value);
    *(uint16_t *)key_field(key, object) = (uint16_t)number;
    return 0;
}

static const struct key port_report_rows[] = {
    KEY("endpoint", "text", "its name; must be given", line_read, .at = offsetof(struct port_report, endpoint)),
    KEY("port", "1 to 65535", "what was bound; must be given", bound_port_read,
        .at = offsetof(struct port_report, port)),
};
static KEY_TABLE(port_report_keys, "port reported", port_report_rows);

static int port_report_finish(struct reader *r, void *item)
{
    const struct port_report *p = item;
    return !p->endpoint || !*p->endpoint ? missing(r, "endpoint") : p->port ? 0 : missing(r, "port");
}

static int port_reports_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    static const struct object_kind kind = {
        .table = &port_report_keys, .size = sizeof(struct port_report), .finish = port_report_finish};
    struct key with_kind = *key;
    with_kind.arg = &kind;
    if (json_array_size(value) > ENDPOINTS_MAX)
        return err_set(r->err, EINVAL, "%zu ports; at most %d are allowed", json_array_size(value), ENDPOINTS_MAX);
    return objects_read(r, &with_kind, value, object);
}

/* An agent shall not be refused for what a program said: long text is cut, at the end of a character. */
static int error_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const char *text = NULL;
    int rc = text_of(r, value, &text);
    if (rc < 0)
        return rc;
    size_t len = strlen(text);
    if (len > ERROR_BYTES_MAX) {
        for (len = ERROR_BYTES_MAX; len && ((unsigned char)text[len] & 0xc0) == 0x80;)
            len--;
        text = arena_strndup(r->arena, text, len);
    }
    *(const char **)key_field(key, object) = text;
    return 0;
}

/* ---- instances --------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct instance_doc, field)
static const struct key placed_rows[] = {
    KEY("of", "whole number", "generation of the workload it was placed from", counter_read, .at = AT(generation)),
    KEY("epoch", "whole number", "of the agent that changed it last", counter_read, .at = AT(epoch)),
    KEY("seq", "whole number", "of the last report that changed it", counter_read, .at = AT(seq)),
    KEY("error", "text", "what its agent said last", error_read, .at = AT(error)),
    KEY("ports", "list of {`endpoint`, `port`}", "as reported", port_reports_read, .at = AT(ports),
        .len_at = AT(ports_len)),
};
#undef AT
static KEY_TABLE(placed_keys, "placed", placed_rows);

const struct key_table *const instance_tables[] = {&instance_keys, &placed_keys, &meta_keys, &created_keys, NULL};

int instance_doc_read(const json_t *doc, struct arena *arena, struct instance_doc *ret, struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    struct instance_doc d = {0};
    struct instance_entry entry = {.instance.state = BERTH_RUNNING, .ready = -1};
    const struct part parts[] = {
        {&instance_keys, &entry },
        {&placed_keys,   &d     },
        {&meta_keys,     &d.meta},
        {&created_keys,  &d.meta},
    };
    int rc = object_read(&r, doc, parts, sizeof parts / sizeof *parts);
    if (rc == 0)
        rc = instance_entry_finish(&r, doc, &entry);
    if (rc < 0)
        return rc;
    if (entry.instance.id > INT64_MAX)
        return err_set(err, ERANGE, "id: at most 2^63-1");
    d.instance = entry.instance;
    rc = meta_finish(&r, &d.meta, arena_fmt(arena, "%llu", (unsigned long long)d.instance.id));
    if (rc == 0)
        *ret = d;
    return rc;
}

static void put_time(json_t *doc, const char *key, int64_t ns)
{
    char buf[TIMESTAMP_MAX];
    if (ns)
        (void)json_object_set_new(doc, key, json_string(timestamp_text(ns, buf)));
}

static void put_number(json_t *doc, const char *key, uint64_t number)
{
    if (number)
        (void)json_object_set_new(doc, key, json_integer((json_int_t)number));
}

static void put_amount(json_t *doc, const char *key, const char *resource, int64_t amount)
{
    char buf[QUANTITY_TEXT_MAX];
    (void)json_object_set_new(doc, key, json_string(quantity_print(resource, amount, buf)));
}

static json_t *usage_make(const struct berth_instance *i)
{
    json_t *all = json_object();
    for (size_t u = 0; u < i->usage_len; u++) {
        const struct berth_usage *usage = &i->usage[u];
        json_t *one = json_object();
        put_amount(one, "used", usage->resource, usage->used);
        put_time(one, "since", usage->used_since_ns);
        if (usage->limit)
            put_amount(one, "limit", usage->resource, usage->limit);
        put_time(one, "limit_since", usage->limit_since_ns);
        (void)json_object_set_new(all, usage->resource, one);
    }
    return all;
}

static json_t *ports_make(const struct instance_doc *d)
{
    json_t *all = json_array();
    for (size_t i = 0; i < d->ports_len; i++) {
        json_t *port = json_object();
        (void)json_object_set_new(port, "endpoint", json_string(d->ports[i].endpoint));
        (void)json_object_set_new(port, "port", json_integer(d->ports[i].port));
        (void)json_array_append_new(all, port);
    }
    return all;
}

json_t *instance_doc_make(const struct instance_doc *d)
{
    const struct berth_instance *i = &d->instance;
    json_t *doc = json_object();
    (void)json_object_set_new(doc, "id", json_integer((json_int_t)i->id));
    (void)json_object_set_new(doc, "workload", json_string(i->workload));
    (void)json_object_set_new(doc, "ordinal", json_integer(i->ordinal));
    (void)json_object_set_new(doc, "node", json_string(i->node));
    (void)json_object_set_new(doc, "state", json_string(berth_state_name(i->state)));
    (void)json_object_set_new(doc, "ready", json_boolean(i->ready));
    put_time(doc, "since", i->since_ns);
    if (i->gpus) {
        json_t *gpus = json_array();
        for (int device = 0; device < BERTH_NODE_GPUS_MAX; device++)
            if (i->gpus >> device & 1)
                (void)json_array_append_new(gpus, json_integer(device));
        (void)json_object_set_new(doc, "gpus", gpus);
    }
    put_number(doc, "replaces", i->replaces);
    if (i->waits_len) {
        json_t *waits = json_array();
        for (size_t w = 0; w < i->waits_len; w++)
            (void)json_array_append_new(waits, json_integer((json_int_t)i->waits[w]));
        (void)json_object_set_new(doc, "waits", waits);
    }
    if (i->usage_len)
        (void)json_object_set_new(doc, "usage", usage_make(i));
    put_number(doc, "of", d->generation);
    put_number(doc, "epoch", d->epoch);
    put_number(doc, "seq", d->seq);
    if (d->error && *d->error)
        (void)json_object_set_new(doc, "error", json_string(d->error));
    if (d->ports_len)
        (void)json_object_set_new(doc, "ports", ports_make(d));
    put_number(doc, "generation", d->meta.generation);
    put_time(doc, "created", d->meta.created_ns);
    return doc;
}

/* ---- facts ------------------------------------------------------------------------------------------------------- */

int fact_doc_read(const json_t *doc, struct arena *arena, struct doc_meta *ret_meta, struct berth_fact *ret,
                  struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    struct doc_meta meta = {0};
    struct berth_fact fact = {0};
    const struct part parts[] = {
        {&fact_keys,     &fact},
        {&identity_keys, &meta},
        {&meta_keys,     &meta},
        {&created_keys,  &meta},
    };
    int rc = object_read(&r, doc, parts, sizeof parts / sizeof *parts);
    if (rc < 0)
        return rc;
    if (!json_is_string(json_object_get(doc, "kind")))
        return missing(&r, "kind");
    rc = meta_finish(&r, &meta, meta.id ? meta.id : fact_doc_id(&fact, arena));
    if (rc < 0)
        return rc;
    *ret_meta = meta;
    *ret = fact;
    return 0;
}

json_t *fact_doc_make(const struct berth_fact *fact)
{
    json_t *doc = json_object();
    (void)json_object_set_new(doc, "kind", json_string(fact_kind_name(fact->kind)));
    put_number(doc, "subject", fact->subject);
    if (fact->key && *fact->key)
        (void)json_object_set_new(doc, "key", json_string(fact->key));
    (void)json_object_set_new(doc, "value", json_integer(fact->value));
    put_time(doc, "at", fact->at_ns);
    if (fact->over)
        (void)json_object_set_new(doc, "over", json_true());
    return doc;
}

static bool all_digits(const char *text)
{
    return *text && text[strspn(text, "0123456789")] == 0;
}

const char *fact_doc_id(const struct berth_fact *fact, struct arena *arena)
{
    const char *kind = fact_kind_name(fact->kind), *key = fact->key;
    if (!key || !*key)
        return arena_fmt(arena, "%s/%llu", kind, (unsigned long long)fact->subject);
    return arena_fmt(arena, "%s/%s%s", kind, *key == '/' || all_digits(key) ? "/" : "", key);
}

int fact_doc_id_parse(const char *id, struct berth_fact *ret)
{
    const char *slash = strchr(id, '/');
    for (unsigned kind = 0; slash && slash[1] && kind <= BERTH_FACT_POLICY; kind++) {
        const char *name = fact_kind_name((enum berth_fact_kind)kind), *rest = slash + 1;
        if (strlen(name) != (size_t)(slash - id) || strncmp(name, id, (size_t)(slash - id)) != 0)
            continue;
        struct berth_fact fact = {.kind = (enum berth_fact_kind)kind};
        int64_t subject = 0;
        if (!all_digits(rest))
            fact.key = rest + (*rest == '/');
        else if (!str_parse_i64(rest, &subject))
            return -EINVAL;
        fact.subject = (uint64_t)subject;
        *ret = fact;
        return 0;
    }
    return -EINVAL;
}

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static const struct word report_words[] = {
    {"starting", REPORT_STARTING},
    {"running",  REPORT_RUNNING },
    {"stopping", REPORT_STOPPING},
    {"ended",    REPORT_ENDED   },
    {"failed",   REPORT_FAILED  },
    {"stopped",  REPORT_STOPPED },
    {NULL,       0              },
};

struct item_entry {
    struct report_item item;
    int ready; /* -1: not said */
    int said;  /* the state */
};

static int said_state_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    ((struct item_entry *)object)->said = 1;
    return word_read(r, key, value, object);
}

#define AT(field) offsetof(struct item_entry, field)
static const struct key item_rows[] = {
    KEY("id", "whole number", "of the instance; must be given", counter_read, .at = AT(item.id)),
    KEY("state", "`starting`, `running`, `stopping`, `ended`, `failed` or `stopped`", "must be given", said_state_read,
        .at = AT(item.state), .arg = report_words),
    KEY("ready", "true or false", "healthy; true if not given and running", choice_read, .at = AT(ready)),
    KEY("error", "text", "why it failed", error_read, .at = AT(item.error)),
    KEY("ports", "list of {`endpoint`, `port`}", "what it has bound", port_reports_read, .at = AT(item.ports),
        .len_at = AT(item.ports_len)),
    KEY("usage", "{resource: amount}", "at present", amounts_read, .at = AT(item.usage), .len_at = AT(item.usage_len)),
};
#undef AT
static KEY_TABLE(item_keys, "instance reported", item_rows);

static int item_finish(struct reader *r, void *object)
{
    struct item_entry *e = object;
    if (!e->item.id)
        return missing(r, "id");
    if (!e->said)
        return missing(r, "state");
    if (e->item.usage_len > BERTH_LIST_MAX)
        return err_set(r->err, EINVAL, "usage: more than %d resources", BERTH_LIST_MAX);
    e->item.ready = e->ready >= 0 ? e->ready : e->item.state == REPORT_RUNNING;
    return 0;
}

static const struct item_entry item_initial = {.ready = -1};
static const struct object_kind item_kind = {.table = &item_keys,
                                             .size = sizeof(struct item_entry),
                                             .initial = &item_initial,
                                             .finish = item_finish};

struct item_list {
    const struct item_entry *at;
    size_t len;
};

static int items_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    static const struct key into = {
        .at = offsetof(struct item_list, at), .len_at = offsetof(struct item_list, len), .arg = &item_kind};
    struct item_list entries = {0};
    if (!json_is_array(value))
        return expected(r, "a list of instances", value);
    if (json_array_size(value) > REPORT_ITEMS_MAX)
        return err_set(r->err, EINVAL, "more than %d instances", REPORT_ITEMS_MAX);
    int rc = objects_read(r, &into, value, &entries);
    if (rc < 0)
        return rc;
    struct report_item *items = ARENA_ARRAY(r->arena, struct report_item, entries.len);
    for (size_t i = 0; i < entries.len; i++)
        items[i] = entries.at[i].item;
    list_set(key, object, items, entries.len);
    return 0;
}

#define AT(field) offsetof(struct report_doc, field)
static const struct key report_rows[] = {
    KEY("epoch", "whole number", "above 0; grows with each start of the agent", counter_read, .at = AT(epoch)),
    KEY("seq", "whole number", "above 0; grows with each report", counter_read, .at = AT(seq)),
    KEY("instances", "list of [instance reported](#instance-reported)", "what is there; none: a heartbeat", items_read,
        .at = AT(items), .len_at = AT(items_len)),
};
#undef AT
static KEY_TABLE(report_keys, "report", report_rows);

const struct key_table *const report_tables[] = {&report_keys, &item_keys, &port_report_keys, NULL};

int report_doc_read(const json_t *doc, struct arena *arena, struct report_doc *ret, struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    struct report_doc d = {0};
    int rc = table_read(&r, doc, &report_keys, &d);
    if (rc < 0)
        return rc;
    if (!d.epoch)
        return missing(&r, "epoch");
    if (!d.seq)
        return missing(&r, "seq");
    *ret = d;
    return 0;
}
