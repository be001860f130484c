#include "kube/journal/journal_seal.h"

#include "base/mem.h"
#include "base/str.h"
#include "journal/seal.h"
#include "journal/shelf.h"
#include "kube/client/clock.h"
#include "net/loop.h"

#define SECOND_NS INT64_C(1000000000)
#define AGE_NS (24 * 3600 * SECOND_NS) /* maximum age of the oldest unsealed record */
#define RETRY_NS (60 * SECOND_NS)
enum { BYTES_GUESSED = 1024 };

struct kube_sealer {
    struct kube_sealer_config c;
    char *dir;
    struct worker *worker;
    bool running;
    uint64_t bytes;    /* of unsealed records */
    int64_t sealed_ns; /* time of the last segment */
    int64_t not_before_ns;
    uint64_t segments;
    /* Used by the worker while it runs. */
    struct seal_options options;
    struct shelf_retention retention;
    struct segment made;
    size_t moved;
    int rc, retain_rc;
    struct berth_err err, retain_err;
};

/* No documents of the store are kept in segments: a base consists of records (kube/journal/journal.h). */
static bool keeps_document(const char *key)
{
    (void)key;
    return false;
}

struct kube_sealer *kube_sealer_new(const struct kube_sealer_config *config)
{
    struct kube_sealer *s = mem_zalloc(sizeof *s);
    struct seal_status standing = {0};
    CLEANUP(str) struct str dir = {0};
    struct berth_err err = {0};
    str_addf(&dir, "%s/" SHELF_FOLDER, config->dir);
    s->c = *config;
    s->dir = str_take(&dir);
    s->worker = worker_new(config->loop);
    if (seal_status_read(s->dir, &standing, &err) < 0)
        log_write(s->c.log, kube_wall_ns(), LEVEL_WARN, "journal.seal.failed", LOG_TEXT("text", err.text));
    uint64_t last = store_log_last(config->store);
    s->bytes = last > standing.last ? (last - standing.last) * BYTES_GUESSED : 0;
    s->sealed_ns = standing.to_ns ? standing.to_ns : kube_wall_ns();
    return s;
}

void kube_sealer_free(struct kube_sealer *s)
{
    if (!s)
        return;
    worker_free(s->worker);
    mem_free(s->dir);
    mem_free(s);
}

void kube_sealer_note(struct kube_sealer *s, size_t bytes)
{
    if (s)
        s->bytes += bytes;
}

uint64_t kube_sealer_segments(const struct kube_sealer *s)
{
    return s ? s->segments : 0;
}

/* Runs on the worker. */
static void work(void *ctx)
{
    struct kube_sealer *s = ctx;
    s->rc = seal_next(&s->options, &s->made, &s->err);
    s->retain_rc = shelf_retain(&s->retention, &s->moved, &s->retain_err);
}

static void on_seal_done(void *ctx)
{
    struct kube_sealer *s = ctx;
    struct berth_err err = {0};
    int64_t now_ns = kube_wall_ns();
    s->running = false;
    if (s->rc == 1) {
        s->segments++;
        s->bytes = s->bytes > s->made.record_bytes ? s->bytes - s->made.record_bytes : 0;
        s->sealed_ns = now_ns;
        if (store_log_trim(s->c.store, s->made.last, &err) < 0)
            log_write(s->c.log, now_ns, LEVEL_WARN, "journal.trim.failed", LOG_TEXT("text", err.text));
    } else if (s->rc == 0) {
        s->bytes = 0;
        s->sealed_ns = now_ns;
    }
    if (s->rc < 0) {
        s->not_before_ns = now_ns + RETRY_NS;
        log_write(s->c.log, now_ns, LEVEL_WARN, "journal.seal.failed", LOG_TEXT("text", s->err.text));
    }
    if (s->retain_rc < 0)
        log_write(s->c.log, now_ns, LEVEL_WARN, "journal.export.failed", LOG_TEXT("text", s->retain_err.text));
    else if (s->moved)
        log_write(s->c.log, now_ns, LEVEL_INFO, s->c.export_dir ? "journal.exported" : "journal.removed",
                  LOG_NUMBER("segments", (int64_t)s->moved));
}

void kube_sealer_step(struct kube_sealer *s, int64_t now_ns)
{
    if (!s || s->running || now_ns < s->not_before_ns)
        return;
    if (s->bytes < s->c.segment_bytes && (s->bytes == 0 || now_ns - s->sealed_ns < AGE_NS))
        return;
    s->running = true;
    s->options = (struct seal_options){.store = s->c.store,
                                       .dir = s->dir,
                                       .trimmed = store_log_trimmed(s->c.store),
                                       .upto = store_log_last(s->c.store),
                                       .bytes_max = s->c.segment_bytes,
                                       .keeps = keeps_document};
    s->retention = (struct shelf_retention){
        .dir = s->dir, .exported = s->c.export_dir, .before_ns = now_ns - s->c.keep_ns, .bytes_max = s->c.keep_bytes};
    worker_run(s->worker, work, on_seal_done, s);
}
