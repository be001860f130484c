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
    KEY("start", "time", "must be given", time_read, .at = AT(doc.start_ns)),
    KEY("end", "time", "or `duration`: one must be given", time_read, .at = AT(doc.end_ns)),
    KEY("duration", "duration", "instead of `end`", duration_read, .at = AT(duration_ns)),
    KEY("nodes", "list of names", "that are kept; or `require`", queue_names_read, LIST(nodes)),
    KEY("require", "conditions", "on the labels of nodes that are kept", require_read, LIST(require)),
    KEY("users", "list of names", "who may use them meanwhile, beside those of `groups`", queue_names_read,
        LIST(users)),
    KEY("groups", "list of names", "whose users may", queue_names_read, LIST(groups)),
    KEY("maintenance", "true or false", "nobody may use them", bool_read, .at = AT(doc.maintenance)),
    KEY("note", "text", "what it is for", line_read, .at = AT(doc.note)),
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
        return d->end_ns ? err_set(r->err, EINVAL, "duration: give it or end, not both")
                         : err_set(r->err, EINVAL, "end: missing; give it or duration");
    if (e->duration_ns && (e->duration_ns < 0 || e->duration_ns > BERTH_NEVER_NS - d->start_ns))
        return err_set(r->err, EINVAL, "duration: expected one that ends before the end of time");
    d->end_ns = d->end_ns ? d->end_ns : d->start_ns + e->duration_ns;
    if (d->end_ns <= d->start_ns)
        return err_set(r->err, EINVAL, "end: is not after start");
    if ((d->nodes_len != 0) == (d->require_len != 0))
        return d->nodes_len ? err_set(r->err, EINVAL, "require: give it or nodes, not both")
                            : err_set(r->err, EINVAL, "nodes: missing; give them or require");
    if (d->maintenance && d->users_len + d->groups_len)
        return err_set(r->err, EINVAL, "maintenance: is for nobody; leave out users and groups");
    if (!d->maintenance && d->users_len + d->groups_len == 0)
        return err_set(r->err, EINVAL, "users: say for whom the nodes are kept, or maintenance: true");
    return 0;
}

int window_doc_read(const json_t *doc, struct arena *arena, struct window_doc *ret, struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    struct window_entry e = {0};
    const struct part parts[] = {
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
    KEY("nodes", "list of names", "that are in it; or `require`", queue_names_read, LIST(nodes)),
    KEY("require", "conditions", "on the labels of nodes that are in it; of several such domains the first by name",
        require_read, LIST(require)),
    KEY("keep", "{resource: amount}", "kept free in it for urgent and large work, see `headroom_priority`",
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
        rc = err_set(err, EINVAL, "require: give it or nodes, not both");
    if (rc == 0)
        *ret = d;
    return rc;
}
