/* meta_doc.c - the keys of every document, and those that only the daemon writes. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "wire/doc/objects.h"

int counter_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return expected(r, "a whole number from 0 to 2^63-1", value);
    *(uint64_t *)key_field(key, object) = (uint64_t)json_integer_value(value);
    return 0;
}

int line_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const char *text = NULL;
    int rc = text_of(r, value, &text);
    if (rc < 0)
        return rc;
    size_t len = strlen(text);
    if (len > BERTH_NAME_MAX)
        return err_set(r->err, EINVAL, "has %zu bytes; at most %d are allowed", len, BERTH_NAME_MAX);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            return err_set(r->err, EINVAL, "has a control character at byte %zu", i + 1);
    *(const char **)key_field(key, object) = text;
    return 0;
}

int tree_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    return json_is_object(value) ? raw_read(r, key, value, object) : expected(r, "an object", value);
}

#define AT(field) offsetof(struct doc_meta, field)
static const struct key meta_rows[] = {
    KEY("v", "whole number", "version of the stored format; set by the daemon", i64_read, .at = AT(version)),
    KEY("display", "text", "display name, any characters", line_read, .at = AT(display)),
    KEY("generation", "whole number", "incremented with each change of the specification; set by the daemon",
        counter_read, .at = AT(generation)),
};
static const struct key created_rows[] = {
    KEY("created", "time", "set by the daemon", time_read, .at = AT(created_ns)),
};
static const struct key identity_rows[] = {
    KEY("id", "text", "unique among objects of the kind", line_read, .at = AT(id)),
};
#undef AT
KEY_TABLE(meta_keys, "object", meta_rows);
KEY_TABLE(created_keys, "created", created_rows);
KEY_TABLE(identity_keys, "identity", identity_rows);

int meta_finish(struct reader *r, struct doc_meta *meta, const char *id)
{
    if (!id || !*id)
        return missing(r, "id");
    if (meta->version < 0)
        return err_set(r->err, EINVAL, "v: %" PRId64 " is not a valid version", meta->version);
    meta->id = id;
    return 0;
}

int document_fill(const json_t *doc, struct arena *arena, const struct key_table *table, void *object,
                  struct doc_meta *meta, struct berth_err *err)
{
    struct berth_err own = {0};
    struct reader r;
    reader_init(&r, arena, err ? err : &own);
    const struct object_part parts[] = {
        {&identity_keys, meta  },
        {&meta_keys,     meta  },
        {&created_keys,  meta  },
        {table,          object},
    };
    int rc = object_read(&r, doc, parts, sizeof parts / sizeof *parts);
    return rc < 0 ? rc : meta_finish(&r, meta, meta->id);
}

void doc_strip(json_t *doc)
{
    static const char *const own[] = {
        "v",         "revision",  "created",  "generation", "status",   "index", "restart", "system",
        "stoppable", "cancelled", "failed",   "ended",      "epoch",    "seq",   "of",      "error",
        "hash",      "was",       "cron",     "attempt",    "attained", "met",   "held_by", "last",
        "jobs",      "started",   "finished", "uid",        "outcome",
    };
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        (void)json_object_del(doc, own[i]);
}
