/* instance_doc.c - documents of instances and facts. */
#include <errno.h>
#include <string.h>

#include "base/str.h"
#include "wire/doc/objects.h"
#include "wire/text/quantity.h"

/* ---- instances --------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct instance_doc, field)
static const struct key placed_rows[] = {
    KEY("of", "whole number", "generation of the workload at placement", counter_read, .at = AT(generation)),
    KEY("epoch", "whole number", "epoch of the agent that changed it last", counter_read, .at = AT(epoch)),
    KEY("seq", "whole number", "number of the last report that changed it", counter_read, .at = AT(seq)),
    KEY("error", "text", "last message of the agent", message_read, .at = AT(error)),
    KEY("failed", "true or false", "an ended array task that did not succeed", bool_read, .at = AT(failed)),
    KEY("outcome", "text", "outcome, if it did not succeed", word_read, .at = AT(outcome), .arg = outcome_words),
    KEY("started", "time", "time of the first start", time_read, .at = AT(started_ns)),
    KEY("counted", "time", "time up to which usage is recorded", time_read, .at = AT(counted_ns)),
    KEY("peak", "{resource: amount}", "maximum observed use", amounts_read, .at = AT(peak), .len_at = AT(peak_len)),
    KEY("ports", "list of {`endpoint`, `port`}", "as reported", port_reports_read, .at = AT(ports),
        .len_at = AT(ports_len)),
};
#undef AT
static KEY_TABLE(placed_keys, "placed", placed_rows);

const struct key_table *const instance_tables[] = {&instance_keys, &placed_keys,  &instance_details_keys,
                                                   &meta_keys,     &created_keys, NULL};

int instance_doc_read(const json_t *doc, struct arena *arena, struct instance_doc *ret, struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    struct instance_doc d = {0};
    struct instance_entry entry = {.instance.state = BERTH_RUNNING, .ready = -1};
    const struct object_part parts[] = {
        {&instance_keys,         &entry  },
        {&placed_keys,           &d      },
        {&instance_details_keys, &d.words},
        {&meta_keys,             &d.meta },
        {&created_keys,          &d.meta },
    };
    int rc = object_read(&r, doc, parts, sizeof parts / sizeof *parts);
    if (rc == 0)
        rc = instance_entry_finish(&r, doc, &entry);
    if (rc < 0)
        return rc;
    if (entry.instance.id > INT64_MAX)
        return err_set(err, ERANGE, "id: at most 2^63-1");
    d.instance = entry.instance;
    d.instance.counted_ns = d.counted_ns > d.started_ns ? d.counted_ns : d.started_ns;
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

static void put_texts(json_t *doc, const char *key, const char *const *texts, size_t len)
{
    json_t *list = json_array();
    for (size_t i = 0; i < len; i++)
        (void)json_array_append_new(list, json_string(texts[i]));
    (void)json_object_set_new(doc, key, list);
}

void instance_details_put(json_t *doc, const struct instance_details *w)
{
    if (w->exit_reported)
        (void)json_object_set_new(doc, "exit", json_integer(w->exit));
    if (w->progress_reported)
        (void)json_object_set_new(doc, "progress", json_integer(w->progress));
    if (w->note && *w->note)
        (void)json_object_set_new(doc, "note", json_string(w->note));
    if (w->unenforced_len)
        put_texts(doc, "unenforced", w->unenforced, w->unenforced_len);
    if (w->over_len)
        put_texts(doc, "over", w->over, w->over_len);
    if (w->foreign_port)
        (void)json_object_set_new(doc, "foreign_port", json_integer(w->foreign_port));
    if (w->oom_killed)
        (void)json_object_set_new(doc, "oom_killed", json_true());
    if (w->exclusive_len) {
        json_t *all = json_object();
        for (size_t i = 0; i < w->exclusive_len; i++)
            (void)json_object_set_new(all, w->exclusive[i].key, json_string(w->exclusive[i].value));
        (void)json_object_set_new(doc, "exclusive", all);
    }
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
    if (d->failed)
        (void)json_object_set_new(doc, "failed", json_true());
    if (d->outcome)
        (void)json_object_set_new(doc, "outcome", json_string(work_outcome_name(d->outcome)));
    put_time(doc, "started", d->started_ns);
    put_time(doc, "counted", d->counted_ns);
    if (d->peak_len) {
        json_t *peak = json_object();
        for (size_t p = 0; p < d->peak_len; p++)
            put_amount(peak, d->peak[p].resource, d->peak[p].resource, d->peak[p].amount);
        (void)json_object_set_new(doc, "peak", peak);
    }
    if (d->ports_len)
        (void)json_object_set_new(doc, "ports", ports_make(d));
    instance_details_put(doc, &d->words);
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
    const struct object_part parts[] = {
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
    if (fact->subject || !key || !*key)
        return arena_fmt(arena, "%s/%llu", kind, (unsigned long long)fact->subject);
    return arena_fmt(arena, "%s/%s%s", kind, *key == '/' || all_digits(key) ? "/" : "", key);
}

int fact_doc_id_parse(const char *id, struct berth_fact *ret)
{
    const char *slash = strchr(id, '/');
    for (unsigned kind = 0; slash && slash[1] && kind <= BERTH_FACT_PRESSURE; kind++) {
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
