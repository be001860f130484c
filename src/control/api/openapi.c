/* openapi.c - writes routes as OpenAPI paths and operations. */
#include "control/api/openapi.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "control/api/openapi_schema.h"
#include "control/api/request.h"

static const struct {
    int status;
    const char *name, *about;
} errors[] = {
    {400, "invalid",         "The request or one of its fields is invalid; nothing was changed."             },
    {401, "unauthenticated", "No valid token."                                                               },
    {403, "forbidden",       "The caller may read the object, but not do this."                              },
    {404, "not-found",       "Not found, or not visible to the caller."                                      },
    {409, "conflict",        "Already exists, is in the wrong state, or was changed by another request."     },
    {410, "compacted",       "The revision of the watch is too old: list again."                             },
    {412, "changed",         "The revision in `If-Match` is not the current one."                            },
    {413, "too-large",       "The body exceeds the limit of the route."                                      },
    {429, "rate",            "Too many requests; retry after the time in `Retry-After`."                     },
    {503, "unavailable",     "The store cannot write, or too many requests are waiting; nothing was changed."},
};

/* Tells whether this route can answer with this status. */
static bool error_applies(const struct route *r, int status)
{
    switch (status) {
    case 401:
    case 403: return r->need != PERMIT_PUBLIC;
    case 404: return r->need != PERMIT_PUBLIC && strchr(r->path, '{');
    case 409:
    case 412: return r->flags & ROUTE_CHANGES;
    case 410: return r->flags & ROUTE_STREAMS;
    case 413: return r->body_max > 0;
    default: return true;
    }
}

/* ---- parameters ------------------------------------------------------------------------------------------------- */

static void parameter_write(struct json_out *o, const char *name, size_t len, const char *in, const char *type,
                            const char *about)
{
    json_out_open(o, NULL, '{');
    json_out_key(o, "name");
    str_add_json_bytes(o->to, name, len);
    json_out_text(o, "in", in);
    if (strcmp(in, "path") == 0)
        json_out_bool(o, "required", true);
    if (about)
        json_out_text(o, "description", about);
    json_out_open(o, "schema", '{');
    json_out_text(o, "type", type);
    json_out_close(o, '}');
    json_out_close(o, '}');
}

static bool listed(const char *names, const char *name, size_t len)
{
    for (; names && *names; names += strcspn(names, ","), names += *names == ',')
        if (strcspn(names, ",") == len && strncmp(names, name, len) == 0)
            return true;
    return false;
}

static void query_write(struct json_out *o, const struct route *r)
{
    static const struct {
        const char *name, *type, *about;
    } known[] = {
        {"limit", "integer",
         "Maximum number of items; a page has at most about 1 MiB. `continue` gives the start "
         "of the next page."                                                                                        },
        {"after", "string",  "List the items after this id, or after `continue` of the previous page."              },
        {"order", "string",  "desc: the highest id first; `after` then continues downwards."                        },
        {"watch", "string",  "Stream the changes after this revision; derived documents: whenever the hash differs."},
        {"force", "boolean", "Delete even if other objects depend on it."                                           },
        {"stop",  "boolean", "With `hold`: also stop a running job."                                                },
        {"merge", "boolean", "Merge into the existing user of that name."                                           },
    };
    for (const char *at = r->query; at && *at; at += *at == ',') {
        size_t len = strcspn(at, ","), i = 0;
        while (i < sizeof known / sizeof *known &&
               (strlen(known[i].name) != len || strncmp(known[i].name, at, len) != 0))
            i++;
        bool found = i < sizeof known / sizeof *known;
        parameter_write(o, at, len, "query", found ? known[i].type : "string", found ? known[i].about : NULL);
        at += len;
    }
    if (r->flags & ROUTE_STREAMS && !listed(r->query, "watch", 5))
        parameter_write(o, "watch", 5, "query", "string", known[3].about);
    if (r->flags & ROUTE_CHANGES && !listed(r->query, "dry_run", 7))
        parameter_write(o, "dry_run", 7, "query", "boolean",
                        "Validate the request and show the changes without "
                        "making them.");
}

static void parameters_write(struct json_out *o, const struct route *r)
{
    json_out_open(o, "parameters", '[');
    for (const char *at = strchr(r->path, '{'); at; at = strchr(at, '{')) {
        at++;
        parameter_write(o, at, strcspn(at, "}"), "path", "string", NULL);
    }
    query_write(o, r);
    if (r->flags & ROUTE_CHANGES) {
        parameter_write(o, "If-Match", 8, "header", "string", "Only if the object has this revision.");
        parameter_write(o, "Idempotency-Key", 15, "header", "string",
                        "1 to 128 characters: a repeated request gets the first response again.");
    }
    json_out_close(o, ']');
}

/* ---- bodies ----------------------------------------------------------------------------------------------------- */

/* Returns the kind whose collection (or, with *ret_one, member) the path is; KINDS: no kind. */
static enum kind path_kind(const char *path, bool *ret_one)
{
    char word[64];
    if (strncmp(path, "/v1/", 4) != 0)
        return KINDS;
    size_t len = strcspn(path + 4, "/");
    const char *rest = path + 4 + len;
    *ret_one = strcmp(rest, "/{id}") == 0;
    if (len >= sizeof word || (*rest && !*ret_one))
        return KINDS;
    memcpy(word, path + 4, len);
    word[len] = '\0';
    enum kind kind = kind_find(word);
    return kind != KINDS && strcmp(kinds[kind].plural, word) == 0 ? kind : KINDS;
}

static void content_open(struct json_out *o, const char *type)
{
    json_out_open(o, "content", '{');
    json_out_open(o, type, '{');
}

static void content_close(struct json_out *o)
{
    json_out_close(o, '}');
    json_out_close(o, '}');
}

static void request_write(struct json_out *o, const struct route *r, const struct components *c)
{
    bool one;
    enum kind kind = path_kind(r->path, &one);
    const char *component = r->body         ? component_of_table(c, r->body)
                            : kind != KINDS ? component_of_kind(c, kind)
                                            : NULL;

    if (!r->body_max)
        return;
    json_out_open(o, "requestBody", '{');
    content_open(o, strcmp(r->method, "PATCH") == 0 ? "application/merge-patch+json" : "application/json");
    if (component) {
        ref_write(o, "schema", component);
    } else {
        json_out_open(o, "schema", '{');
        json_out_text(o, "type", "object");
        json_out_close(o, '}');
    }
    content_close(o);
    json_out_close(o, '}');
}

static void list_write(struct json_out *o, const char *component)
{
    json_out_open(o, "schema", '{');
    json_out_text(o, "type", "object");
    json_out_open(o, "properties", '{');
    json_out_open(o, "items", '{');
    json_out_text(o, "type", "array");
    ref_write(o, "items", component);
    json_out_close(o, '}');
    json_out_open(o, "revision", '{');
    json_out_text(o, "type", "integer");
    json_out_close(o, '}');
    json_out_open(o, "continue", '{');
    json_out_text(o, "type", "string");
    json_out_close(o, '}');
    json_out_close(o, '}');
    json_out_close(o, '}');
}

static void success_write(struct json_out *o, const struct route *r, const struct components *c)
{
    bool one = false, get = strcmp(r->method, "GET") == 0;
    enum kind kind = path_kind(r->path, &one);
    const char *component = get && kind != KINDS ? component_of_kind(c, kind) : NULL;
    bool creates = !get && kind != KINDS && (strcmp(r->method, "POST") == 0 || strcmp(r->method, "PUT") == 0);

    json_out_open(o, creates && !one ? "201" : "200", '{');
    json_out_text(o, "description", creates && !one ? "Created and stored durably." : "Done.");
    content_open(o, strcmp(r->path, "/metrics") == 0 ? "text/plain" : "application/json");
    if (component && one) {
        ref_write(o, "schema", component);
    } else if (component) {
        list_write(o, component);
    } else {
        json_out_open(o, "schema", '{');
        json_out_close(o, '}');
    }
    content_close(o);
    json_out_close(o, '}');
    if (creates && one) {
        json_out_open(o, "201", '{');
        json_out_text(o, "description", "Created and stored durably.");
        json_out_close(o, '}');
    }
}

static void responses_write(struct json_out *o, const struct route *r, const struct components *c)
{
    json_out_open(o, "responses", '{');
    success_write(o, r, c);
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        CLEANUP(str) struct str text = {0};
        if (!error_applies(r, errors[i].status))
            continue;
        str_addf(&text, "%d", errors[i].status);
        json_out_open(o, text.at, '{');
        str_clear(&text);
        str_addf(&text, "#/components/responses/%s", errors[i].name);
        json_out_text(o, "$ref", text.at);
        json_out_close(o, '}');
    }
    json_out_close(o, '}');
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* Appends an id such as "get_v1_jobs_id". */
static void operation_id(struct str *to, const struct route *r)
{
    for (const char *p = r->method; *p; p++)
        str_add_char(to, (char)tolower((unsigned char)*p));
    bool gap = true;
    for (const char *p = r->path; *p; p++) {
        bool plain = isalnum((unsigned char)*p);
        if (plain && gap)
            str_add_char(to, '_');
        if (plain)
            str_add_char(to, *p);
        gap = !plain;
    }
}

static void operation_write(struct json_out *o, const struct route *r, const char *area, const struct components *c)
{
    CLEANUP(str) struct str method = {0};
    CLEANUP(str) struct str id = {0};

    for (const char *p = r->method; *p; p++)
        str_add_char(&method, (char)tolower((unsigned char)*p));
    operation_id(&id, r);
    json_out_open(o, method.at, '{');
    json_out_text(o, "operationId", id.at);
    json_out_text(o, "summary", r->summary);
    json_out_open(o, "tags", '[');
    json_out_text(o, NULL, area);
    json_out_close(o, ']');
    parameters_write(o, r);
    request_write(o, r, c);
    responses_write(o, r, c);
    if (r->need == PERMIT_PUBLIC) {
        json_out_open(o, "security", '[');
        json_out_close(o, ']');
    }
    json_out_text(o, "x-berth-permission", permission_name(r->need));
    if (r->body_max)
        json_out_number(o, "x-berth-body-max", r->body_max);
    json_out_close(o, '}');
}

static bool path_before(size_t table, size_t row)
{
    const char *path = route_tables[table].routes[row].path;

    for (size_t t = 0; t <= table; t++)
        for (size_t i = 0; i < (t == table ? row : *route_tables[t].len); i++)
            if (strcmp(route_tables[t].routes[i].path, path) == 0)
                return true;
    return false;
}

/* Writes all methods of one path together, from every table that contains the path. */
static void path_write(struct json_out *o, const char *path, const struct components *c)
{
    json_out_open(o, path, '{');
    for (size_t t = 0; t < route_tables_len; t++)
        for (size_t i = 0; i < *route_tables[t].len; i++)
            if (strcmp(route_tables[t].routes[i].path, path) == 0)
                operation_write(o, &route_tables[t].routes[i], route_tables[t].area, c);
    json_out_close(o, '}');
}

static void error_schema_write(struct json_out *o)
{
    static const char *const members[] = {"code", "message", "field"};

    json_out_open(o, "error", '{');
    json_out_text(o, "type", "object");
    json_out_open(o, "properties", '{');
    json_out_open(o, "error", '{');
    json_out_text(o, "type", "object");
    json_out_open(o, "properties", '{');
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_out_open(o, members[i], '{');
        json_out_text(o, "type", "string");
        json_out_close(o, '}');
    }
    json_out_close(o, '}');
    json_out_close(o, '}');
    json_out_close(o, '}');
    json_out_close(o, '}');
}

static void shared_write(struct json_out *o, const struct components *c)
{
    json_out_open(o, "components", '{');
    json_out_open(o, "securitySchemes", '{');
    json_out_open(o, "bearer", '{');
    json_out_text(o, "type", "http");
    json_out_text(o, "scheme", "bearer");
    json_out_close(o, '}');
    json_out_close(o, '}');
    json_out_open(o, "responses", '{');
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        json_out_open(o, errors[i].name, '{');
        json_out_text(o, "description", errors[i].about);
        content_open(o, "application/json");
        ref_write(o, "schema", "error");
        content_close(o);
        json_out_close(o, '}');
    }
    json_out_close(o, '}');
    json_out_open(o, "schemas", '{');
    error_schema_write(o);
    components_write(o, c);
    json_out_close(o, '}');
    json_out_close(o, '}');
}

void openapi_write(struct str *to)
{
    struct json_out o = {.to = to};
    struct components components = {0};

    components_collect(&components);
    json_out_open(&o, NULL, '{');
    json_out_text(&o, "openapi", "3.0.3");
    json_out_open(&o, "info", '{');
    json_out_text(&o, "title", "Berth");
    json_out_text(&o, "version", berth_version());
    json_out_text(&o, "description", "Schedules services, jobs and virtual machines on nodes.");
    json_out_close(&o, '}');
    json_out_open(&o, "servers", '[');
    json_out_open(&o, NULL, '{');
    json_out_text(&o, "url", "/");
    json_out_close(&o, '}');
    json_out_close(&o, ']');
    json_out_open(&o, "security", '[');
    json_out_open(&o, NULL, '{');
    json_out_open(&o, "bearer", '[');
    json_out_close(&o, ']');
    json_out_close(&o, '}');
    json_out_close(&o, ']');
    json_out_open(&o, "tags", '[');
    for (size_t t = 0; t < route_tables_len; t++) {
        json_out_open(&o, NULL, '{');
        json_out_text(&o, "name", route_tables[t].area);
        json_out_text(&o, "description", route_tables[t].about);
        json_out_close(&o, '}');
    }
    json_out_close(&o, ']');
    json_out_open(&o, "paths", '{');
    for (size_t t = 0; t < route_tables_len; t++)
        for (size_t i = 0; i < *route_tables[t].len; i++)
            if (!path_before(t, i))
                path_write(&o, route_tables[t].routes[i].path, &components);
    json_out_close(&o, '}');
    shared_write(&o, &components);
    json_out_close(&o, '}');
    components_done(&components);
}
