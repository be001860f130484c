/* report_doc.c - reports of agents about their node and its instances. */
#include <errno.h>
#include <string.h>

#include "wire/doc/objects.h"

enum {
    REPORT_ITEMS_MAX = 100000,
    ERROR_BYTES_MAX = 512,
    NOTE_BYTES_MAX = 256,
    EXIT_MAX = 255,
    PROGRESS_MAX = 1000,
    RESOURCES_MAX = 64,
    CONDITIONS_MAX = 64,
};

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
    KEY("endpoint", "text", "the name; required", line_read, .at = offsetof(struct port_report, endpoint)),
    KEY("port", "1 to 65535", "the bound port; required", bound_port_read, .at = offsetof(struct port_report, port)),
};
KEY_TABLE(port_report_keys, "port reported", port_report_rows);

static int port_report_finish(struct reader *r, void *item)
{
    const struct port_report *p = item;
    return !p->endpoint || !*p->endpoint ? missing(r, "endpoint") : p->port ? 0 : missing(r, "port");
}

int port_reports_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    static const struct object_kind kind = {
        .table = &port_report_keys, .size = sizeof(struct port_report), .finish = port_report_finish};
    struct key with_kind = *key;
    with_kind.arg = &kind;
    if (json_array_size(value) > ENDPOINTS_MAX)
        return err_set(r->err, EINVAL, "%zu ports; at most %d are allowed", json_array_size(value), ENDPOINTS_MAX);
    return objects_read(r, &with_kind, value, object);
}

/* Shortens long text at the end of a character: a program's message must not make the report invalid. */
static int cut_read(struct reader *r, const json_t *value, size_t max, const char **ret)
{
    const char *text = NULL;
    int rc = text_of(r, value, &text);
    if (rc < 0)
        return rc;
    size_t len = strlen(text);
    if (len > max) {
        for (len = max; len && ((unsigned char)text[len] & 0xc0) == 0x80;)
            len--;
        text = arena_strndup(r->arena, text, len);
    }
    *ret = text;
    return 0;
}

int message_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return cut_read(r, value, ERROR_BYTES_MAX, key_field(key, object));
}

static int note_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return cut_read(r, value, NOTE_BYTES_MAX, key_field(key, object));
}

/* ---- attributes of an instance ---------------------------------------------------------------------------------- */

static int code_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > EXIT_MAX)
        return expected(r, "a code from 0 to 255", value);
    ((struct instance_details *)object)->exit_reported = true;
    return i32_read(r, key, value, object);
}

static int progress_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > PROGRESS_MAX)
        return expected(r, "thousandths from 0 to 1000", value);
    ((struct instance_details *)object)->progress_reported = true;
    return i32_read(r, key, value, object);
}

static int foreign_port_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > UINT16_MAX)
        return expected(r, "a port from 1 to 65535", value);
    return i32_read(r, key, value, object);
}

static int resources_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_array(value) || json_array_size(value) > RESOURCES_MAX)
        return expected(r, "a list of at most 64 resources", value);
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *item = json_array_get(value, i);
        if (!json_is_string(item) || json_string_length(item) > BERTH_NAME_MAX)
            return in_item(r, i, expected(r, "the name of a resource", item));
    }
    return texts_read(r, key, value, object);
}

static int exclusive_names_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_object(value) || json_object_size(value) > RESOURCES_MAX)
        return expected(r, "an object of at most 64 resources", value);
    for (void *at = json_object_iter((json_t *)value); at; at = json_object_iter_next((json_t *)value, at)) {
        const char *name = json_object_iter_key(at);
        const json_t *taken = json_object_iter_value(at);
        if (!*name || strlen(name) > BERTH_NAME_MAX)
            return err_set(r->err, EINVAL, "expected the name of a resource");
        if (!json_is_string(taken) || json_string_length(taken) > BERTH_NAME_MAX)
            return in_member(r, name, expected(r, "the allocated name", taken));
    }
    return labels_read(r, key, value, object);
}

#define AT(field) offsetof(struct instance_details, field)
#define LIST(field) .at = AT(field), .len_at = AT(field##_len)
static const struct key words_rows[] = {
    KEY("exit", "0 to 255", "exit code, or 128 + signal number", code_read, .at = AT(exit)),
    KEY("progress", "0 to 1000", "reported progress in thousandths", progress_read, .at = AT(progress)),
    KEY("note", "text", "reported activity", note_read, .at = AT(note)),
    KEY("unenforced", "list of texts", "resources whose limits are not enforced by the node", resources_read,
        LIST(unenforced)),
    KEY("over", "list of texts", "resources used above the limit", resources_read, LIST(over)),
    KEY("foreign_port", "1 to 65535", "port of another app's block that it bound or tried to bind", foreign_port_read,
        .at = AT(foreign_port)),
    KEY("oom_killed", "true or false", "at its end: a process was killed for exceeding the memory limit", bool_read,
        .at = AT(oom_killed)),
    KEY("exclusive", "{name: text}", "allocated names of each exclusive resource", exclusive_names_read,
        LIST(exclusive)),
};
#undef LIST
#undef AT
KEY_TABLE(instance_details_keys, "words", words_rows);

/* ---- reports ----------------------------------------------------------------------------------------------------- */

static const struct enum_word report_words[] = {
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
    int ready; /* -1: not given */
    int said;  /* the state; -1: not given */
};

static int said_state_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    ((struct item_entry *)object)->said = 1;
    return word_read(r, key, value, object);
}

#define AT(field) offsetof(struct item_entry, field)
static const struct key item_rows[] = {
    KEY("id", "whole number", "id of the instance; required", counter_read, .at = AT(item.id)),
    KEY("state", "`starting`, `running`, `stopping`, `ended`, `failed` or `stopped`", "required", said_state_read,
        .at = AT(item.state), .arg = report_words),
    KEY("ready", "true or false", "healthy; default: true while running", choice_read, .at = AT(ready)),
    KEY("error", "text", "the cause of the failure", message_read, .at = AT(item.error)),
    KEY("ports", "list of {`endpoint`, `port`}", "bound ports", port_reports_read, .at = AT(item.ports),
        .len_at = AT(item.ports_len)),
    KEY("usage", "{resource: amount}", "current use", amounts_read, .at = AT(item.usage), .len_at = AT(item.usage_len)),
};
#undef AT
static KEY_TABLE(item_keys, "instance reported", item_rows);

/* Reads the keys of both tables of an item. */
static int item_keys_read(struct reader *r, const json_t *value, struct item_entry *entry)
{
    const struct object_part parts[] = {
        {&item_keys,             entry             },
        {&instance_details_keys, &entry->item.words},
    };
    return object_read(r, value, parts, sizeof parts / sizeof *parts);
}

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

static int items_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_array(value))
        return expected(r, "a list of instances", value);
    size_t len = json_array_size(value);
    if (len > REPORT_ITEMS_MAX)
        return err_set(r->err, EINVAL, "more than %d instances", REPORT_ITEMS_MAX);
    struct report_item *items = ARENA_ARRAY(r->arena, struct report_item, len);
    for (size_t i = 0; i < len; i++) {
        struct item_entry entry = {.ready = -1};
        int rc = item_keys_read(r, json_array_get(value, i), &entry);
        if (rc == 0)
            rc = item_finish(r, &entry);
        if (rc < 0)
            return in_item(r, i, rc);
        items[i] = entry.item;
    }
    list_set(key, object, items, len);
    return 0;
}

/* ---- the machine ------------------------------------------------------------------------------------------------ */

static const struct key condition_rows[] = {
    KEY("type", "text", "one word; required", line_read, .at = offsetof(struct node_condition, type)),
    KEY("text", "text", "one sentence", message_read, .at = offsetof(struct node_condition, text)),
};
static KEY_TABLE(node_condition_keys, "condition reported", condition_rows);

static int condition_finish(struct reader *r, void *item)
{
    struct node_condition *c = item;
    if (!c->type || !*c->type)
        return missing(r, "type");
    c->text = c->text ? c->text : "";
    return 0;
}

static int conditions_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    static const struct object_kind kind = {
        .table = &node_condition_keys, .size = sizeof(struct node_condition), .finish = condition_finish};
    struct key with_kind = *key;
    with_kind.arg = &kind;
    if (!json_is_array(value) || json_array_size(value) > CONDITIONS_MAX)
        return expected(r, "a list of at most 64 conditions", value);
    return objects_read(r, &with_kind, value, object);
}

#define AT(field) offsetof(struct report_doc, field)
static const struct key machine_rows[] = {
    KEY("usage", "{resource: amount}", "current use of the whole machine", amounts_read, .at = AT(usage),
        .len_at = AT(usage_len)),
    KEY("probed", "{name: value}", "resources of the machine, if changed", tree_read, .at = AT(probed)),
    KEY("conditions", "list of {`type`, `text`}", "problems of the node", conditions_read, .at = AT(conditions),
        .len_at = AT(conditions_len)),
};
static KEY_TABLE(machine_keys, "node reported", machine_rows);

static int machine_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    struct report_doc *d = object;
    (void)key;
    int rc = table_read(r, value, &machine_keys, d);
    if (rc == 0 && d->usage_len > RESOURCES_MAX)
        return err_set(r->err, EINVAL, "usage: more than %d resources", RESOURCES_MAX);
    d->machine_reported = true;
    return rc;
}

static const struct key report_rows[] = {
    KEY("epoch", "whole number", "above 0; grows with each start of the agent", counter_read, .at = AT(epoch)),
    KEY("seq", "whole number", "above 0; grows with each report", counter_read, .at = AT(seq)),
    KEY("node", "{`usage`, `probed`, `conditions`}", "state of the whole machine", machine_read),
    KEY("instances", "list of [instance reported](#instance-reported)", "instances on the node; none: a heartbeat",
        items_read, .at = AT(items), .len_at = AT(items_len)),
};
#undef AT
static KEY_TABLE(report_keys, "report", report_rows);

const struct key_table *const report_tables[] = {
    &report_keys, &item_keys, &instance_details_keys, &port_report_keys, &machine_keys, &node_condition_keys, NULL};

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
