/* memory.c - a store in memory, for tests and the simulator.
 *
 * The history is a list of changes in order of places; struct heads indexes the present keys. Transactions are executed
 * when they are pumped, and each is delivered before the next one is executed. Copies share values and records, so a
 * simulator can crash a large store often. Reference counts are not atomic: a store and its copies must be used on one
 * thread.
 */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/plant.h"
#include "store/heads.h"

struct memory_version {
    unsigned refs;
    struct history_row change;
    size_t value_len;
    unsigned char data[]; /* the value, then the key with its NUL */
};

struct memory_record {
    unsigned refs;
    struct store_record record;
    unsigned char data[];
};

struct memory_store {
    struct store base;
    struct heads heads;
    VEC(struct memory_version *) changes; /* ordered by place */
    VEC(struct memory_record *) log;      /* from the first record that is not trimmed */
    uint64_t log_chain;                   /* after the last record */
    uint64_t revision;                    /* equals base.revision, except while a transaction is delivered */
    uint64_t compacted;
    uint64_t bytes;
    struct txn_queue waiting;
    int fail_code;
    size_t fail_next;
};

static struct memory_store *memory_of(struct store *s)
{
    return (struct memory_store *)s;
}

static const struct memory_store *memory_of_const(const struct store *s)
{
    return (const struct memory_store *)s;
}

static uint64_t kept_size(const struct memory_version *kept)
{
    return sizeof *kept + kept->value_len + strlen(kept->change.key) + 1;
}

static void kept_unref(struct memory_version *kept)
{
    if (--kept->refs == 0)
        mem_free(kept);
}

static void record_unref(struct memory_record *record)
{
    if (--record->refs == 0)
        mem_free(record);
}

static void memory_close(struct store *s)
{
    struct memory_store *m = memory_of(s);
    assert(!m->waiting.first);
    for (size_t i = 0; i < m->changes.len; i++)
        kept_unref(m->changes.at[i]);
    for (size_t i = 0; i < m->log.len; i++)
        record_unref(m->log.at[i]);
    vec_done(&m->changes);
    vec_done(&m->log);
    heads_done(&m->heads);
    store_base_done(&m->base);
    mem_free(m);
}

/* ---- transactions ------------------------------------------------------------------------------------------------ */

static int memory_submit(struct store *s, const struct store_txn *txn, store_done *done, void *ctx,
                         struct berth_err *err)
{
    (void)err;
    queued_push(&memory_of(s)->waiting, queued_new(txn, done, ctx));
    return 0;
}

static void change_add(struct memory_store *m, const struct store_op *op, const struct effect *effect)
{
    size_t key_len = strlen(op->key) + 1;
    struct memory_version *kept = mem_alloc(sizeof *kept + op->value.len + key_len);
    *kept = (struct memory_version){
        .refs = 1,
        .change = {.place = effect->place,
                   .replaced = effect->replaced,
                   .created = effect->created,
                   .key = (char *)kept->data + op->value.len,
                   .gone = op->gone},
        .value_len = op->value.len,
    };
    if (op->value.len)
        memcpy(kept->data, op->value.at, op->value.len);
    memcpy(kept->data + op->value.len, op->key, key_len);
    m->bytes += kept_size(kept);
    vec_push(&m->changes, kept);
}

static uint64_t record_add(struct memory_store *m, struct bytes record, uint64_t revision)
{
    uint64_t seq = m->base.log_trimmed + m->log.len + 1;
    m->log_chain = store_chain(m->log_chain, seq, revision, record);
    struct memory_record *kept = mem_alloc(sizeof *kept + record.len);
    *kept = (struct memory_record){
        .refs = 1,
        .record = {seq, revision, m->log_chain, {kept->data, record.len}},
    };
    memcpy(kept->data, record.at, record.len);
    m->bytes += sizeof *kept + record.len;
    vec_push(&m->log, kept);
    return seq;
}

static void execute(struct memory_store *m, struct queued *q)
{
    if (m->fail_next) {
        m->fail_next--;
        if (PLANTED(STORE_LIES)) {
            q->result = (struct store_result){.revision = m->revision};
            return;
        }
        queued_fail(q, m->fail_code, "the store was set to fail");
        return;
    }
    if (!heads_apply(&m->heads, q, m->revision + 1))
        return;
    heads_keep(&m->heads);
    m->revision++;
    for (size_t i = 0; i < q->txn.ops_len; i++)
        if (q->effects[i].place)
            change_add(m, &q->txn.ops[i], &q->effects[i]);
    if (q->txn.record.len)
        q->result.log_seq = record_add(m, q->txn.record, m->revision);
}

static size_t memory_pump(struct store *s, bool wait)
{
    struct memory_store *m = memory_of(s);
    struct txn_queue now = m->waiting; /* transactions submitted by callbacks wait for the next pump */
    struct queued *q;
    size_t n = 0;

    (void)wait;
    m->waiting = (struct txn_queue){0};
    for (; (q = queued_pop(&now)); n++) {
        execute(m, q);
        store_deliver(s, q);
    }
    return n;
}

static int memory_fd(const struct store *s)
{
    (void)s;
    return -1;
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

/* Returns the index of the first change at this place or later. */
static size_t change_from(const struct memory_store *m, uint64_t place)
{
    size_t low = 0, high = m->changes.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (m->changes.at[mid]->change.place < place)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct memory_version *change_at(const struct memory_store *m, uint64_t place)
{
    size_t i = change_from(m, place);
    assert(i < m->changes.len && m->changes.at[i]->change.place == place);
    return m->changes.at[i];
}

static uint64_t memory_compacted(const struct store *s)
{
    return memory_of_const(s)->compacted;
}

static int memory_range(struct store *s, const char *prefix, uint64_t revision, store_visit *visit, void *ctx,
                        struct berth_err *err)
{
    struct memory_store *m = memory_of(s);
    if (revision == 0)
        revision = m->revision;
    if (revision < m->compacted)
        return store_error_compacted(revision, m->compacted, err);
    if (revision > m->revision)
        return store_error_future(revision, m->revision, err);

    CLEANUP(versions) struct versions found;
    versions_init(&found);
    uint64_t after = place_of(revision + 1, 0);
    heads_collect(&m->heads, prefix, after - 1, &found);
    for (size_t i = change_from(m, after); i < m->changes.len; i++) {
        const struct history_row *later = &m->changes.at[i]->change;
        if (later->replaced && later->replaced < after && store_key_under(later->key, prefix))
            versions_add(&found, later->key, later->replaced);
    }
    versions_sort(&found);
    /* The visitor may compact; unvisited values must stay. */
    VEC(struct memory_version *) held = {0};
    for (size_t i = 0; i < found.list.len; i++) {
        struct memory_version *kept = change_at(m, found.list.at[i].place);
        kept->refs++;
        vec_push(&held, kept);
    }
    int rc = 0;
    for (size_t i = 0; i < held.len && rc == 0; i++) {
        const struct memory_version *kept = held.at[i];
        struct store_entry entry = {
            kept->change.key, {kept->data, kept->value_len},
             kept->change.created, place_revision(kept->change.place)
        };
        rc = visit(ctx, &entry);
    }
    for (size_t i = 0; i < held.len; i++)
        kept_unref(held.at[i]);
    vec_done(&held);
    return rc;
}

static int memory_history(struct store *s, const char *prefix, uint64_t from, uint64_t to, store_visit_event *visit,
                          void *ctx, struct berth_err *err)
{
    struct memory_store *m = memory_of(s);
    if (from < m->compacted)
        return store_error_compacted(from, m->compacted, err);
    if (to == 0 || to > m->revision)
        to = m->revision;

    int rc = 0;
    uint64_t place = from < to ? place_of(from + 1, 0) : place_of(to + 1, 0);
    while (rc == 0) {
        /* Searched again at each step, because the visitor may compact. */
        size_t i = change_from(m, place);
        if (i == m->changes.len || place_revision(m->changes.at[i]->change.place) > to)
            break;
        struct memory_version *kept = m->changes.at[i];
        place = kept->change.place + 1;
        if (!store_key_under(kept->change.key, prefix))
            continue;
        struct memory_version *before = kept->change.replaced ? change_at(m, kept->change.replaced) : NULL;
        kept->refs++;
        struct store_event event = {
            .key = kept->change.key,
            .value = {kept->data, kept->value_len},
            .gone = kept->change.gone,
            .created = kept->change.created,
            .revision = place_revision(kept->change.place)
        };
        if (before) {
            before->refs++;
            event.replaced = (struct bytes){before->data, before->value_len};
        }
        rc = visit(ctx, &event);
        kept_unref(kept);
        if (before)
            kept_unref(before);
    }
    return rc;
}

static int memory_log_concurrent(struct store *s, uint64_t from_seq, uint64_t to_seq, store_visit_record *visit,
                                 void *ctx, struct berth_err *err)
{
    const struct memory_store *m = memory_of(s);
    uint64_t seq = from_seq ? from_seq : s->log_trimmed + 1;
    int rc = seq <= s->log_trimmed ? store_error_trimmed(seq, s->log_trimmed, err) : 0;

    /* Searched again at each step, because the visitor may trim. */
    for (; rc == 0 && seq <= to_seq && seq > s->log_trimmed && seq - s->log_trimmed <= m->log.len; seq++) {
        struct memory_record *kept = m->log.at[seq - s->log_trimmed - 1];
        kept->refs++;
        rc = visit(ctx, &kept->record);
        record_unref(kept);
    }
    return rc;
}

static int memory_log(struct store *s, uint64_t from_seq, store_visit_record *visit, void *ctx, struct berth_err *err)
{
    return memory_log_concurrent(s, from_seq, UINT64_MAX, visit, ctx, err);
}

static int memory_log_trim(struct store *s, uint64_t seq, struct berth_err *err)
{
    struct memory_store *m = memory_of(s);
    size_t gone = (size_t)(seq - s->log_trimmed);

    (void)err;
    for (size_t i = 0; i < gone; i++) {
        m->bytes -= sizeof *m->log.at[i] + m->log.at[i]->record.record.len;
        record_unref(m->log.at[i]);
    }
    m->log.len -= gone;
    memmove(m->log.at, m->log.at + gone, m->log.len * sizeof *m->log.at);
    return 0;
}

/* ---- other operations ------------------------------------------------------------------------------------------- */

static int memory_compact(struct store *s, uint64_t revision, struct berth_err *err)
{
    struct memory_store *m = memory_of(s);
    size_t end = change_from(m, place_of(revision + 1, 0)), kept = 0;

    (void)err;
    m->compacted = revision;
    /* The value that a change replaced belongs to history; a deletion does, too. */
    CLEANUP(mem) bool *drop = mem_zarray(m->changes.len + 1, sizeof *drop);
    for (size_t i = 0; i < end; i++) {
        const struct history_row *change = &m->changes.at[i]->change;
        size_t replaced = change_from(m, change->replaced);
        if (m->changes.at[replaced]->change.place == change->replaced)
            drop[replaced] = true;
        if (change->gone)
            drop[i] = true;
    }
    for (size_t i = 0; i < m->changes.len; i++) {
        struct memory_version *change = m->changes.at[i];
        if (drop[i]) {
            m->bytes -= kept_size(change);
            kept_unref(change);
        } else {
            m->changes.at[kept++] = change;
        }
    }
    m->changes.len = kept;
    return 0;
}

static int memory_backup(struct store *s, const char *path, struct berth_err *err)
{
    (void)s;
    return err_set(err, ENOTSUP, "%s: an in-memory store cannot be backed up to a file", path);
}

static uint64_t memory_size(const struct store *s)
{
    return memory_of_const(s)->bytes;
}

static const struct store_ops memory_ops = {
    .close = memory_close,
    .submit = memory_submit,
    .fd = memory_fd,
    .pump = memory_pump,
    .compacted = memory_compacted,
    .range = memory_range,
    .history = memory_history,
    .log = memory_log,
    .log_concurrent = memory_log_concurrent,
    .log_trim = memory_log_trim,
    .compact = memory_compact,
    .backup = memory_backup,
    .size = memory_size,
};

static struct memory_store *memory_new(void)
{
    struct memory_store *m = mem_zalloc(sizeof *m);
    store_base_init(&m->base, &memory_ops);
    return m;
}

struct store *store_memory_new(void)
{
    return &memory_new()->base;
}

struct store *store_memory_crash(const struct store *memory)
{
    const struct memory_store *from = memory_of_const(memory);
    struct memory_store *m = memory_new();

    m->revision = m->base.revision = from->revision;
    m->base.log_seq = from->base.log_trimmed + from->log.len;
    m->base.log_trimmed = from->base.log_trimmed;
    m->log_chain = from->log_chain;
    m->compacted = from->compacted;
    m->bytes = from->bytes;
    for (size_t i = 0; i < from->changes.len; i++) {
        struct memory_version *kept = from->changes.at[i];
        const char *wrong = heads_load(&m->heads, &kept->change, place_of(from->compacted + 1, 0) - 1);
        assert(!wrong);
        (void)wrong;
        kept->refs++;
        vec_push(&m->changes, kept);
    }
    heads_keep(&m->heads);
    for (size_t i = 0; i < from->log.len; i++) {
        from->log.at[i]->refs++;
        vec_push(&m->log, from->log.at[i]);
    }
    return &m->base;
}

void store_memory_fail(struct store *memory, int code, size_t n)
{
    assert(memory->ops == &memory_ops && code > 0);
    memory_of(memory)->fail_code = code;
    memory_of(memory)->fail_next = n;
}
