/* queued.c - queued transactions: one copy in one allocation. */
#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "store/store_impl.h"

void queued_push(struct txn_queue *q, struct queued *one)
{
    one->next = NULL;
    if (q->last)
        q->last->next = one;
    else
        q->first = one;
    q->last = one;
}

void queued_append(struct txn_queue *q, struct txn_queue *from)
{
    if (!from->first)
        return;
    if (q->last)
        q->last->next = from->first;
    else
        q->first = from->first;
    q->last = from->last;
    *from = (struct txn_queue){0};
}

struct queued *queued_pop(struct txn_queue *q)
{
    struct queued *one = q->first;
    if (!one)
        return NULL;
    q->first = one->next;
    if (!q->first)
        q->last = NULL;
    one->next = NULL;
    return one;
}

size_t store_txn_bytes(const struct store_txn *txn)
{
    size_t sum = txn->record.len;
    for (size_t i = 0; i < txn->guards_len; i++)
        sum += strlen(txn->guards[i].key) + 1;
    for (size_t i = 0; i < txn->ops_len; i++)
        sum += strlen(txn->ops[i].key) + 1 + (txn->ops[i].gone ? 0 : txn->ops[i].value.len);
    return sum;
}

static const void *put(char **room, const void *p, size_t len)
{
    char *at = *room;
    if (len)
        memcpy(at, p, len);
    *room += len;
    return at;
}

static const char *put_key(char **room, const char *key)
{
    return put(room, key, strlen(key) + 1);
}

struct queued *queued_new(const struct store_txn *txn, store_done *done, void *ctx)
{
    size_t bytes = store_txn_bytes(txn);
    /* The arrays contain words and pointers, so the end of each is aligned for the next. */
    size_t guards_size = txn->guards_len * sizeof(struct store_guard);
    size_t ops_size = txn->ops_len * sizeof(struct store_op);
    size_t effects_size = txn->ops_len * sizeof(struct effect);
    struct queued *q = mem_alloc(sizeof *q + guards_size + ops_size + effects_size + bytes);

    char *at = (char *)(q + 1);
    struct store_guard *guards = (struct store_guard *)at;
    struct store_op *ops = (struct store_op *)(at + guards_size);
    struct effect *effects = (struct effect *)(at + guards_size + ops_size);
    char *room = at + guards_size + ops_size + effects_size;

    for (size_t i = 0; i < txn->guards_len; i++)
        guards[i] = (struct store_guard){put_key(&room, txn->guards[i].key), txn->guards[i].revision};
    for (size_t i = 0; i < txn->ops_len; i++) {
        const struct store_op *op = &txn->ops[i];
        ops[i] = (struct store_op){.key = put_key(&room, op->key), .gone = op->gone};
        if (!op->gone)
            ops[i].value = (struct bytes){put(&room, op->value.at, op->value.len), op->value.len};
        effects[i] = (struct effect){0};
    }
    struct bytes record = {put(&room, txn->record.at, txn->record.len), txn->record.len};
    assert(room == at + guards_size + ops_size + effects_size + bytes);

    *q = (struct queued){
        .txn = {guards, txn->guards_len, ops, txn->ops_len, record},
        .effects = effects,
        .bytes = bytes,
        .done = done,
        .ctx = ctx,
    };
    return q;
}

void queued_free(struct queued *q)
{
    if (!q)
        return;
    mem_free(q->text);
    mem_free(q);
}

void queued_fail(struct queued *q, int code, const char *text)
{
    assert(code > 0);
    mem_free(q->text);
    q->text = mem_strdup(text);
    q->took_effect = false;
    q->result = (struct store_result){.rc = -code, .text = q->text};
}

uint64_t store_chain(uint64_t chain, uint64_t seq, uint64_t revision, struct bytes record)
{
    return hash_bytes(record.at, record.len, hash_pair(hash_pair(chain, seq), revision));
}
