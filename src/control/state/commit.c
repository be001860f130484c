#include "control/state/commit.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/plant.h"
#include "base/str.h"
#include "control/control_parts.h"
#include "journal/record.h"

struct txn_builder {
    struct arena *arena;
    VEC(struct store_op) ops;
    VEC(struct store_guard) guards;
};

static const char *key_of(struct arena *arena, const struct change_item *item)
{
    char buf[OBJECT_KEY_MAX];
    return arena_strdup(arena, object_key(item->kind, item->id, buf));
}

/* Tells whether the store already has the same bytes. */
static bool unchanged(const struct control *c, const struct change_item *item, const char *text, size_t len)
{
    const struct object *o = state_find(c->state, item->kind, item->id);
    if (!item->doc)
        return !o;
    return o && o->doc.len == len && memcmp(o->doc.at, text, len) == 0;
}

static void add_op(struct txn_builder *b, const struct control *c, struct change *change, struct change_item *item)
{
    size_t len;
    const char *text = change_item_text(change, item, &len);
    if (unchanged(c, item, text, len))
        return;
    struct store_op op = {
        .key = key_of(b->arena, item), .value = {text, len},
              .gone = !item->doc
    };
    vec_push(&b->ops, op);
}

static void add_kind(struct txn_builder *b, const struct control *c, struct change *change, unsigned kind, bool gone)
{
    for (size_t i = 0; i < change->items.len; i++)
        if (change->items.at[i].kind == kind && change->items.at[i].write && !change->items.at[i].doc == gone)
            add_op(b, c, change, &change->items.at[i]);
}

/* Orders the operations: an object is written after the objects that it refers to, and removed before them. Instances
 * are removed first of all, because a removed instance frees ports and devices for a new one. */
static void add_ops(struct txn_builder *b, const struct control *c, struct change *change)
{
    for (unsigned k = KINDS; k-- > KIND_INSTANCE;)
        add_kind(b, c, change, k, true);
    for (unsigned k = 0; k < KINDS; k++)
        add_kind(b, c, change, k, false);
    for (unsigned k = KIND_INSTANCE; k-- > 0;)
        add_kind(b, c, change, k, true);
}

/* Writes the ledger document without a guard: only its revision matters. */
static void add_quota_ledger(struct txn_builder *b, const struct control *c)
{
    char key[OBJECT_KEY_MAX];
    const char *text =
        arena_fmt(b->arena, "{\"v\":%d,\"after\":%" PRIu64 "}", SCHEMA_VERSION, state_revision(c->state));
    struct store_op op = {
        .key = arena_strdup(b->arena, object_key(KIND_LEDGER, LEDGER_QUOTAS, key)), .value = {text, strlen(text)}
    };
    vec_push(&b->ops, op);
}

static void add_record(struct txn_builder *b, const struct control *c, const struct commit_note *note,
                       struct str *record)
{
    struct journal_head head = {.kind = note->verb,
                                .at_ns = c->now_ns,
                                .who = note->who,
                                .subject = note->subject,
                                .token = note->token,
                                .remote = note->remote};
    journal_begin(record, &head);
    for (size_t i = 0; i + PLANTED(COMMIT_UNTOLD) < b->ops.len; i++) {
        const struct store_op *op = &b->ops.at[i];
        const char *id;
        bool recorded = kind_recorded(object_key_split(op->key, &id));
        journal_change(record, op->key, recorded ? op->value.at : NULL, op->value.len, op->gone);
    }
    journal_end(record, note->extra.at, note->extra.len);
}

int commit_submit(struct control *c, struct change *change, const struct commit_note *note, store_done *done, void *ctx,
                  struct berth_err *err)
{
    if (c->broken[0])
        return err_set(err, EIO, "%s", c->broken);
    CLEANUP(str) struct str record = {0};
    struct arena_mark mark = arena_mark(change->arena);
    struct txn_builder b = {.arena = change->arena};
    add_ops(&b, c, change);
    if (commit_affects_quotas(c->state, change))
        add_quota_ledger(&b, c);
    int rc = 0;
    if (b.ops.len || note->extra.len) {
        for (size_t i = 0; i < change->items.len; i++)
            if (change->items.at[i].guarded && !PLANTED(COMMIT_UNGUARDED)) {
                struct store_guard guard = {key_of(b.arena, &change->items.at[i]), change->items.at[i].revision};
                vec_push(&b.guards, guard);
            }
        add_record(&b, c, note, &record);
        change->submitted = record.len;
        struct store_txn txn = {
            .guards = b.guards.at,
            .guards_len = b.guards.len,
            .ops = b.ops.at,
            .ops_len = b.ops.len - (PLANTED(COMMIT_HALF) && b.ops.len > 1),
            .record = {record.at, record.len}
        };
        rc = store_submit(c->store, &txn, done, ctx, err);
        if (rc == 0) {
            sealer_note(c->sealer, record.len);
            rc = 1;
        }
    }
    vec_done(&b.ops);
    vec_done(&b.guards);
    for (size_t i = 0; i < change->items.len; i++)
        change->items.at[i].text = NULL;
    arena_rewind(change->arena, mark); /* the store has copied the texts */
    return rc;
}
