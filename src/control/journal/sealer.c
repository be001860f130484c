#include "control/journal/sealer.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "control/control_parts.h"
#include "control/system/settings_table.h"
#include "journal/seal.h"
#include "journal/shelf.h"

enum { SECOND = 1000000000, RETRY_S = 60, BYTES_GUESSED = 1024 };
#define MIB (UINT64_C(1) << 20)

/* The task of the worker, which owns it while it runs. */
struct sealer_task {
    struct seal_options options;
    struct shelf_retention retention;
    char *exported;
    bool all;
    uint64_t noted;                         /* value of sealer.bytes at the start */
    uint64_t last, segments, records_bytes; /* result */
    size_t moved;
    int rc, export_rc;
    struct berth_err err, export_err;
    int64_t cpu_ns;
};

struct sealer {
    struct control *control;
    char *dir;
    bool running, now;
    struct sealer_task job;
    uint64_t sealed;                      /* last record that is in a segment */
    uint64_t bytes;                       /* of records since then, an upper estimate: some are never committed */
    int64_t sealed_ns;                    /* time of the last sealing */
    int64_t not_before_ns;                /* steady clock: earliest next attempt */
    struct docset anchor;                 /* documents to start from if segments are missing */
    uint64_t anchor_revision, anchor_seq; /* revision and record of `anchor` */
    bool anchored;                        /* `anchor` is set */
};

static bool keeps_document(const char *key)
{
    const char *id;
    return kind_journalled(object_key_split(key, &id));
}

/* Segments and the beginning of the log are lost: new segments start from the present documents. */
static void anchor_make(struct sealer *s)
{
    const struct state *state = s->control->state;
    for (unsigned k = 0; k < KINDS; k++) {
        size_t len;
        const struct object *const *list = state_list(state, (enum kind)k, &len);
        for (size_t i = 0; kind_journalled((enum kind)k) && i < len; i++) {
            char key[OBJECT_KEY_MAX];
            docset_put(&s->anchor, object_key((enum kind)k, list[i]->id, key), list[i]->revision, list[i]->doc);
        }
    }
    docset_sort(&s->anchor);
    s->anchor_revision = store_revision(s->control->store);
    s->anchor_seq = store_log_last(s->control->store);
    s->anchored = s->now = true;
}

struct sealer *sealer_new(struct control *c, const char *dir)
{
    struct seal_status standing = {0};
    struct berth_err err;
    if (!dir)
        return NULL;
    struct sealer *s = mem_zalloc(sizeof *s);
    s->control = c;
    s->dir = mem_strdup(dir);
    if (seal_status_read(dir, &standing, &err) < 0)
        log_write(c->env.log, c->now_ns, LEVEL_WARN, "journal.failed", LOG_TEXT("text", err.text));
    uint64_t last = store_log_last(c->store);
    s->sealed = standing.last;
    s->sealed_ns = standing.to_ns ? standing.to_ns : c->now_ns;
    s->bytes = last > s->sealed ? (last - s->sealed) * BYTES_GUESSED : 0;
    if (!standing.rooted && store_log_trimmed(c->store) > 0)
        anchor_make(s);
    return s;
}

static void job_done(struct sealer_task *job)
{
    mem_free(job->exported);
    *job = (struct sealer_task){0};
}

void sealer_free(struct sealer *s)
{
    if (!s)
        return;
    job_done(&s->job);
    docset_done(&s->anchor);
    mem_free(s->dir);
    mem_free(s);
}

void sealer_note(struct sealer *s, size_t bytes)
{
    if (s)
        s->bytes += bytes;
}

void sealer_seal_all(struct sealer *s)
{
    if (s)
        s->now = true;
}

static int64_t cpu_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * SECOND + t.tv_nsec;
}

/* Runs on a worker thread. */
static void work(void *ctx)
{
    struct sealer_task *job = &((struct sealer *)ctx)->job;
    int64_t start_ns = cpu_ns();
    struct segment made;
    do {
        job->rc = seal_next(&job->options, &made, &job->err);
        if (job->rc == 1) {
            job->last = made.last;
            job->records_bytes += made.record_bytes;
            job->segments++;
        }
    } while (job->rc == 1 && job->all);
    job->export_rc = shelf_retain(&job->retention, &job->moved, &job->export_err);
    job->cpu_ns = cpu_ns() - start_ns;
}

/* Reduces the byte count. At the end of the log nothing remains of what was counted before, including estimates and
 * failed records: otherwise the count would stay above its bound, and each step would make a nearly empty segment. */
static void count_down(struct sealer *s)
{
    const struct sealer_task *job = &s->job;
    bool end = !s->anchored && (job->rc == 0 || (job->rc > 0 && job->last >= job->options.upto));
    uint64_t done = end ? job->noted : job->records_bytes;
    s->bytes -= done < s->bytes ? done : s->bytes;
}

static void on_seal_done(void *ctx)
{
    struct sealer *s = ctx;
    struct control *c = s->control;
    struct sealer_task *job = &s->job;
    struct berth_err err;
    s->running = false;
    metric_add(c->metrics, METRIC_JOURNAL_SEGMENTS, 0, job->segments);
    metric_observe(c->metrics, METRIC_JOURNAL_SECONDS, job->cpu_ns);
    count_down(s);
    if (job->segments) {
        s->sealed = job->last;
        s->sealed_ns = c->now_ns;
        uint64_t last = store_log_last(c->store), keep = last > SEALER_KEEP ? last - SEALER_KEEP : 0;
        if (keep > s->sealed)
            keep = s->sealed;
        if (store_log_trim(c->store, keep, &err) < 0)
            log_write(c->env.log, c->now_ns, LEVEL_WARN, "journal.trim.failed", LOG_TEXT("text", err.text));
    }
    if (job->rc < 0) {
        log_write(c->env.log, c->now_ns, LEVEL_WARN, "journal.failed", LOG_TEXT("text", job->err.text));
        s->not_before_ns = c->env.steady_ns(c->env.ctx) + RETRY_S * (int64_t)SECOND;
        s->now = s->now || s->anchored;
    } else if (job->all) {
        docset_done(&s->anchor);
        s->anchored = false;
    }
    if (job->export_rc < 0)
        log_write(c->env.log, c->now_ns, LEVEL_WARN, "journal.export.failed", LOG_TEXT("text", job->export_err.text));
    else if (job->moved)
        log_write(c->env.log, c->now_ns, LEVEL_INFO, "journal.exported", LOG_NUMBER("segments", (int64_t)job->moved),
                  LOG_TEXT("to", job->retention.exported));
    job_done(job);
}

static void begin(struct sealer *s, uint64_t bytes_max, bool all)
{
    struct control *c = s->control;
    struct arena arena;
    struct str exported = {0};
    arena_init(&arena);
    const char *to = system_setting_text(c->state, SETTING_JOURNAL_EXPORT, &arena);
    if (*to)
        str_add(&exported, to);
    else
        str_addf(&exported, "%s/" SHELF_EXPORTED, s->dir);
    arena_done(&arena);
    s->running = true;
    s->now = false;
    s->job = (struct sealer_task){
        .all = all,
        .noted = s->bytes,
        .exported = str_take(&exported),
        .options = {.store = c->store,
                    .dir = s->dir,
                    .trimmed = store_log_trimmed(c->store),
                    .upto = s->anchored ? s->anchor_seq : store_log_last(c->store),
                    .bytes_max = bytes_max,
                    .keeps = keeps_document,
                    .anchor = s->anchored ? &s->anchor : NULL,
                    .anchor_revision = s->anchor_revision},
    };
    s->job.retention = (struct shelf_retention){
        .dir = s->dir,
        .exported = s->job.exported,
        .before_ns = c->now_ns - system_setting_number(c->state, SETTING_JOURNAL_KEEP_S) * SECOND,
        .bytes_max = (uint64_t)system_setting_number(c->state, SETTING_JOURNAL_KEEP_MB) * MIB};
    (c->env.run_slow ? c->env.run_slow : c->env.run)(c->env.ctx, work, on_seal_done, s);
}

void sealer_step(struct sealer *s, int64_t steady_ns)
{
    if (!s || s->running || steady_ns < s->not_before_ns)
        return;
    const struct control *c = s->control;
    uint64_t bytes_max = (uint64_t)system_setting_number(c->state, SETTING_JOURNAL_SEGMENT_MB) * MIB;
    int64_t age_ns = system_setting_number(c->state, SETTING_JOURNAL_SEGMENT_S) * SECOND;
    bool old = c->now_ns - s->sealed_ns >= age_ns && store_log_last(c->store) > s->sealed;
    if (s->now || old || s->bytes >= bytes_max)
        begin(s, bytes_max, s->now || old);
}
