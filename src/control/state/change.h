/* change.h - one transaction in the making: what a verb wants to write, and what that rests on.
 *
 * A verb reads through the change, so that it sees what earlier parts of the same transaction have written; each object
 * it reads or writes is guarded by the revision at which it was read. Nothing happens until control.c submits it, so a
 * dry run is a change that is thrown away, and a conflict is the same verb run again on the newer state.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "control/state/state.h"

struct change_item {
    enum kind kind;
    const char *id;
    json_t *doc; /* to be written, owned; NULL: deleted, not there, or not looked at yet */
    bool unread; /* only its revision was looked at */
    bool write;
    bool guarded;
    uint64_t revision; /* as read; 0: not there */
    const char *text;  /* the document as it will be stored, in the arena; NULL: change_item_text has not made it */
    size_t text_len;
};

/* A loop that alters many documents ends its transaction here: the record holds the text of each, and what is added to
 * them, and has at most STORE_RECORD_MAX. */
enum { CHANGE_BYTES_ENOUGH = 1 << 20 };

struct change {
    struct state *state;
    struct arena *arena;
    VEC(struct change_item) items;
    struct map map;      /* of the items, by kind and id */
    size_t bytes;        /* of the documents that were read, as the state has them */
    size_t submitted;    /* bytes of the record that commit_submit gave to the store */
    const char *verb;    /* for the audit: "app.stop" */
    const char *subject; /* "apps/photos.alice" */
    const char *note;    /* text of a JSON object whose members the journal's record gets, though no document may
                            change; "": none */
};

void change_init(struct change *c, struct state *state, struct arena *arena);
void change_done(struct change *c);

/* The object's document as the transaction would leave it: a borrowed reference, NULL if it is not there. Guards it. */
const json_t *change_read(struct change *c, enum kind kind, const char *id);
/* Guards it without looking at it. False: it is not there (which is guarded, too). */
bool change_rest_on(struct change *c, enum kind kind, const char *id);
/* The same to be altered: a private copy that will be written. NULL if it is not there. */
json_t *change_edit(struct change *c, enum kind kind, const char *id);
/* Writes a document (takes the reference; sets "v"). Guards the key: what was read, or its absence. */
void change_put(struct change *c, enum kind kind, const char *id, json_t *doc);
/* The same without resting on what was there: for counters, whose order the store keeps. */
void change_put_unguarded(struct change *c, enum kind kind, const char *id, json_t *doc);
void change_delete(struct change *c, enum kind kind, const char *id);
/* The item's document as it will be stored; made once, so the document must not be altered afterwards. NULL: deleted. */
const char *change_item_text(struct change *c, struct change_item *item, size_t *ret_len);
/* The client's own guard: -EAGAIN when the object is not at this revision now. */
int change_expect(struct change *c, enum kind kind, const char *id, uint64_t revision, struct berth_err *err);
bool change_empty(const struct change *c); /* writes nothing */

/* The documents it writes, for a dry run: [{"kind", "id", "before", "after"}]. A new reference; secrets are left out. */
json_t *change_show(const struct change *c);
