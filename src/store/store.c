/* store.c - the generic part of a store: arguments, watches, delivery. */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "store/store_impl.h"

struct store_watch {
    struct store *store;
    char *prefix;
    uint64_t after; /* reports revisions above it */
    store_watched *watched;
    void *ctx;
    bool ended; /* reports nothing more; freed when no callback runs */
};

/* ---- arguments --------------------------------------------------------------------------------------------------- */

static bool is_key_char(char c)
{
    return c > ' ' && c <= '~';
}

bool store_key_valid(const char *key, size_t len)
{
    if (len == 0 || len > STORE_KEY_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_key_char(key[i]))
            return false;
    return true;
}

bool store_key_under(const char *key, const char *prefix)
{
    while (*prefix)
        if (*key++ != *prefix++)
            return false;
    return true;
}

static int key_check(const char *key, struct berth_err *err)
{
    size_t len = strnlen(key, STORE_KEY_MAX + 1);
    if (store_key_valid(key, len))
        return 0;
    if (len == 0)
        return err_set(err, EINVAL, "a key is empty");
    if (len > STORE_KEY_MAX)
        return err_set(err, EINVAL, "the key %.40s... is longer than %d bytes", key, STORE_KEY_MAX);
    return err_set(err, EINVAL, "the key \"%s\" has a character other than printable ASCII without spaces", key);
}

static int prefix_check(const char *prefix, struct berth_err *err)
{
    return *prefix ? key_check(prefix, err) : 0;
}

struct keys {
    const struct store_op *ops;
};

static bool same_key(const void *ctx, uint32_t value, const void *key)
{
    const struct keys *keys = ctx;
    return strcmp(keys->ops[value].key, key) == 0;
}

static int duplicates_check(const struct store_txn *txn, struct berth_err *err)
{
    struct keys keys = {txn->ops};
    struct map seen = {0};
    int rc = 0;

    for (size_t i = 0; i < txn->ops_len && txn->ops_len > 1 && rc == 0; i++) {
        const char *key = txn->ops[i].key;
        uint64_t hash = hash_bytes(key, strlen(key), 0);
        if (map_find(&seen, hash, same_key, &keys, key) != MAP_NONE)
            rc = err_set(err, EINVAL, "the key %s is changed twice in one transaction", key);
        else
            map_add(&seen, hash, (uint32_t)i);
    }
    map_done(&seen);
    return rc;
}

static int length_check(const char *of, const struct bytes *value, size_t max, struct berth_err *err)
{
    assert(value->at || value->len == 0);
    if (value->len > max)
        return err_set(err, EINVAL, "%s has %zu bytes; at most %zu are allowed", of, value->len, max);
    return 0;
}

static int txn_check(const struct store_txn *txn, size_t *ret_bytes, struct berth_err *err)
{
    if (txn->ops_len > STORE_OPS_MAX)
        return err_set(err, EINVAL, "a transaction changes %zu keys; at most %d are allowed", txn->ops_len,
                       STORE_OPS_MAX);
    if (txn->guards_len > STORE_GUARDS_MAX)
        return err_set(err, EINVAL, "a transaction depends on %zu keys; at most %d are allowed", txn->guards_len,
                       STORE_GUARDS_MAX);
    int rc = length_check("the record", &txn->record, STORE_RECORD_MAX, err);
    for (size_t i = 0; i < txn->guards_len && rc == 0; i++)
        rc = key_check(txn->guards[i].key, err);
    for (size_t i = 0; i < txn->ops_len && rc == 0; i++) {
        rc = key_check(txn->ops[i].key, err);
        if (rc == 0 && !txn->ops[i].gone)
            rc = length_check(txn->ops[i].key, &txn->ops[i].value, STORE_VALUE_MAX, err);
    }
    if (rc == 0)
        rc = duplicates_check(txn, err);
    if (rc < 0)
        return rc;
    size_t bytes = store_txn_bytes(txn);
    if (bytes > STORE_TXN_BYTES_MAX)
        return err_set(err, EINVAL, "a transaction has %zu bytes; at most %d are allowed", bytes, STORE_TXN_BYTES_MAX);
    *ret_bytes = bytes;
    return 0;
}

int store_error_compacted(uint64_t revision, uint64_t compacted, struct berth_err *err)
{
    return err_set(err, ESTALE,
                   "revision %" PRIu64 " is not available: history up to %" PRIu64
                   " was compacted; read the current state",
                   revision, compacted);
}

int store_error_future(uint64_t revision, uint64_t present, struct berth_err *err)
{
    return err_set(err, EINVAL, "revision %" PRIu64 " is in the future: the current revision is %" PRIu64, revision,
                   present);
}

int store_error_trimmed(uint64_t seq, uint64_t trimmed, struct berth_err *err)
{
    return err_set(err, ESTALE,
                   "record %" PRIu64 " is no longer in the log: the records up to %" PRIu64
                   " are in the journal's segments",
                   seq, trimmed);
}

/* ---- creation and end ------------------------------------------------------------------------------------------- */

void store_base_init(struct store *s, const struct store_ops *ops)
{
    *s = (struct store){.ops = ops};
}

static void watch_free(struct store_watch *w)
{
    mem_free(w->prefix);
    mem_free(w);
}

void store_base_done(struct store *s)
{
    for (size_t i = 0; i < s->watches.len; i++)
        watch_free(s->watches.at[i]);
    vec_done(&s->watches);
}

void store_close(struct store *s)
{
    if (!s)
        return;
    assert(s->callback_depth == 0);
    s->closing = true; /* prevents callbacks from submitting again for ever */
    store_drain(s);
    (void)store_pump(s);
    s->ops->close(s);
}

/* ---- callbacks -------------------------------------------------------------------------------------------------- */

static void callbacks_begin(struct store *s)
{
    s->callback_depth++;
}

static void callbacks_end(struct store *s)
{
    if (--s->callback_depth)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < s->watches.len; i++) {
        struct store_watch *w = s->watches.at[i];
        if (w->ended)
            watch_free(w);
        else
            s->watches.at[kept++] = w;
    }
    s->watches.len = kept;
}

static void event_report(struct store *s, const struct store_event *event)
{
    /* Uses index and length in each iteration, because a callback may add and end watches. */
    for (size_t i = 0; i < s->watches.len; i++) {
        struct store_watch *w = s->watches.at[i];
        if (!w->ended && event->revision > w->after && store_key_under(event->key, w->prefix))
            w->watched(w->ctx, event);
    }
}

void store_deliver(struct store *s, struct queued *q)
{
    callbacks_begin(s);
    if (q->took_effect) {
        assert(q->result.rc == 0 && q->result.revision > s->revision);
        s->revision = q->result.revision; /* first: a watch created by a callback gets this transaction from history */
        if (q->result.log_seq)
            s->log_seq = q->result.log_seq;
        for (size_t i = 0; i < q->txn.ops_len; i++) {
            const struct store_op *op = &q->txn.ops[i];
            const struct effect *effect = &q->effects[i];
            if (effect->place == 0)
                continue;
            struct store_event event = {
                .key = op->key,
                .value = op->value,
                .gone = op->gone,
                .created = effect->created,
                .revision = q->result.revision,
            };
            event_report(s, &event);
        }
    }
    if (!q->found && q->result.rc == 0)
        s->last_errno = 0;
    else if (!q->found && q->result.rc != -EAGAIN)
        s->last_errno = -q->result.rc;
    if (!q->found) {
        s->waiting--;
        s->waiting_bytes -= q->bytes;
    }
    if (q->done)
        q->done(q->ctx, &q->result);
    queued_free(q);
    callbacks_end(s);
}

/* ---- transactions ------------------------------------------------------------------------------------------------ */

int store_submit(struct store *s, const struct store_txn *txn, store_done *done, void *ctx, struct berth_err *err)
{
    size_t bytes = 0;
    if (s->closing)
        return err_set(err, ESHUTDOWN, "the store is being closed");
    int rc = txn_check(txn, &bytes, err);
    if (rc < 0)
        return rc;
    if (s->waiting >= STORE_QUEUE_MAX || bytes > STORE_QUEUE_BYTES_MAX - s->waiting_bytes)
        return err_set(err, ENOBUFS, "%zu transactions are already waiting for the store; try again later", s->waiting);
    rc = s->ops->submit(s, txn, done, ctx, err);
    if (rc < 0)
        return rc;
    s->waiting++;
    s->waiting_bytes += bytes;
    return 0;
}

int store_fd(const struct store *s)
{
    return s->ops->fd(s);
}

static size_t pump(struct store *s, bool wait)
{
    callbacks_begin(s);
    size_t n = s->ops->pump(s, wait);
    callbacks_end(s);
    return n;
}

size_t store_pump(struct store *s)
{
    /* Inside a callback, the current transaction is not finished, and later ones must wait for it. */
    return s->callback_depth ? 0 : pump(s, false);
}

void store_drain(struct store *s)
{
    assert(s->callback_depth == 0);
    while (s->waiting)
        (void)pump(s, true);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

uint64_t store_revision(const struct store *s)
{
    return s->revision;
}

uint64_t store_log_last(const struct store *s)
{
    return s->log_seq;
}

uint64_t store_log_trimmed(const struct store *s)
{
    return s->log_trimmed;
}

uint64_t store_compacted(const struct store *s)
{
    return s->ops->compacted(s);
}

int store_range(struct store *s, const char *prefix, uint64_t revision, store_visit *visit, void *ctx,
                struct berth_err *err)
{
    int rc = prefix_check(prefix, err);
    return rc < 0 ? rc : s->ops->range(s, prefix, revision, visit, ctx, err);
}

int store_history(struct store *s, const char *prefix, uint64_t from, uint64_t to, store_visit_event *visit, void *ctx,
                  struct berth_err *err)
{
    int rc = prefix_check(prefix, err);
    return rc < 0 ? rc : s->ops->history(s, prefix, from, to, visit, ctx, err);
}

int store_log(struct store *s, uint64_t from_seq, store_visit_record *visit, void *ctx, struct berth_err *err)
{
    return s->ops->log(s, from_seq, visit, ctx, err);
}

int store_log_concurrent(struct store *s, uint64_t from_seq, uint64_t to_seq, store_visit_record *visit, void *ctx,
                         struct berth_err *err)
{
    return s->ops->log_concurrent(s, from_seq, to_seq, visit, ctx, err);
}

int store_log_trim(struct store *s, uint64_t seq, struct berth_err *err)
{
    if (seq > s->log_seq)
        return err_set(err, EINVAL, "record %" PRIu64 " has not been written yet: the last one is %" PRIu64, seq,
                       s->log_seq);
    if (seq <= s->log_trimmed)
        return 0;
    int rc = s->ops->log_trim(s, seq, err);
    if (rc == 0)
        s->log_trimmed = seq;
    return rc;
}

int store_compact(struct store *s, uint64_t revision, struct berth_err *err)
{
    if (revision > s->revision)
        return store_error_future(revision, s->revision, err);
    return revision <= store_compacted(s) ? 0 : s->ops->compact(s, revision, err);
}

int store_backup(struct store *s, const char *path, struct berth_err *err)
{
    return s->ops->backup(s, path, err);
}

uint64_t store_size(const struct store *s)
{
    return s->ops->size(s);
}

/* ---- watches ----------------------------------------------------------------------------------------------------- */

/* Ends the visit of past events after the watch was ended by its callback. */
enum { WATCH_ENDED = 1 };

static int report_past_event(void *ctx, const struct store_event *event)
{
    struct store_watch *w = ctx;
    w->watched(w->ctx, event);
    return w->ended ? WATCH_ENDED : 0;
}

int store_watch(struct store *s, const char *prefix, uint64_t from, store_watched *watched, void *ctx,
                struct store_watch **ret, struct berth_err *err)
{
    int rc = prefix_check(prefix, err);
    if (rc < 0)
        return rc;

    struct store_watch *w = mem_zalloc(sizeof *w), *before = *ret;
    *w = (struct store_watch){s, mem_strdup(prefix), from, watched, ctx, false};
    *ret = w; /* set now, because the callback may end the watch during past events */
    callbacks_begin(s);
    vec_push(&s->watches, w);
    if (from < s->revision) {
        w->after = s->revision; /* store_pump reports later revisions; earlier ones are past events */
        rc = s->ops->history(s, prefix, from, s->revision, report_past_event, w, err);
    }
    if (rc < 0) {
        *ret = before;
        w->ended = true;
    } else if (w->ended) {
        *ret = NULL;
    }
    callbacks_end(s);
    return rc < 0 ? rc : 0;
}

void store_unwatch(struct store_watch *w)
{
    if (!w)
        return;
    struct store *s = w->store;
    callbacks_begin(s);
    w->ended = true;
    callbacks_end(s);
}

int store_last_errno(const struct store *s)
{
    return s->full ? ENOSPC : s->last_errno;
}
