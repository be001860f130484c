#include "agent/optask/optask.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/optask/optask_parts.h"
#include "machine/launch/state_file.h"

enum { AGAIN_MAX = 100, AGAIN_DOUBLING = 7 }; /* bound of runs of a script that exits with EXIT_AGAIN */
#define AGAIN_NS (SECOND_NS / 4)
#define SAVE_AGAIN_NS (2 * SECOND_NS)

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static json_int_t number_at(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

static bool state_is(const struct op *op, enum opstep_state state)
{
    return strcmp(text_at(op->record, "state"), opstep_state_name(state)) == 0;
}

bool op_in_progress(const struct op *op)
{
    return state_is(op, OPSTEP_RUNNING) || state_is(op, OPSTEP_UNDOING);
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

struct op *op_find(const struct agent_optasks *o, const char *key)
{
    for (size_t i = 0; i < o->at.len; i++)
        if (strcmp(o->at.at[i]->key, key) == 0)
            return o->at.at[i];
    return NULL;
}

static struct op *add(struct agent_optasks *o, const char *key, json_t *record)
{
    struct op *op = mem_zalloc(sizeof *op);
    *op = (struct op){.all = o, .key = mem_strdup(key), .record = record, .launched = {.pidfd = -1}};
    vec_push(&o->at, op);
    return op;
}

int op_save(struct op *op)
{
    CLEANUP(str) struct str name = {0};
    char *text = json_dumps(op->record, JSON_COMPACT);
    str_addf(&name, "%s.json", op->key);
    op->changes++;
    int rc = file_write(op->all->keys, name.at, text, strlen(text), true);
    free(text);
    if (rc < 0)
        NOTE(op->all->agent, LEVEL_ERROR, "optask.unwritten", LOG_TEXT("key", op->key),
             LOG_TEXT("text", strerror(-rc)));
    return rc;
}

static void set_text(struct op *op, const char *key, const char *text)
{
    if (text && *text)
        (void)json_object_set_new(op->record, key, json_string(text));
    else
        (void)json_object_del(op->record, key);
}

/* Restores the record as it was. */
static void restore(struct op *op, json_t **before)
{
    json_decref(op->record);
    op->record = take_ptr(before);
}

static void set_number(struct op *op, const char *key, uint64_t number)
{
    (void)json_object_set_new(op->record, key, json_integer((json_int_t)number));
}

/* ---- state transitions ------------------------------------------------------------------------------------------ */

static void configure_op(struct agent_optasks *o, const json_t *item);

static void schedule_op(struct op *op, loop_call *call, int64_t after_ns)
{
    struct loop *loop = op->all->agent->loop;
    loop_source_free(op->timer);
    op->timer = loop_timer_new(loop, call, op);
    loop_timer_set(op->timer, loop_now_ns(loop) + after_ns);
}

/* Writes the outcome to disk before it is reported, before another run starts and before the run's directory is
 * removed: an agent that restarts with the old record finds the directory and derives the same outcome. */
static void settle_now(void *ctx)
{
    struct op *op = ctx;
    struct berth_err err;
    if (op_save(op) < 0) {
        schedule_op(op, settle_now, SAVE_AGAIN_NS);
        return;
    }
    op->busy = op->unsettled = false;
    (void)instance_dir_remove(op->all->state_dir, (uint64_t)number_at(op->record, "run"), &err); /* its log stays */
    CLEANUP(json) json_t *requested = take_ptr(&op->requested);
    if (requested && number_at(requested, "attempt") > number_at(op->record, "attempt"))
        configure_op(op->all, requested);
    else
        op_report(op);
}

static void settle(struct op *op, enum opstep_state state)
{
    set_text(op, "state", opstep_state_name(state));
    (void)json_object_del(op->record, "item"); /* the daemon sends it again if it is requested again */
    (void)json_object_set_new(op->record, "said", json_false());
    NOTE(op->all->agent, state == OPSTEP_FAILED ? LEVEL_WARN : LEVEL_INFO, "optask.over", LOG_TEXT("key", op->key),
         LOG_TEXT("state", opstep_state_name(state)), LOG_TEXT("text", text_at(op->record, "error")));
    op->unsettled = true;
    settle_now(op);
}

static void failure_note(struct op *op)
{
    CLEANUP(str) struct str why = {0};
    bool undo_too = strcmp(text_at(op->record, "phase"), "undo") == 0;
    const char *before = text_at(op->record, "error");
    if (undo_too && *before)
        str_addf(&why, "%s; then ", before);
    if (undo_too)
        str_add(&why, "the undo failed: ");
    if (op->text[0])
        str_add(&why, op->text);
    else if (op->exit < 0)
        str_add(&why, "the machine or its shim stopped while it was running");
    else if (op->exit > 128)
        str_addf(&why, "killed by signal %d", op->exit - 128);
    else
        str_addf(&why, "exit code %d", op->exit);
    set_text(op, "error", str_text(&why));
    if (!undo_too || !*text_at(op->record, "fault"))
        set_text(op, "fault", opstep_fault_name(op->fault));
    if (op->exit >= 0)
        set_number(op, "exit", (uint64_t)op->exit);
}

/* Starts another run of a phase under a new run number. The record is written before anything runs; if that fails, the
 * record is restored. */
static int begin(struct op *op, const char *phase)
{
    bool undo = strcmp(phase, "undo") == 0;
    char boot[BOOT_ID_MAX];
    CLEANUP(json) json_t *before = json_deep_copy(op->record);
    json_t *runs = json_object_get(op->record, "runs");
    if (!runs)
        (void)json_object_set_new(op->record, "runs", runs = json_object());
    set_text(op, "phase", phase);
    set_text(op, "state", opstep_state_name(undo ? OPSTEP_UNDOING : OPSTEP_RUNNING));
    set_number(op, "run", ++op->all->last_run);
    (void)json_object_set_new(runs, phase, json_integer((json_int_t)op->all->last_run));
    set_number(op, "begun", (uint64_t)number_at(op->record, "begun") + 1);
    set_number(op, "tries", (uint64_t)number_at(op->record, "tries") + 1);
    set_text(op, "boot", boot_id(boot) == 0 ? boot : NULL);
    (void)json_object_set_new(op->record, "said", json_false());
    int rc = op_save(op);
    if (rc < 0) {
        restore(op, &before);
        return rc;
    }
    NOTE(op->all->agent, LEVEL_INFO, "optask.begin", LOG_TEXT("key", op->key), LOG_TEXT("phase", phase),
         LOG_NUMBER("run", (int64_t)op->all->last_run));
    op->busy = true;
    optask_run_begin(op);
    if (undo)
        op_report(op);
    return 0;
}

/* Starts a run that follows another one; removes the earlier run's directory after the new record is on disk. */
static void next_run_begin(struct op *op, const char *phase, loop_call *call)
{
    struct berth_err err;
    uint64_t run = (uint64_t)number_at(op->record, "run");
    if (begin(op, phase) == 0)
        (void)instance_dir_remove(op->all->state_dir, run, &err);
    else
        schedule_op(op, call, SAVE_AGAIN_NS);
}

static void retry_posts(void *ctx)
{
    struct op *op = ctx;
    next_run_begin(op, strcmp(text_at(op->record, "phase"), "undo") == 0 ? "undo" : "run", retry_posts);
}

void optask_run_again(struct op *op)
{
    retry_posts(op);
}

static void undo_failed(void *ctx)
{
    struct op *op = ctx;
    (void)json_object_del(op->record, "tries"); /* the undo script has its own count */
    next_run_begin(op, "undo", undo_failed);
}

static void again_later(struct op *op)
{
    json_int_t tries = number_at(op->record, "tries");
    schedule_op(op, retry_posts, AGAIN_NS << (tries < AGAIN_DOUBLING ? tries : AGAIN_DOUBLING));
}

void optask_run_ended(struct op *op)
{
    bool undo = strcmp(text_at(op->record, "phase"), "undo") == 0;
    bool goes_on = op->exit == EXIT_AGAIN || (op->fault == OPFAULT_LOST && optask_run_resumable(op));
    if (op->began && !undo)
        (void)json_object_set_new(op->record, "began", json_true());
    if (goes_on && number_at(op->record, "tries") < AGAIN_MAX && op->fault != OPFAULT_TIMEOUT) {
        again_later(op); /* the existing run directory prevents a second start meanwhile */
        return;
    }
    if (op->exit == 0 && !op->fault) {
        if (!undo)
            set_number(op, "exit", 0);
        settle(op, undo ? OPSTEP_UNDONE : OPSTEP_DONE);
        return;
    }
    failure_note(op);
    bool has_undo = *text_at(json_object_get(op->record, "item"), "undo") && op->fault != OPFAULT_REFUSED;
    if (!undo && has_undo && json_is_true(json_object_get(op->record, "began")))
        undo_failed(op);
    else
        settle(op, OPSTEP_FAILED);
}

/* ---- requests of the daemon ------------------------------------------------------------------------------------- */

static void report_again(struct op *op, uint64_t attempt)
{
    if (attempt > (uint64_t)number_at(op->record, "attempt"))
        set_number(op, "attempt", attempt);
    (void)json_object_set_new(op->record, "said", json_false());
    op->changes++;
    op_report(op);
}

static void attempt_begin(struct op *op, const json_t *item, bool undo)
{
    static const char *const of_last[] = {"fault", "error", "exit", "tries", "began"};
    CLEANUP(json) json_t *before = json_deep_copy(op->record);
    char why[256];
    for (size_t i = 0; i < sizeof of_last / sizeof *of_last; i++)
        (void)json_object_del(op->record, of_last[i]);
    set_text(op, "content", text_at(item, "content"));
    set_number(op, "attempt", (uint64_t)number_at(item, "attempt"));
    (void)json_object_set_new(op->record, "item", json_deep_copy(item));
    int rc = begin(op, undo ? "undo" : "run");
    if (rc == 0)
        return;
    restore(op, &before);
    (void)snprintf(why, sizeof why, "cannot record its start: %s", strerror(-rc));
    op_decline(op, item, rc == -ENOSPC || rc == -EDQUOT ? OPFAULT_NO_SPACE : OPFAULT_SCRIPT, why);
}

static void configure_op(struct agent_optasks *o, const json_t *item)
{
    const char *key = text_at(item, "key");
    bool undo = strcmp(text_at(item, "do"), "undo") == 0;
    uint64_t attempt = (uint64_t)number_at(item, "attempt");
    struct op *op = op_find(o, key);
    if (!*key || strchr(key, '/') || *key == '.' || !attempt)
        return;
    if (op && (op->busy ||
               op_in_progress(op))) { /* the daemon had given up on this run; the new request is handled after it */
        json_decref(op->requested);
        op->requested = json_deep_copy(item);
        return;
    }
    const char *content = op ? text_at(op->record, "content") : "";
    if (*content && strcmp(content, text_at(item, "content")) != 0) {
        op_decline(op, item, OPFAULT_REFUSED,
                   "refused: this key was used on this node with other content; choose another key");
        return;
    }
    if (op && op_declined(op, attempt))
        return;
    /* A key that is done stays done; the outcome of this attempt or an earlier one is final. */
    if (op &&
        (state_is(op, undo ? OPSTEP_UNDONE : OPSTEP_DONE) || attempt <= (uint64_t)number_at(op->record, "attempt"))) {
        report_again(op, attempt);
        return;
    }
    if (!op)
        op = add(o, key, json_pack("{s:s}", "key", key));
    attempt_begin(op, item, undo);
}

void optasks_configure(struct agent_optasks *o, const json_t *config)
{
    size_t i;
    json_t *item;
    json_array_foreach(json_object_get(config, "optasks"), i, item) configure_op(o, item);
}

/* ---- lookup ----------------------------------------------------------------------------------------------------- */

int optask_log(const struct agent_optasks *o, const char *key, bool undo, const struct state_dir **ret_place,
               uint64_t *ret_run, struct berth_err *err)
{
    const struct op *op = op_find(o, key);
    const json_t *run = op ? json_object_get(json_object_get(op->record, "runs"), undo ? "undo" : "run") : NULL;
    if (!run)
        return err_set(err, ENOENT, "%s of optask %s has not run on this node", undo ? "the undo script" : "the script",
                       key);
    *ret_place = o->state_dir;
    *ret_run = (uint64_t)json_integer_value(run);
    return 0;
}

bool is_optask_alive(const struct agent_optasks *o, const char *key, uint64_t run)
{
    const struct op *op = op_find(o, key);
    return op && op->busy && (uint64_t)number_at(op->record, "run") == run;
}

/* ---- lifetime --------------------------------------------------------------------------------------------------- */

static void record_read(struct agent_optasks *o, const char *name)
{
    char *text = NULL;
    size_t len = 0, end = strlen(name);
    if (end < 6 || strcmp(name + end - 5, ".json") != 0 || file_read(o->keys, name, &text, &len) < 0)
        return;
    json_t *record = json_loadb(text, len, 0, NULL);
    mem_free(text);
    if (!*text_at(record, "key")) {
        NOTE(o->agent, LEVEL_ERROR, "optask.unreadable", LOG_TEXT("file", name));
        json_decref(record);
        return;
    }
    if (!json_object_get(record, "begun")) /* written by an older agent, which counted only tries */
        (void)json_object_set_new(record, "begun", json_integer(number_at(record, "tries")));
    (void)add(o, text_at(record, "key"), record);
    const char *phase;
    json_t *run;
    json_object_foreach(json_object_get(record, "runs"), phase, run)
    {
        if ((uint64_t)json_integer_value(run) > o->last_run)
            o->last_run = (uint64_t)json_integer_value(run);
    }
}

/* Removes the directory of a run that no record has in progress: the outcome was written to disk before. */
static void run_dir_check(void *ctx, uint64_t run)
{
    struct agent_optasks *o = ctx;
    struct berth_err err;
    if (run > o->last_run)
        o->last_run = run;
    for (size_t i = 0; i < o->at.len; i++)
        if (op_in_progress(o->at.at[i]) && (uint64_t)number_at(o->at.at[i]->record, "run") == run)
            return;
    launch_prevent(o->state_dir, run); /* if its record is unreadable, the run may even be alive */
    if (instance_dir_remove(o->state_dir, run, &err) < 0)
        NOTE(o->agent, LEVEL_WARN, "optask.left", LOG_TEXT("text", err.text));
}

static int folders_open(struct agent_optasks *o, struct berth_err *err)
{
    static const char *const below[] = {"keys", "checkpoints"};
    CLEANUP(str) struct str dir = {0};
    str_addf(&dir, "%s/optasks", state_dir_path(o->agent->state_dir));
    if (mkdir(dir.at, 0700) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot create %s: %s", dir.at, strerror(errno));
    int rc = state_dir_open(dir.at, &o->state_dir, err);
    for (size_t i = 0; rc == 0 && i < sizeof below / sizeof *below; i++) {
        CLEANUP(str) struct str path = {0};
        str_addf(&path, "%s/%s", dir.at, below[i]);
        if (mkdir(path.at, 0700) < 0 && errno != EEXIST)
            rc = err_set(err, errno, "cannot create %s: %s", path.at, strerror(errno));
        if (rc == 0 && i == 0 && (o->keys = open(path.at, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0)
            rc = err_set(err, errno, "cannot open %s: %s", path.at, strerror(errno));
    }
    return rc;
}

static void records_read(struct agent_optasks *o)
{
    int fd = openat(o->keys, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *entry; dir && (entry = readdir(dir));)
        record_read(o, entry->d_name);
    if (dir)
        (void)closedir(dir);
}

int optasks_new(struct agent *a, uint64_t epoch, struct agent_optasks **ret, struct berth_err *err)
{
    struct agent_optasks *o = mem_zalloc(sizeof *o);
    *o = (struct agent_optasks){.agent = a, .keys = -1, .epoch = epoch};
    int rc = folders_open(o, err);
    if (rc < 0) {
        optasks_free(o);
        return rc;
    }
    records_read(o);
    optask_runs_sweep(o);
    (void)instance_dirs_each(o->state_dir, run_dir_check, o);
    for (size_t i = 0; i < o->at.len; i++) {
        if (op_in_progress(o->at.at[i]))
            optask_run_adopt(o->at.at[i]);
        else
            op_report(o->at.at[i]);
    }
    *ret = o;
    return 0;
}

void optasks_free(struct agent_optasks *o)
{
    if (!o)
        return;
    worker_free(o->worker);
    for (size_t i = 0; i < o->at.len; i++) {
        struct op *op = o->at.at[i];
        loop_source_free(op->source);
        loop_source_free(op->timer);
        loop_source_free(op->say_timer);
        loop_source_free(op->decline_timer);
        if (op->launched.pidfd >= 0)
            (void)close(op->launched.pidfd);
        json_decref(op->record);
        json_decref(op->requested);
        json_decref(op->declined);
        mem_free(op->key);
        mem_free(op);
    }
    vec_done(&o->at);
    state_dir_free(o->state_dir);
    if (o->keys >= 0)
        (void)close(o->keys);
    mem_free(o);
}
