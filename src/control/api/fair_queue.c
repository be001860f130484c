#include "control/api/fair_queue.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/vec.h"

struct fair_account {
    uint32_t index; /* position in fair_queue.accounts */
    uint32_t joined;
    uint64_t hash;
    size_t heavy, waiting, bytes, committing;
    int64_t credit_ns;                 /* negative if the account has used more than its turns */
    struct fair_entry *first, **last;  /* waiting entries, oldest first */
    struct fair_account *next, **link; /* in the active list; link is NULL outside it */
    char name[];
};

struct fair_queue {
    /* accounts with waiting entries that are not held back; the next turn is the first account's */
    struct fair_account *active, **active_last;
    int64_t slice_ns;
    size_t waiting, accounts_len;
    bool hold_none;
    uint64_t seed;
    struct map map;
    VEC(struct fair_account *) accounts; /* NULL at unused positions */
    VEC(uint32_t) unused;                /* unused positions */
};

struct fair_queue *fair_queue_new(uint64_t seed)
{
    struct fair_queue *q = mem_zalloc(sizeof *q);
    q->seed = seed;
    q->slice_ns = FAIR_SLICE_NS;
    q->active_last = &q->active;
    return q;
}

void fair_queue_free(struct fair_queue *q)
{
    if (!q)
        return;
    assert(q->waiting == 0);
    for (size_t i = 0; i < q->accounts.len; i++) /* accounts of requests whose worker thread ended with berthd */
        mem_free(q->accounts.at[i]);
    map_done(&q->map);
    vec_done(&q->accounts);
    vec_done(&q->unused);
    mem_free(q);
}

/* ---- accounts --------------------------------------------------------------------------------------------------- */

static bool same_name(const void *ctx, uint32_t value, const void *key)
{
    const struct fair_queue *q = ctx;
    return strcmp(q->accounts.at[value]->name, key) == 0;
}

struct fair_account *fair_account_ref(struct fair_queue *q, const char *name)
{
    size_t len = strlen(name);
    uint64_t hash = hash_bytes(name, len, q->seed);
    uint32_t index = map_find(&q->map, hash, same_name, q, name);
    if (index == MAP_NONE) {
        struct fair_account *a = mem_zalloc(sizeof *a + len + 1);
        memcpy(a->name, name, len + 1);
        a->hash = hash;
        a->last = &a->first;
        if (q->unused.len) {
            index = q->unused.at[--q->unused.len];
        } else {
            index = (uint32_t)q->accounts.len;
            vec_push(&q->accounts, NULL);
        }
        a->index = index;
        q->accounts.at[index] = a;
        map_add(&q->map, hash, index);
        q->accounts_len++;
    }
    q->accounts.at[index]->joined++;
    return q->accounts.at[index];
}

void fair_account_ref_again(struct fair_account *a)
{
    a->joined++;
}

void fair_account_unref(struct fair_queue *q, struct fair_account *a)
{
    assert(a->joined > 0);
    if (--a->joined)
        return;
    assert(!a->first && !a->link && a->heavy == 0 && a->committing == 0);
    map_drop(&q->map, a->hash, a->index);
    q->accounts.at[a->index] = NULL;
    vec_push(&q->unused, a->index);
    q->accounts_len--;
    mem_free(a);
}

bool fair_account_begin_heavy(struct fair_account *a, size_t max)
{
    if (a->heavy >= max)
        return false;
    a->heavy++;
    return true;
}

void fair_account_end_heavy(struct fair_account *a)
{
    assert(a->heavy > 0);
    a->heavy--;
}

size_t fair_queue_accounts(const struct fair_queue *q)
{
    return q->accounts_len;
}

/* ---- turns ------------------------------------------------------------------------------------------------------ */

static void active_append(struct fair_queue *q, struct fair_account *a)
{
    a->next = NULL;
    a->link = q->active_last;
    *q->active_last = a;
    q->active_last = &a->next;
}

static void active_remove(struct fair_queue *q, struct fair_account *a)
{
    *a->link = a->next;
    if (a->next)
        a->next->link = a->link;
    else
        q->active_last = a->link;
    a->link = NULL;
}

static bool is_account_held(const struct fair_queue *q, const struct fair_account *a)
{
    return !q->hold_none && a->committing >= FAIR_COMMITTING_MAX;
}

/* Adds the account to the active list or removes it, according to its waiting entries and its uncommitted bytes. */
static void active_update(struct fair_queue *q, struct fair_account *a)
{
    bool takes_turns = a->first && !is_account_held(q, a);
    if (a->link && !takes_turns) {
        active_remove(q, a);
    } else if (!a->link && takes_turns) {
        a->credit_ns = (a->credit_ns < 0 ? a->credit_ns : 0) + FAIR_QUANTUM_NS; /* idle time earns no credit */
        active_append(q, a);
    }
}

void fair_account_commit_begin(struct fair_queue *q, struct fair_account *a, size_t bytes)
{
    a->committing += bytes;
    active_update(q, a);
}

void fair_account_commit_end(struct fair_queue *q, struct fair_account *a, size_t bytes)
{
    assert(a->committing >= bytes);
    a->committing -= bytes;
    active_update(q, a);
}

void fair_queue_hold_none(struct fair_queue *q)
{
    q->hold_none = true;
    for (size_t i = 0; i < q->accounts.len; i++)
        if (q->accounts.at[i])
            active_update(q, q->accounts.at[i]);
}

bool fair_queue_idle(const struct fair_queue *q, const struct fair_account *a)
{
    return !q->active && q->slice_ns > 0 && !is_account_held(q, a);
}

bool fair_queue_ready(const struct fair_queue *q)
{
    return q->active != NULL;
}

static void entry_put(struct fair_queue *q, struct fair_account *a, struct fair_entry *e, bool first)
{
    e->account = a;
    e->next = first ? a->first : NULL;
    if (first)
        a->first = e;
    else
        *a->last = e;
    if (!e->next)
        a->last = &e->next;
    a->waiting++;
    a->bytes += e->bytes;
    q->waiting++;
    active_update(q, a);
}

bool fair_queue_push(struct fair_queue *q, struct fair_account *a, struct fair_entry *e)
{
    if (a->waiting >= FAIR_WAITING_MAX || (a->waiting && a->bytes + e->bytes > FAIR_BYTES_MAX))
        return false;
    entry_put(q, a, e, false);
    return true;
}

void fair_queue_push_first(struct fair_queue *q, struct fair_account *a, struct fair_entry *e)
{
    entry_put(q, a, e, true);
}

/* Removes the entry that *link points to from its account. */
static struct fair_entry *entry_cut(struct fair_queue *q, struct fair_account *a, struct fair_entry **link)
{
    struct fair_entry *e = *link;
    *link = e->next;
    if (!e->next)
        a->last = link;
    active_update(q, a);
    q->waiting--;
    a->waiting--;
    a->bytes -= e->bytes;
    return e;
}

struct fair_entry *fair_queue_pop(struct fair_queue *q)
{
    struct fair_account *a = q->active;
    if (!a)
        return NULL;
    while (a->credit_ns <= 0) {
        a->credit_ns += FAIR_QUANTUM_NS;
        active_remove(q, a);
        active_append(q, a);
        a = q->active;
    }
    return entry_cut(q, a, &a->first);
}

void fair_queue_remove(struct fair_queue *q, struct fair_entry *e)
{
    struct fair_entry **link = &e->account->first;
    while (*link != e) {
        assert(*link);
        link = &(*link)->next;
    }
    (void)entry_cut(q, e->account, link);
}

void fair_queue_charge(struct fair_queue *q, struct fair_account *a, int64_t ns)
{
    q->slice_ns -= ns;
    a->credit_ns -= ns;
    if (a->credit_ns < -FAIR_DEBT_NS_MAX)
        a->credit_ns = -FAIR_DEBT_NS_MAX;
}

void fair_queue_renew(struct fair_queue *q)
{
    q->slice_ns = FAIR_SLICE_NS;
}

bool fair_queue_has_slice(const struct fair_queue *q)
{
    return q->slice_ns > 0;
}

size_t fair_queue_waiting(const struct fair_queue *q)
{
    return q->waiting;
}
