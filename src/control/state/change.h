/* change.h - a transaction under construction: the documents that a verb writes, and the revisions that it depends on.
 *
 * A verb reads through the change, so that it sees the writes of earlier parts of the same transaction. Each object
 * that it reads or writes is guarded by the revision at which it was read. Nothing is written until commit_submit, so a
 * dry run is a discarded change, and a conflict is resolved by running the verb again on the newer state.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "control/state/state.h"

struct change_item {
    enum kind kind;
    const char *id;
    json_t *doc; /* document to write, owned; NULL: deleted, missing, or not read yet */
    bool unread; /* only the revision was read */
    bool write;
    bool guarded;
    uint64_t revision; /* at the time of the read; 0: missing */
    const char *text;  /* the document as stored, in the arena; NULL until change_item_text is called */
    size_t text_len;
};

/* A loop that alters many documents ends its transaction at this number of bytes: the journal's record contains the
 * text of each document and some additions, and is limited to STORE_RECORD_MAX. */
enum { CHANGE_BYTES_ENOUGH = 1 << 20 };

struct change {
    struct state *state;
    struct arena *arena;
    VEC(struct change_item) items;
    struct map map;      /* items by kind and id */
    size_t bytes;        /* stored bytes of the documents that were read */
    size_t submitted;    /* bytes of the record that commit_submit passed to the store */
    const char *verb;    /* for the audit: "app.stop" */
    const char *subject; /* "apps/photos.alice" */
    /* text of a JSON object whose members are added to the journal's record, even if no document changes; "": none */
    const char *note;
};

void change_init(struct change *c, struct state *state, struct arena *arena);
void change_done(struct change *c);

/* Returns the object's document as the transaction would leave it: a borrowed reference, NULL if the object does not
 * exist. Guards the object. */
const json_t *change_read(struct change *c, enum kind kind, const char *id);
/* Guards an object without reading it. Returns false if the object does not exist (its absence is guarded, too). */
bool change_guard(struct change *c, enum kind kind, const char *id);
/* Returns a private copy of the document that may be altered and will be written; NULL if the object does not exist.
 * Guards the object. */
json_t *change_edit(struct change *c, enum kind kind, const char *id);
/* Writes a document (consumes the reference; sets "v"). Guards the key: the revision that was read, or its absence. */
void change_put(struct change *c, enum kind kind, const char *id, json_t *doc);
/* Writes a document without a guard: for counters, whose writes the store orders. */
void change_put_unguarded(struct change *c, enum kind kind, const char *id, json_t *doc);
void change_delete(struct change *c, enum kind kind, const char *id);
/* Returns the item's document as stored. The text is made once, so the document must not be altered afterwards. NULL:
 * deleted. */
const char *change_item_text(struct change *c, struct change_item *item, size_t *ret_len);
/* Adds a guard of the client. Returns -EAGAIN if the object is not at this revision now. */
int change_expect(struct change *c, enum kind kind, const char *id, uint64_t revision, struct berth_err *err);
bool change_empty(const struct change *c); /* the change writes nothing */

/* Returns the documents that the change writes, for a dry run: [{"kind", "id", "before", "after"}]. A new reference,
 * without secrets. */
json_t *change_show(const struct change *c);
