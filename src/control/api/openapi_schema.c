/* openapi_schema.c - derives the JSON schema of a key's value from the `form` text of its table. */
#include "control/api/openapi_schema.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "control/api/request.h"
#include "wire/doc/api.h"
#include "wire/doc/optask_doc.h"
#include "wire/doc/queue_doc.h"

static const struct {
    enum kind kind;
    const struct key_table *const *tables;
} kind_tables[] = {
    {KIND_APP,      work_tables    },
    {KIND_JOB,      work_tables    },
    {KIND_VM,       work_tables    },
    {KIND_NODE,     node_tables    },
    {KIND_VOLUME,   volume_tables  },
    {KIND_RESOURCE, resource_tables},
    {KIND_PROFILE,  profile_tables },
    {KIND_POLICY,   policy_tables  },
    {KIND_QUEUE,    queue_tables   },
    {KIND_DOMAIN,   domain_tables  },
    {KIND_WINDOW,   window_tables  },
    {KIND_USER,     user_tables    },
    {KIND_GROUP,    group_tables   },
    {KIND_ROLE,     role_tables    },
    {KIND_TOKEN,    token_tables   },
    {KIND_INSTANCE, instance_tables},
    {KIND_SECRET,   secret_tables  },
    {KIND_CRON,     cron_tables    },
    {KIND_OPTASK,   optask_tables  },
};

/* ---- collecting components -------------------------------------------------------------------------------------- */

/* Converts "instance reported" to "instance-reported", as in the links of the API reference. */
static char *slug(const char *name)
{
    CLEANUP(str) struct str text = {0};

    for (; *name; name++) {
        bool plain = isalnum((unsigned char)*name) || *name == '_';
        if (plain)
            str_add_char(&text, (char)tolower((unsigned char)*name));
        else if (text.len && text.at[text.len - 1] != '-')
            str_add_char(&text, '-');
    }
    return str_take(&text);
}

static const struct component *component_named(const struct components *c, const char *name, size_t len)
{
    for (size_t i = 0; i < c->at.len; i++)
        if (strlen(c->at.at[i].name) == len && strncmp(c->at.at[i].name, name, len) == 0)
            return &c->at.at[i];
    return NULL;
}

const char *component_of_table(const struct components *c, const struct key_table *table)
{
    for (size_t i = 0; i < c->at.len; i++)
        if (c->at.at[i].table == table)
            return c->at.at[i].name;
    return NULL;
}

const char *component_of_kind(const struct components *c, enum kind kind)
{
    for (size_t i = 0; i < sizeof kind_tables / sizeof *kind_tables; i++)
        if (kind_tables[i].kind == kind)
            return c->at.at[i].name; /* kind tables are collected first, in this order */
    return NULL;
}

static void collect_table(struct components *c, const struct key_table *table);

/* Collects the objects nested in the lists of this table. */
static void collect_nested(struct components *c, const struct key_table *table)
{
    for (size_t i = 0; i < table->len; i++)
        if (table->keys[i].read == objects_read && table->keys[i].arg)
            collect_table(c, ((const struct object_kind *)table->keys[i].arg)->table);
}

static void collect_table(struct components *c, const struct key_table *table)
{
    if (component_of_table(c, table))
        return;
    CLEANUP(mem) char *plain = slug(table->name);
    CLEANUP(str) struct str name = {0};
    str_add(&name, plain);
    for (unsigned i = 2; component_named(c, name.at, name.len); i++) {
        str_clear(&name);
        str_addf(&name, "%s-%u", plain, i);
    }
    struct component made = {.name = str_take(&name), .table = table};
    vec_push(&c->at, made);
    collect_nested(c, table);
}

void components_collect(struct components *c)
{
    for (size_t i = 0; i < sizeof kind_tables / sizeof *kind_tables; i++) {
        struct component made = {.name = mem_strdup(kinds[kind_tables[i].kind].name), .tables = kind_tables[i].tables};
        vec_push(&c->at, made);
    }
    for (size_t i = 0; i < sizeof kind_tables / sizeof *kind_tables; i++)
        for (const struct key_table *const *t = kind_tables[i].tables; *t; t++)
            collect_nested(c, *t);
    for (const struct key_table *const *t = run_tables; *t; t++)
        collect_table(c, *t);
    for (const struct key_table *const *t = job_tables; *t; t++)
        collect_table(c, *t);
    for (const struct key_table *const *t = report_tables; *t; t++)
        collect_table(c, *t);
    for (size_t t = 0; t < route_tables_len; t++)
        for (size_t i = 0; i < *route_tables[t].len; i++)
            if (route_tables[t].routes[i].body)
                collect_table(c, route_tables[t].routes[i].body);
}

void components_done(struct components *c)
{
    for (size_t i = 0; i < c->at.len; i++)
        mem_free(c->at.at[i].name);
    vec_done(&c->at);
}

/* ---- values ----------------------------------------------------------------------------------------------------- */

void ref_write(struct json_out *o, const char *key, const char *component)
{
    CLEANUP(str) struct str target = {0};

    str_addf(&target, "#/components/schemas/%s", component);
    json_out_open(o, key, '{');
    json_out_text(o, "$ref", target.at);
    json_out_close(o, '}');
}

/* A text or a number: "1.5", 1.5; "2026-03-01T12:00:00Z", 1772366400. */
static void either_write(struct json_out *o)
{
    json_out_open(o, "anyOf", '[');
    json_out_open(o, NULL, '{');
    json_out_text(o, "type", "string");
    json_out_close(o, '}');
    json_out_open(o, NULL, '{');
    json_out_text(o, "type", "number");
    json_out_close(o, '}');
    json_out_close(o, ']');
}

static void any_write(struct json_out *o)
{
    (void)o; /* the schema {} accepts every value */
}

static void text_write(struct json_out *o)
{
    json_out_text(o, "type", "string");
}

static void whole_write(struct json_out *o)
{
    json_out_text(o, "type", "integer");
}

static void number_write(struct json_out *o)
{
    json_out_text(o, "type", "number");
}

static void bool_write(struct json_out *o)
{
    json_out_text(o, "type", "boolean");
}

static void object_write(struct json_out *o)
{
    json_out_text(o, "type", "object");
}

/* Forms by their first words; the first match applies. `item`: schema of a list's items, or of an object's values. */
static const struct {
    const char *form;
    bool whole; /* matches the whole form, not only its beginning */
    const char *type;
    void (*item)(struct json_out *o);
} forms[] = {
    {"true or false",       true,  NULL,     bool_write  },
    {"whole number",        true,  NULL,     whole_write },
    {"number",              true,  NULL,     number_write},
    {"amount",              true,  NULL,     either_write},
    {"time",                true,  NULL,     either_write},
    {"duration",            true,  NULL,     either_write},
    {"text",                true,  NULL,     text_write  },
    {"user",                true,  NULL,     text_write  },
    {"group",               true,  NULL,     text_write  },
    {"role",                true,  NULL,     text_write  },
    {"node",                true,  NULL,     text_write  },
    {"path",                true,  NULL,     text_write  },
    {"list of texts",       true,  "array",  text_write  },
    {"list of names",       true,  "array",  text_write  },
    {"list of whole",       false, "array",  whole_write },
    {"list of device",      false, "array",  whole_write },
    {"list of {",           false, "array",  object_write},
    {"list of ",            false, "array",  any_write   },
    {"{key: text}",         true,  "object", text_write  },
    {"{name: text}",        true,  "object", text_write  },
    {"{permission: scope}", true,  "object", text_write  },
    {"{resource: amount}",  true,  "object", either_write},
    {"{resource: ratio}",   true,  "object", either_write},
    {"{",                   false, "object", any_write   },
};

/* Writes the words of a form such as "`tcp`, `udp` or `sctp`". */
static void words_write(struct json_out *o, const char *form)
{
    json_out_text(o, "type", "string");
    json_out_open(o, "enum", '[');
    for (const char *at = strchr(form, '`'); at; at = strchr(at, '`')) {
        size_t len = strcspn(++at, "`");
        json_out_key(o, NULL);
        str_add_json_bytes(o->to, at, len);
        at += len + (at[len] == '`');
    }
    json_out_close(o, ']');
}

/* Writes the bounds of a form such as "1 to 65535" or "0.001 to 1". */
static bool range_write(struct json_out *o, const char *form)
{
    char low[24], high[24];
    int end = 0;

    if (sscanf(form, "%23[0-9.] to %23[0-9.]%n", low, high, &end) != 2 || form[end])
        return false;
    json_out_text(o, "type", strchr(low, '.') || strchr(high, '.') ? "number" : "integer");
    json_out_key(o, "minimum");
    str_add(o->to, low);
    json_out_key(o, "maximum");
    str_add(o->to, high);
    return true;
}

/* Returns the component that a form such as "list of [taint](#taint)" links to; NULL: none. */
static const char *link_component(const struct components *c, const struct key *key)
{
    if (key->read == objects_read && key->arg)
        return component_of_table(c, ((const struct object_kind *)key->arg)->table);
    const char *link = strstr(key->form, "](#");
    const struct component *found = link ? component_named(c, link + 3, strcspn(link + 3, ")")) : NULL;
    return found ? found->name : NULL;
}

static void form_write(struct json_out *o, const char *form, const char *component)
{
    if (*form == '`') {
        words_write(o, form);
        return;
    }
    if (range_write(o, form))
        return;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t len = strlen(forms[i].form);
        if (strncmp(form, forms[i].form, len) != 0 || (forms[i].whole && form[len]))
            continue;
        if (!forms[i].type) {
            forms[i].item(o);
            return;
        }
        const char *inner = strcmp(forms[i].type, "array") == 0 ? "items" : "additionalProperties";
        json_out_text(o, "type", forms[i].type);
        if (component && forms[i].item == any_write) {
            ref_write(o, inner, component);
        } else {
            json_out_open(o, inner, '{');
            forms[i].item(o);
            json_out_close(o, '}');
        }
        return;
    }
}

static void key_write(struct json_out *o, const struct components *c, const struct key *key)
{
    CLEANUP(str) struct str about = {0};

    str_addf(&about, "%s: %s", key->form, key->help);
    json_out_open(o, key->name, '{');
    form_write(o, key->form, link_component(c, key));
    json_out_text(o, "description", about.at);
    json_out_close(o, '}');
}

/* ---- objects ---------------------------------------------------------------------------------------------------- */

static bool key_before(const struct key_table *const *tables, size_t table, size_t row)
{
    for (size_t t = 0; t <= table; t++)
        for (size_t i = 0; i < (t == table ? row : tables[t]->len); i++)
            if (strcmp(tables[t]->keys[i].name, tables[table]->keys[row].name) == 0)
                return true;
    return false;
}

static void component_write(struct json_out *o, const struct components *c, const struct component *component)
{
    const struct key_table *const alone[] = {component->table, NULL};
    const struct key_table *const *tables = component->tables ? component->tables : alone;

    json_out_open(o, component->name, '{');
    json_out_text(o, "type", "object");
    json_out_open(o, "properties", '{');
    for (size_t t = 0; tables[t]; t++)
        for (size_t i = 0; i < tables[t]->len; i++)
            if (!key_before(tables, t, i))
                key_write(o, c, &tables[t]->keys[i]);
    json_out_close(o, '}');
    json_out_close(o, '}');
}

void components_write(struct json_out *o, const struct components *c)
{
    for (size_t i = 0; i < c->at.len; i++)
        component_write(o, c, &c->at.at[i]);
}
