/* optask_run.c - one run of a script: starts it as a process under a shim, and finds out how it ended. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/optask/optask_parts.h"
#include "machine/launch/state_file.h"
#include "net/tls/tls.h"

enum { LOG_BYTES = 1 << 20, LOG_FILES = 2, LOG_TAIL_LINES = 40, LOG_TAIL_BYTES = 16 * 1024 };
#define LOGS_BYTES_MAX (UINT64_C(64) << 20)
#define LOGS_AGE_NS (INT64_C(365) * 86400 * SECOND_NS)

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static uint64_t run_number(const struct op *op)
{
    return (uint64_t)json_integer_value(json_object_get(op->record, "run"));
}

static bool undoes(const struct op *op)
{
    return strcmp(text_at(op->record, "phase"), "undo") == 0;
}

static const char *group_of(const struct op *op, char buf[static 32])
{
    (void)snprintf(buf, 32, "o%" PRIu64, run_number(op));
    return buf;
}

static int checkpoint_path(const struct op *op, char ret[static STATE_PATH_MAX])
{
    return state_dir_entry_path(op->all->state_dir, "checkpoints", op->key, ret);
}

bool optask_run_resumable(const struct op *op)
{
    char folder[STATE_PATH_MAX], path[STATE_PATH_MAX + 16];
    if (checkpoint_path(op, folder) < 0)
        return false;
    (void)snprintf(path, sizeof path, "%s/resumable", folder);
    return access(path, F_OK) == 0;
}

/* Runs `work` on the worker thread, then `after` on the loop. */
static void run_on_worker(struct op *op, loop_call *work, loop_call *after)
{
    if (!op->all->worker)
        op->all->worker = worker_new(op->all->agent->loop);
    worker_run(op->all->worker, work, after, op);
}

static void group_sweep(void *ctx, const char *name)
{
    struct agent_optasks *o = ctx;
    char group[32];
    if (name[0] != 'o' || strspn(name + 1, "0123456789") != strlen(name + 1))
        return;
    for (size_t i = 0; i < o->at.len; i++)
        if (strcmp(group_of(o->at.at[i], group), name) == 0)
            return;
    NOTE(o->agent, LEVEL_WARN, "group.orphaned", LOG_TEXT("group", name));
    (void)cgroup_kill(o->agent->cgroups, name);
    (void)cgroup_remove(o->agent->cgroups, name);
}

void optask_runs_sweep(struct agent_optasks *o)
{
    (void)cgroups_each(o->agent->cgroups, group_sweep, o);
}

/* ---- start ------------------------------------------------------------------------------------------------------ */

/* Returns the script after checking it against its pinned hash. */
static int script_find(struct op *op, const char **ret)
{
    const json_t *item = json_object_get(op->record, "item");
    bool own = undoes(op) && strcmp(text_at(item, "undo"), OPTASK_UNDO_SELF) != 0;
    const char *script = text_at(item, own ? "undo" : "script"), *pin = text_at(item, own ? "undo_sha256" : "sha256");
    char hash[SHA256_TEXT_MAX];
    int rc = sha256_text(script, strlen(script), hash, &op->err);
    if (rc < 0)
        return rc;
    if (!*script || strcmp(hash, pin) != 0)
        return err_set(&op->err, EBADMSG, "refused: the hash of the received script differs from the pinned hash");
    *ret = script;
    return 0;
}

static const char **argv_make(const struct op *op, const char *script, struct arena *arena)
{
    const json_t *item = json_object_get(op->record, "item"), *args = json_object_get(item, "args");
    const char **argv = ARENA_ARRAY(arena, const char *, json_array_size(args) + 3);
    size_t len = 0;
    argv[len++] = strcmp(text_at(item, "language"), "python") == 0 ? "python3" : "/bin/sh";
    argv[len++] = script;
    for (size_t i = 0; i < json_array_size(args); i++)
        argv[len++] = json_string_value(json_array_get(args, i));
    return argv;
}

static const char **env_make(const struct op *op, const char *checkpoint, struct arena *arena)
{
    static const char *const plain[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                        "LANG=C.UTF-8",
                                        "HOME=/root",
                                        "USER=root",
                                        "LOGNAME=root",
                                        "SHELL=/bin/sh"};
    enum { PLAIN = sizeof plain / sizeof *plain, MORE = 6 };
    const char **env = ARENA_ARRAY(arena, const char *, PLAIN + MORE);
    size_t len = 0;
    for (; len < PLAIN; len++)
        env[len] = plain[len];
    env[len++] = arena_fmt(arena, "BERTH_KEY=%s", op->key);
    env[len++] = arena_fmt(arena, "BERTH_NODE=%s", op->all->agent->identity.node);
    env[len++] = arena_fmt(arena, "BERTH_CHECKPOINT=%s", checkpoint);
    env[len++] = arena_fmt(arena, "BERTH_ATTEMPT=%" JSON_INTEGER_FORMAT,
                           json_integer_value(json_object_get(op->record, "begun")));
    if (undoes(op))
        env[len++] = "BERTH_UNDO=1";
    return env;
}

static int launch(struct op *op, const char *script, const char *checkpoint, struct arena *arena)
{
    struct agent *a = op->all->agent;
    static const struct launch_rlimit no_core = {RLIMIT_CORE, 0, 0};
    char group[32], unenforced[CGROUP_LIST_MAX];
    char *procs_paths[CGROUP_PATHS_MAX] = {NULL};
    const struct cgroup_limits limits = {0};
    int rc = cgroup_make(a->cgroups, group_of(op, group), &limits, unenforced, &op->err);
    if (rc < 0)
        return rc;
    struct launch l = {
        .id = run_number(op),
        .shim = a->shim,
        .argv = argv_make(op, script, arena),
        .env = env_make(op, checkpoint, arena),
        .cwd = "/",
        .rlimits = &no_core,
        .rlimits_len = 1,
        .procs_paths_len = cgroup_procs_paths(a->cgroups, group, procs_paths),
        .procs_paths = (const char *const *)procs_paths,
        .log_bytes = LOG_BYTES,
        .log_files = LOG_FILES,
        /* The heartbeat file of this directory is never updated, so the shim's fence timer runs from the start and
         * works as a timeout, also without an agent. */
        .fence_ns = json_integer_value(json_object_get(json_object_get(op->record, "item"), "timeout_ns")),
        .stop_signal = SIGTERM,
        .trusted = true,
    };
    rc = launch_start(op->all->state_dir, &l, &op->launched, &op->err);
    /* after a timeout or lost connection to the shim it is unknown */
    op->began = rc == 0 || rc == -ETIMEDOUT || rc == -EPIPE;
    for (size_t i = 0; i < CGROUP_PATHS_MAX; i++)
        mem_free(procs_paths[i]);
    if (rc < 0) {
        launch_prevent(op->all->state_dir, l.id);
        (void)cgroup_kill(a->cgroups, group);
        (void)cgroup_remove(a->cgroups, group);
    }
    return rc;
}

static void begin_work(void *ctx)
{
    struct op *op = ctx;
    const char *script = NULL;
    char checkpoint[STATE_PATH_MAX], path[STATE_PATH_MAX];
    struct arena arena;
    op->err = (struct berth_err){0};
    op->began = false;
    op->launched = (struct launch_result){.pidfd = -1};
    op->rc = geteuid() == 0 ? 0 : err_set(&op->err, EBADMSG, "refused: the agent does not run as root");
    if (op->rc == 0)
        op->rc = script_find(op, &script);
    if (op->rc == 0)
        op->rc = checkpoint_path(op, checkpoint);
    if (op->rc == 0 && mkdir(checkpoint, 0700) < 0 && errno != EEXIST)
        op->rc = err_set(&op->err, errno, "cannot create %s: %s", checkpoint, strerror(errno));
    if (op->rc == 0)
        op->rc = instance_dir_create(op->all->state_dir, run_number(op), "{}", &op->err);
    if (op->rc == 0)
        op->rc = instance_dir_write(op->all->state_dir, run_number(op), "script", script, &op->err);
    if (op->rc == 0)
        op->rc = instance_dir_path(op->all->state_dir, run_number(op), "script", path);
    if (op->rc < 0)
        return;
    arena_init(&arena);
    op->rc = launch(op, path, checkpoint, &arena);
    arena_done(&arena);
}

/* ---- end -------------------------------------------------------------------------------------------------------- */

/* Messages of scripts and package managers that show a fault outside the script. */
static const struct {
    const char *text;
    enum opstep_fault fault;
} said[] = {
    {"No space left on device",       OPFAULT_NO_SPACE       },
    {"You don't have enough free",    OPFAULT_NO_SPACE       },
    {"Disk quota exceeded",           OPFAULT_NO_SPACE       },
    {"Temporary failure resolving",   OPFAULT_NETWORK        },
    {"Temporary failure in name",     OPFAULT_NETWORK        },
    {"Could not resolve host",        OPFAULT_NETWORK        },
    {"Network is unreachable",        OPFAULT_NETWORK        },
    {"Connection timed out",          OPFAULT_NETWORK        },
    {"Cannot download",               OPFAULT_NETWORK        },
    {"dpkg was interrupted",          OPFAULT_PACKAGE_MANAGER},
    {"Could not get lock /var/lib/",  OPFAULT_PACKAGE_MANAGER},
    {"E: Unable to locate package",   OPFAULT_PACKAGE_MANAGER},
    {"E: Unmet dependencies",         OPFAULT_PACKAGE_MANAGER},
    {"unable to select packages",     OPFAULT_PACKAGE_MANAGER},
    {"Unable to find a match",        OPFAULT_PACKAGE_MANAGER},
    {"Error: Transaction test error", OPFAULT_PACKAGE_MANAGER},
};

/* Reads the last lines of the log, as many as fit. */
static size_t log_tail(const struct op *op, int64_t lines, char *text, size_t size)
{
    struct logfile *log = NULL;
    struct berth_err err;
    size_t len = 0;
    if (logfile_open(op->all->state_dir, run_number(op), lines, &log, &err) == 0) {
        for (ssize_t n; len < size && (n = logfile_read(log, text + len, size - len)) > 0;)
            len += (size_t)n;
        logfile_free(log);
    }
    return len;
}

static enum opstep_fault fault_in_log(const struct op *op)
{
    char *text = mem_zalloc(LOG_TAIL_BYTES);
    enum opstep_fault fault = OPFAULT_SCRIPT;
    size_t len = log_tail(op, LOG_TAIL_LINES, text, LOG_TAIL_BYTES);
    for (size_t i = 0; i < sizeof said / sizeof *said && fault == OPFAULT_SCRIPT; i++)
        if (memmem(text, len, said[i].text, strlen(said[i].text)))
            fault = said[i].fault;
    mem_free(text);
    return fault;
}

/* Uses the last line of a failed script as the error text: made printable and cut to the available room. If the line is
 * not valid UTF-8, only the exit code is reported. */
static void last_log_line(struct op *op)
{
    char line[LAUNCH_TEXT_MAX] = "";
    size_t room = sizeof op->text - sizeof "exit code 255: ", len = log_tail(op, 1, line, sizeof line);
    const char *end = memchr(line, '\n', len);
    if (end)
        len = (size_t)(end - line);
    if (len > room) {
        len = room;
        while (len > 0 && ((unsigned char)line[len] & 0xc0) == 0x80) /* not inside a character */
            len--;
    }
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)line[i] < ' ' || line[i] == 0x7f)
            line[i] = ' ';
    while (len > 0 && line[len - 1] == ' ')
        len--;
    if (len > 0 && str_utf8_valid(line, len))
        (void)snprintf(op->text, sizeof op->text, "exit code %d: %.*s", op->exit, (int)len, line);
}

static enum opstep_fault fault_of(const struct op *op)
{
    switch (op->exit) {
    case -1: return OPFAULT_LOST;
    case EXIT_NO_SPACE: return OPFAULT_NO_SPACE;
    case EXIT_NETWORK: return OPFAULT_NETWORK;
    case EXIT_PACKAGE_MANAGER: return OPFAULT_PACKAGE_MANAGER;
    default: return fault_in_log(op);
    }
}

/* Tells whether a machine shutdown ended the run: it kills all processes by a signal, which is not the script's
 * fault. */
static bool machine_rebooted(const struct op *op)
{
    char boot[BOOT_ID_MAX];
    return op->exit > 128 && boot_id(boot) == 0 && strcmp(boot, text_at(op->record, "boot")) != 0;
}

static void reap_work(void *ctx)
{
    struct op *op = ctx;
    struct agent *a = op->all->agent;
    char group[32];
    op->exit = -1;
    op->text[0] = '\0';
    op->fault = OPFAULT_NONE;
    op->began = true;
    if (launch_exit(op->all->state_dir, run_number(op), &op->exit, op->text) < 0 || op->exit < 0 ||
        machine_rebooted(op)) {
        op->exit = -1; /* the script has started and its shim is gone, so the recorded exit code is not used */
        op->text[0] = '\0';
    }
    op->rc = cgroup_kill(a->cgroups, group_of(op, group));
    if (op->rc == 0 || op->rc == -ENOENT)
        op->rc = cgroup_remove(a->cgroups, group);
    if (op->rc < 0 && op->rc != -ENOENT)
        return;
    op->rc = 0;
    if (strncmp(op->text, "fenced", strlen("fenced")) == 0) {
        op->fault = OPFAULT_TIMEOUT;
        (void)snprintf(op->text, sizeof op->text, "timed out and was stopped");
    } else if (op->exit != 0) {
        op->fault = fault_of(op);
        if (op->exit > 0 && op->exit <= 128 && !op->text[0])
            last_log_line(op);
    }
    logs_trim(op->all->state_dir, LOGS_BYTES_MAX, LOGS_AGE_NS, agent_clock_ns());
}

static void reap(void *ctx);

static void reap_after(void *ctx)
{
    struct op *op = ctx;
    if (op->rc < 0) { /* a process cannot die yet */
        loop_source_free(op->timer);
        op->timer = loop_timer_new(op->all->agent->loop, reap, op);
        loop_timer_set(op->timer, loop_now_ns(op->all->agent->loop) + SECOND_NS);
        return;
    }
    optask_run_ended(op);
}

static void reap(void *ctx)
{
    struct op *op = ctx;
    run_on_worker(op, reap_work, reap_after);
}

static void shim_ended(void *ctx, uint32_t events)
{
    struct op *op = ctx;
    (void)events;
    loop_source_free(op->source);
    op->source = NULL;
    (void)close(op->launched.pidfd);
    op->launched.pidfd = -1;
    reap(op);
}

static void watch(struct op *op)
{
    if (loop_watch_fd(op->all->agent->loop, op->launched.pidfd, EPOLLIN, shim_ended, op, &op->source, &op->err) == 0)
        return;
    launch_prevent(op->all->state_dir, run_number(op)); /* its end would not be noticed */
    reap(op);
}

static void begin_after(void *ctx)
{
    struct op *op = ctx;
    if (op->rc == 0) {
        watch(op);
        return;
    }
    op->exit = -1;
    (void)snprintf(op->text, sizeof op->text, "%.*s", (int)sizeof op->text - 1, op->err.text);
    op->fault = op->rc == -EBADMSG                       ? OPFAULT_REFUSED
                : op->rc == -ENOSPC || op->rc == -EDQUOT ? OPFAULT_NO_SPACE
                                                         : OPFAULT_SCRIPT;
    optask_run_ended(op);
}

void optask_run_begin(struct op *op)
{
    op->busy = true;
    run_on_worker(op, begin_work, begin_after);
}

/* Tells whether no shim has written its mark, so that nothing was executed. This is certain only within the same
 * boot. */
static bool shim_never_started(const struct op *op)
{
    struct stat st;
    char path[STATE_PATH_MAX], boot[BOOT_ID_MAX];
    return boot_id(boot) == 0 && strcmp(boot, text_at(op->record, "boot")) == 0 &&
           instance_dir_path(op->all->state_dir, run_number(op), "shim", path) == 0 && stat(path, &st) == 0 &&
           st.st_size == 0;
}

static void find_work(void *ctx)
{
    struct op *op = ctx;
    op->rc = launch_adopt(op->all->state_dir, run_number(op), &op->launched, &op->err);
    if (op->rc < 0 && op->rc != -ESRCH)
        launch_prevent(op->all->state_dir, run_number(op));
}

static void find_after(void *ctx)
{
    struct op *op = ctx;
    if (op->rc == 0) {
        NOTE(op->all->agent, LEVEL_INFO, "optask.adopted", LOG_TEXT("key", op->key));
        watch(op);
    } else if (op->rc == -ESRCH && shim_never_started(op)) {
        optask_run_again(op);
    } else {
        reap(op);
    }
}

void optask_run_adopt(struct op *op)
{
    char path[STATE_PATH_MAX];
    op->busy = true;
    if (instance_dir_path(op->all->state_dir, run_number(op), "config.json", path) < 0 || access(path, F_OK) < 0) {
        optask_run_begin(op); /* the start marker is written before anything runs, so nothing has run */
        return;
    }
    run_on_worker(op, find_work, find_after);
}
