/* window_doc.c - documents of windows (nodes reserved for users, groups or maintenance for a time) and of domains. */
#include <errno.h>

#include "wire/doc/objects.h"
#include "wire/doc/queue_doc.h"

/* ---- windows ---------------------------------------------------------------------------------------------------- */

struct window_entry {
    struct window_doc doc;
    int64_t duration_ns;
};

#define AT(field) offsetof(struct window_entry, field)
#define LIST(field) .at = AT(doc.field), .len_at = AT(doc.field##_len)
static const struct key window_rows[] = {
    KEY("start", "time", "required", time_read, .at = AT(doc.start_ns)),
    KEY("end", "time", "end; either this or `duration` is required", time_read, .at = AT(doc.end_ns)),
    KEY("duration", "duration", "instead of `end`", duration_read, .at = AT(duration_ns)),
    KEY("nodes", "list of names", "reserved nodes; or `require`", queue_names_read, LIST(nodes)),
    KEY("require", "conditions", "condition on the labels of the reserved nodes", require_read, LIST(require)),
    KEY("users", "list of names", "users who may use the nodes, in addition to `groups`", queue_names_read,
        LIST(users)),
    KEY("groups", "list of names", "groups whose users may use the nodes", queue_names_read, LIST(groups)),
    KEY("maintenance", "true or false", "maintenance: no user may use the nodes", bool_read, .at = AT(doc.maintenance)),
    KEY("note", "text", "purpose", line_read, .at = AT(doc.note)),
};
#undef LIST
#undef AT
static KEY_TABLE(window_keys, "window", window_rows);

const struct key_table *const window_tables[] = {&window_keys, &identity_keys, &meta_keys, &created_keys, NULL};

static int window_finish(struct reader *r, struct window_entry *e)
{
    struct window_doc *d = &e->doc;
    if (d->start_ns <= 0)
        return missing(r, "start");
    if ((d->end_ns != 0) == (e->duration_ns != 0))
        return d->end_ns ? err_set(r->err, EINVAL, "duration: give either duration or end")
                         : err_set(r->err, EINVAL, "end: missing; give end or duration");
    if (e->duration_ns && (e->duration_ns < 0 || e->duration_ns > BERTH_NEVER_NS - d->start_ns))
        return err_set(r->err, EINVAL, "duration: is too long");
    d->end_ns = d->end_ns ? d->end_ns : d->start_ns + e->duration_ns;
    if (d->end_ns <= d->start_ns)
        return err_set(r->err, EINVAL, "end: is not after start");
    if ((d->nodes_len != 0) == (d->require_len != 0))
        return d->nodes_len ? err_set(r->err, EINVAL, "require: give either require or nodes")
                            : err_set(r->err, EINVAL, "nodes: missing; give nodes or require");
    if (d->maintenance && d->users_len + d->groups_len)
        return err_set(r->err, EINVAL, "maintenance: users and groups are not allowed");
    if (!d->maintenance && d->users_len + d->groups_len == 0)
        return err_set(r->err, EINVAL, "users: missing; give users, groups or maintenance: true");
    return 0;
}

int window_doc_read(const json_t *doc, struct arena *arena, struct window_doc *ret, struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    struct window_entry e = {0};
    const struct object_part parts[] = {
        {&window_keys,   &e         },
        {&identity_keys, &e.doc.meta},
        {&meta_keys,     &e.doc.meta},
        {&created_keys,  &e.doc.meta},
    };
    int rc = object_read(&r, doc, parts, sizeof parts / sizeof *parts);
    if (rc == 0)
        rc = meta_finish(&r, &e.doc.meta, e.doc.meta.id);
    if (rc == 0)
        rc = window_finish(&r, &e);
    if (rc == 0)
        *ret = e.doc;
    return rc;
}

/* ---- domains ---------------------------------------------------------------------------------------------------- */

#define AT(field) offsetof(struct domain_doc, field)
#define LIST(field) .at = AT(field), .len_at = AT(field##_len)
static const struct key domain_rows[] = {
    KEY("nodes", "list of names", "nodes of the domain; or `require`", queue_names_read, LIST(nodes)),
    KEY("require", "conditions", "condition on the labels of nodes; of several matching domains the first by name",
        require_read, LIST(require)),
    KEY("keep", "{resource: amount}", "headroom reserved for urgent and large work, see `headroom_priority`",
        amounts_read, LIST(keep)),
};
#undef LIST
#undef AT
static KEY_TABLE(domain_keys, "domain", domain_rows);

const struct key_table *const domain_tables[] = {&domain_keys, &identity_keys, &meta_keys, &created_keys, NULL};

int domain_doc_read(const json_t *doc, struct arena *arena, struct domain_doc *ret, struct berth_err *err)
{
    struct domain_doc d = {0};
    int rc = document_fill(doc, arena, &domain_keys, &d, &d.meta, err);
    if (rc == 0 && d.nodes_len && d.require_len)
        rc = err_set(err, EINVAL, "require: give either require or nodes");
    if (rc == 0)
        *ret = d;
    return rc;
}
