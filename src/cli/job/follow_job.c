#include "cli/job/follow_job.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "cli/app/session.h"
#include "cli/show/poll.h"
#include "cli/show/status_line.h"
#include "net/client/client.h"
#include "wire/text/document.h"

/* Poll interval; delay between a Ctrl-C and the cancellation; limits of logs and tasks whose output is shown. */
enum {
    POLL_MS = 250,
    CANCEL_DELAY_MS = 2000,
    TAILS_MAX = 50,
    TASKS_MAX = 1000,
    LINE_BYTES_MAX = 256 * 1024,
    CODE_INTERRUPTED = 130,
};

static volatile sig_atomic_t interrupts;

static void on_interrupt(int signo)
{
    (void)signo;
    interrupts++;
}

struct job_follower;

/* The log reader of one instance, with its own thread. */
struct log_tail {
    struct job_follower *job_follower;
    struct api api;
    pthread_t thread;
    char label[64]; /* prefix of each line; "": none */
    enum color color;
    struct str path, line;
    atomic_bool over;
};

struct job_follower {
    struct api *api;
    struct object_target target;
    char id[ID_TEXT_MAX];
    unsigned what;
    struct object_poll object_poll;
    struct status_line line;
    pthread_mutex_t lock; /* serialises the terminal output */
    VEC(struct log_tail *) tails;
    VEC(json_int_t) seen;  /* instances whose logs are being read, or were */
    bool many, more, gone; /* more than one task; more logs than can be read; the output is closed */
    bool amid;             /* the last line of output is incomplete: the status line must not be drawn */
    bool cancelled, over;  /* cancelled by Ctrl-C; the job has ended and only its logs are awaited */
    int64_t cancel_at_ns;  /* when the first Ctrl-C cancels the job; 0: no Ctrl-C */
};

/* ---- logs ------------------------------------------------------------------------------------------------------- */

static void bytes_print(struct job_follower *f, const char *at, size_t len)
{
    FILE *out = f->api->cli->out;

    status_line_end(&f->line);
    f->gone |= fwrite(at, 1, len, out) != len || fflush(out) != 0;
    f->amid = len > 0 && at[len - 1] != '\n';
}

static void line_print(struct log_tail *t)
{
    struct job_follower *f = t->job_follower;
    const struct cli *cli = f->api->cli;
    CLEANUP(str) struct str text = {0};

    str_addf(&text, "%s[%s]%s ", cli_paint(cli, t->color), t->label, cli_paint(cli, COLOR_NONE));
    str_add_bytes(&text, str_text(&t->line), t->line.len);
    str_add_char(&text, '\n');
    pthread_mutex_lock(&f->lock);
    bytes_print(f, text.at, text.len);
    pthread_mutex_unlock(&f->lock);
    str_clear(&t->line);
}

static bool piece_print(void *ctx, const char *at, size_t len)
{
    struct log_tail *t = ctx;

    if (!t->label[0]) {
        pthread_mutex_lock(&t->job_follower->lock);
        bytes_print(t->job_follower, at, len);
        pthread_mutex_unlock(&t->job_follower->lock);
        return !t->job_follower->gone;
    }
    while (len > 0 && !t->job_follower->gone) {
        const char *end = memchr(at, '\n', len);
        size_t part = end ? (size_t)(end - at) : len;
        str_add_bytes(&t->line, at, part);
        if (end || t->line.len > LINE_BYTES_MAX)
            line_print(t);
        part += end != NULL;
        at += part;
        len -= part;
    }
    return !t->job_follower->gone;
}

/* Errors are not printed: the job's end reports them, and a log may already be deleted. */
static void *tail_main(void *ctx)
{
    struct log_tail *t = ctx;
    struct api_error trouble;

    (void)api_stream(&t->api, str_text(&t->path), piece_print, t, &trouble);
    if (t->line.len > 0)
        line_print(t);
    atomic_store(&t->over, true);
    return NULL;
}

static bool is_instance_seen(const struct job_follower *f, json_int_t instance)
{
    for (size_t i = 0; i < f->seen.len; i++)
        if (f->seen.at[i] == instance)
            return true;
    return false;
}

static void tail_free(struct log_tail *t)
{
    client_free(t->api.client);
    str_done(&t->path);
    str_done(&t->line);
    mem_free(t);
}

/* Joins the threads that have ended. */
static void tails_join(struct job_follower *f)
{
    size_t kept = 0;

    for (size_t i = 0; i < f->tails.len; i++) {
        struct log_tail *t = f->tails.at[i];
        if (!atomic_load(&t->over)) {
            f->tails.at[kept++] = t;
            continue;
        }
        (void)pthread_join(t->thread, NULL);
        tail_free(t);
    }
    f->tails.len = kept;
}

/* `last`: the instance has ended, and its log is read through the job. */
static void tail_start(struct job_follower *f, const json_t *instance, bool last)
{
    static const enum color colors[] = {COLOR_GREEN, COLOR_BLUE, COLOR_YELLOW, COLOR_RED, COLOR_BOLD};
    json_int_t id = json_integer_value(json_object_get(instance, last ? "instance" : "id"));
    json_int_t ordinal = json_integer_value(json_object_get(instance, "ordinal"));

    if (is_instance_seen(f, id))
        return;
    if (f->tails.len >= TAILS_MAX) {
        f->more = true;
        return;
    }
    struct log_tail *t = mem_zalloc(sizeof *t);
    t->job_follower = f;
    if (f->many) {
        (void)snprintf(t->label, sizeof t->label, "%.40s/%" JSON_INTEGER_FORMAT, f->id, ordinal);
        t->color = colors[(size_t)ordinal % (sizeof colors / sizeof *colors)];
    }
    if (last) {
        str_addf(&t->path, "/v1/jobs/%s/logs?ordinal=%" JSON_INTEGER_FORMAT, f->id, ordinal);
    } else { /* naming the node finds the log even if the instance has just ended */
        str_addf(&t->path, "/v1/instances/%" JSON_INTEGER_FORMAT "/logs?follow=true", id);
        query_add(&t->path, "node", json_string_value(json_object_get(instance, "node")));
    }
    if (api_clone(f->api, &t->api) != EXIT_OK || pthread_create(&t->thread, NULL, tail_main, t) != 0) {
        tail_free(t);
        return;
    }
    vec_push(&f->tails, t);
    vec_push(&f->seen, id);
}

static bool has_written(const char *state)
{
    return state && (strcmp(state, "running") == 0 || strcmp(state, "stopping") == 0 || strcmp(state, "ended") == 0);
}

static void tails_update(struct job_follower *f, const json_t *status)
{
    const json_t *one;
    size_t i;

    json_int_t tasks = json_integer_value(json_object_get(status, "replicas"));

    f->many |= tasks > 1;
    f->more = false;
    tails_join(f);
    if (tasks > TASKS_MAX) {
        if (f->seen.len == 0) {
            vec_push(&f->seen, 0);
            cli_warn(f->api->cli,
                     "%" JSON_INTEGER_FORMAT
                     " tasks are too many to follow; 'berth logs %s/N' shows the log of one task",
                     tasks, f->id);
        }
        return;
    }
    json_array_foreach(json_object_get(status, "instances"), i,
                       one) if (has_written(json_string_value(json_object_get(one, "state"))))
        tail_start(f, one, false);
    /* Instances that started and ended between two polls; for each task only the latest log is still available. */
    json_array_foreach(json_object_get(status, "last"), i, one)
    {
        bool newest = true;
        for (size_t k = 0; k < i; k++)
            newest &=
                json_integer_value(json_object_get(json_array_get(json_object_get(status, "last"), k), "ordinal")) !=
                json_integer_value(json_object_get(one, "ordinal"));
        if (newest)
            tail_start(f, one, true);
    }
}

/* ---- Ctrl-C ----------------------------------------------------------------------------------------------------- */

static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};

    interrupts = 0;
    sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
}

/* Exits at once; other threads may be running, so nothing is freed. */
__attribute__((noreturn)) static void exit_now(const struct job_follower *f)
{
    FILE *err = f->api->cli->err;

    (void)fprintf(err, "\r\033[Kjob/%s ", f->id);
    if (f->over)
        (void)fprintf(err, "has ended; 'berth logs %s' shows the rest of its log\n", f->id);
    else if (f->cancelled)
        (void)fprintf(err, "is being cancelled; 'berth logs -f %s' follows its log\n", f->id);
    else
        (void)fprintf(err, "keeps running; 'berth logs -f %s' follows its log, 'berth job cancel %s' cancels it\n",
                      f->id, f->id);
    (void)fflush(NULL);
    _exit(CODE_INTERRUPTED);
}

static void interrupts_handle(struct job_follower *f)
{
    struct object_act act = {.method = "POST", .sub = "cancel"};

    if (interrupts == (f->cancelled ? 1 : 0)) /* no new Ctrl-C; the first one has already cancelled the job */
        return;
    pthread_mutex_lock(&f->lock);
    status_line_end(&f->line);
    if (interrupts > 1 || !(f->what & FOLLOW_CANCEL))
        exit_now(f);
    if (!f->cancel_at_ns) {
        f->cancel_at_ns = cli_clock_ns() + CANCEL_DELAY_MS * INT64_C(1000000);
        (void)fprintf(f->api->cli->err, "\ncancelling job/%s; press Ctrl-C again to leave it running\n", f->id);
    }
    pthread_mutex_unlock(&f->lock);
    if (cli_clock_ns() < f->cancel_at_ns || f->object_poll.away)
        return;
    /* otherwise retried when the server is reachable */
    f->cancelled = object_do(f->api, &f->target, &act, NULL) != EXIT_UNREACHABLE;
}

/* ---- the job ---------------------------------------------------------------------------------------------------- */

static void job_follower_init(struct job_follower *f, struct api *a, const json_t *id, unsigned what)
{
    *f = (struct job_follower){.api = a, .what = what, .object_poll = {.answered = true}, .line = {.cli = a->cli}};
    (void)snprintf(f->id, sizeof f->id, "%" JSON_INTEGER_FORMAT, json_integer_value(id));
    if (json_is_string(id))
        (void)snprintf(f->id, sizeof f->id, "%s", json_string_value(id));
    f->target = (struct object_target){collection_find("job"), f->id};
    (void)pthread_mutex_init(&f->lock, NULL);
    catch_interrupts();
}

/* Returns the first nonzero exit code among the known ones. */
static int exit_code_find(const json_t *status)
{
    const json_t *one;
    size_t i;

    json_array_foreach(json_object_get(status, "last"), i, one)
    {
        json_int_t code = json_integer_value(json_object_get(one, "exit"));
        if (code > 0)
            return code < 256 ? (int)code : EXIT_FAILED;
    }
    return EXIT_FAILED;
}

static int outcome(const struct job_follower *f, const json_t *object)
{
    const json_t *status = json_object_get(object, "status");
    const char *word = status_word(status);
    const char *error = json_string_value(json_object_get(object, "error"));
    /* also true for a preempted job that was cancelled */
    bool cancelled = json_is_true(json_object_get(object, "cancelled"));

    if (f->cancelled && cancelled) {
        (void)fprintf(f->api->cli->err, "job/%s cancelled\n", f->id);
        return CODE_INTERRUPTED;
    }
    if (!cancelled && (strcmp(word, "succeeded") == 0 || strcmp(word, "ended") == 0))
        return EXIT_OK;
    if (cancelled)
        return cli_fail(f->api->cli, EXIT_FAILED, "job/%s was %s%s%s", f->id,
                        strcmp(word, "ended") == 0 ? "cancelled" : word, error ? ": " : "", error ? error : "");
    (void)cli_fail(f->api->cli, EXIT_FAILED, "job/%s %s%s%s", f->id, word, error ? ": " : "", error ? error : "");
    return exit_code_find(status);
}

static void poll_pause(void)
{
    (void)nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000}, NULL);
}

/* Waits for the log readers. A log may be long or its node unreachable, so Ctrl-C ends the wait. */
static void tails_wait(struct job_follower *f)
{
    sig_atomic_t known = f->cancel_at_ns ? 1 : 0; /* a Ctrl-C that cancelled the job has been handled */

    f->over = true;
    while (f->tails.len > 0) {
        struct timespec until;
        struct log_tail *t = f->tails.at[f->tails.len - 1];
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += POLL_MS * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_clockjoin_np(t->thread, NULL, CLOCK_MONOTONIC, &until) == 0) {
            tail_free(t);
            f->tails.len--;
        } else if (interrupts > known) {
            exit_now(f);
        }
    }
}

/* Warns that the server is unreachable: the job continues, but its output arrives through the server. */
static void outage_warn(struct job_follower *f)
{
    pthread_mutex_lock(&f->lock);
    status_line_end(&f->line);
    if (object_poll_warn(&f->object_poll, f->api) && f->what & FOLLOW_LOGS)
        cli_hint(f->api->cli, "The output below may be incomplete; 'berth logs %s' has the whole log.", f->id);
    pthread_mutex_unlock(&f->lock);
}

int job_follow(struct api *a, const json_t *id, unsigned what)
{
    struct job_follower f;
    int rc = EXIT_OK;

    for (job_follower_init(&f, a, id, what);;) {
        CLEANUP(json) json_t *object = NULL;
        rc = object_poll_get(&f.object_poll, a, &f.target, &object);
        if (rc != EXIT_OK)
            break;
        const json_t *status = json_object_get(object, "status");
        if (!object)
            outage_warn(&f);
        else if (what & FOLLOW_LOGS)
            tails_update(&f, status);
        if (status_is_final(status) && !f.more) {
            tails_wait(&f);
            status_line_end(&f.line);
            rc = outcome(&f, object);
            break;
        }
        pthread_mutex_lock(&f.lock);
        bool runs = json_integer_value(json_object_get(status, "running")) > 0;
        if (object && !f.cancel_at_ns && !f.amid &&
            (!runs || !(what & FOLLOW_LOGS) || (a->cli->progress && json_object_get(status, "progress"))))
            status_line_draw(&f.line, &f.target, status);
        pthread_mutex_unlock(&f.lock);
        if (f.gone)
            exit_now(&f);
        interrupts_handle(&f);
        poll_pause();
    }
    if (f.tails.len)
        exit_now(&f); /* the job can no longer be polled, but its log readers may still run */
    vec_done(&f.tails);
    vec_done(&f.seen);
    (void)pthread_mutex_destroy(&f.lock);
    (void)signal(SIGINT, SIG_DFL);
    return rc;
}

int job_wait_running(struct api *a, const json_t *id, json_int_t *ret_instance)
{
    struct job_follower f;
    int rc = EXIT_OK;

    for (job_follower_init(&f, a, id, FOLLOW_CANCEL); rc == EXIT_OK; poll_pause()) {
        CLEANUP(json) json_t *object = NULL;
        rc = object_poll_get(&f.object_poll, a, &f.target, &object);
        const json_t *status = json_object_get(object, "status"), *one;
        size_t i;
        if (rc == EXIT_OK && status_is_final(status)) {
            status_line_end(&f.line);
            rc = outcome(&f, object);
            rc = rc == EXIT_OK ? EXIT_FAILED : rc;
            break;
        }
        *ret_instance = 0;
        json_array_foreach(json_object_get(status, "instances"), i,
                           one) if (strcmp(json_string_value(json_object_get(one, "state")), "running") ==
                                    0) *ret_instance = json_integer_value(json_object_get(one, "id"));
        if (rc != EXIT_OK || *ret_instance)
            break;
        if (!object)
            outage_warn(&f);
        else if (!f.cancel_at_ns)
            status_line_draw(&f.line, &f.target, status);
        interrupts_handle(&f);
    }
    status_line_end(&f.line);
    (void)signal(SIGINT, SIG_DFL);
    return rc;
}
