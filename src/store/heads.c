/* heads.c - the index of present keys: guards, effects, undo. */
#include "store/heads.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/plant.h"

/* Undo memory that is kept between batches. Loading a store needs far more, but only once. */
enum { UNDO_KEPT_MAX = 1 << 14 };

static uint64_t key_hash(const char *key)
{
    return hash_bytes(key, strlen(key), 0);
}

static bool same_key(const void *ctx, uint32_t slot, const void *key)
{
    const struct heads *h = ctx;
    return strcmp(h->list.at[slot].key, key) == 0;
}

void heads_done(struct heads *h)
{
    for (size_t i = 0; i < h->list.len; i++)
        mem_free(h->list.at[i].key);
    vec_done(&h->list);
    vec_done(&h->unused);
    vec_done(&h->undo);
    map_done(&h->map);
}

/* Returns NULL if the key is absent. */
static const struct head *find(const struct heads *h, const char *key)
{
    uint32_t slot = map_find(&h->map, key_hash(key), same_key, h, key);
    return slot == MAP_NONE || h->list.at[slot].place == 0 ? NULL : &h->list.at[slot];
}

/* Returns the slot of a key, and creates it if needed. */
static uint32_t slot_of(struct heads *h, const char *key)
{
    uint64_t hash = key_hash(key);
    uint32_t slot = map_find(&h->map, hash, same_key, h, key);
    if (slot != MAP_NONE)
        return slot;
    if (h->unused.len) {
        slot = h->unused.at[--h->unused.len];
    } else {
        slot = (uint32_t)h->list.len;
        vec_push(&h->list, (struct head){0});
    }
    h->list.at[slot] = (struct head){.key = mem_strdup(key)};
    map_add(&h->map, hash, slot);
    return slot;
}

static void slot_drop(struct heads *h, uint32_t slot)
{
    struct head *head = &h->list.at[slot];
    map_drop(&h->map, key_hash(head->key), slot);
    mem_free(head->key);
    *head = (struct head){0};
    vec_push(&h->unused, slot);
}

static void slot_set(struct heads *h, uint32_t slot, uint64_t place, uint64_t created)
{
    struct head *head = &h->list.at[slot];
    vec_push(&h->undo, ((struct head_before){slot, head->place, head->created}));
    head->place = place;
    head->created = created;
}

void heads_keep(struct heads *h)
{
    /* A slot may be listed twice. It is dropped at its first entry, and has no key at the second. */
    for (size_t i = 0; i < h->undo.len; i++) {
        uint32_t slot = h->undo.at[i].slot;
        if (h->list.at[slot].key && h->list.at[slot].place == 0)
            slot_drop(h, slot);
    }
    h->undo.len = 0;
    if (h->undo.cap > UNDO_KEPT_MAX)
        vec_done(&h->undo);
}

void heads_undo(struct heads *h)
{
    for (size_t i = h->undo.len; i--;) {
        const struct head_before *before = &h->undo.at[i];
        h->list.at[before->slot].place = before->place;
        h->list.at[before->slot].created = before->created;
    }
    heads_keep(h); /* frees the slots of keys that were never created */
}

/* Returns the index of the first failed guard, or the number of guards. */
static size_t guards_first_failed(const struct heads *h, const struct store_txn *txn)
{
    size_t i = 0;
    for (; i < txn->guards_len; i++) {
        const struct head *head = find(h, txn->guards[i].key);
        if ((head ? place_revision(head->place) : 0) != txn->guards[i].revision)
            break;
    }
    return i;
}

bool heads_apply(struct heads *h, struct queued *q, uint64_t next)
{
    const struct store_txn *txn = &q->txn;
    size_t guard = guards_first_failed(h, txn), nth = 0;

    q->result = (struct store_result){.revision = next - 1};
    q->took_effect = false; /* an earlier attempt of the batch may have failed */
    for (size_t i = 0; i < txn->ops_len; i++)
        q->effects[i] = (struct effect){0};
    if (guard < txn->guards_len && !PLANTED(STORE_GUARDS)) {
        q->result.rc = -EAGAIN;
        q->result.guard = guard;
        return false;
    }
    for (size_t i = 0; i < txn->ops_len; i++) {
        const struct store_op *op = &txn->ops[i];
        if (op->gone && !find(h, op->key))
            continue;
        uint32_t slot = slot_of(h, op->key);
        const struct head *head = &h->list.at[slot];
        q->effects[i] = (struct effect){
            .place = place_of(next, nth++),
            .replaced = head->place,
            .created = head->place ? head->created : next,
        };
        slot_set(h, slot, op->gone ? 0 : q->effects[i].place, q->effects[i].created);
    }
    q->took_effect = nth > 0 || txn->record.len > 0;
    if (q->took_effect)
        q->result.revision = next;
    return q->took_effect;
}

const char *heads_load(struct heads *h, const struct history_row *change, uint64_t swept)
{
    const struct head *head = find(h, change->key);
    uint64_t revision = place_revision(change->place);
    const char *wrong = NULL;

    if (change->place <= swept) {
        /* The replaced row is deleted by now, and so is every deletion. */
        if (head || change->gone)
            wrong = "should have been deleted by a compaction";
        else if (change->created == 0 || change->created > revision)
            wrong = "has an invalid creation revision";
    } else {
        if (change->replaced != (head ? head->place : 0))
            wrong = "does not follow the previous change";
        else if (change->gone && !head)
            wrong = "deletes a key that does not exist";
        else if (change->created != (head ? head->created : revision))
            wrong = "has an invalid creation revision";
    }
    if (wrong)
        return wrong;
    slot_set(h, slot_of(h, change->key), change->gone ? 0 : change->place, change->created);
    return NULL;
}

/* ---- versions ---------------------------------------------------------------------------------------------------- */

void versions_init(struct versions *v)
{
    *v = (struct versions){0};
    arena_init(&v->arena);
}

void versions_done(struct versions *v)
{
    arena_done(&v->arena);
    vec_done(&v->list);
}

void versions_add(struct versions *v, const char *key, uint64_t place)
{
    vec_push(&v->list, ((struct version){arena_strdup(&v->arena, key), place}));
}

static int by_key(const void *a, const void *b)
{
    const struct version *left = a, *right = b;
    return strcmp(left->key, right->key);
}

void versions_sort(struct versions *v)
{
    if (v->list.len)
        qsort(v->list.at, v->list.len, sizeof *v->list.at, by_key);
}

void heads_collect(const struct heads *h, const char *prefix, uint64_t place, struct versions *to)
{
    for (size_t i = 0; i < h->list.len; i++) {
        const struct head *head = &h->list.at[i];
        if (head->place && head->place <= place && store_key_under(head->key, prefix))
            versions_add(to, head->key, head->place);
    }
}
