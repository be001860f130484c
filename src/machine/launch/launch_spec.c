#include "machine/launch/launch_spec.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/vec.h"

#define VERSION "berth-shim 1"

enum { SPEC_CELLS_MAX = 100000 };

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void add(struct str *s, const char *cell)
{
    str_add_bytes(s, cell, strlen(cell) + 1);
}

static void add_text(struct str *s, const char *key, const char *value)
{
    if (!value)
        return;
    add(s, key);
    add(s, value);
}

static void add_u64(struct str *s, const char *key, uint64_t value)
{
    char buf[24];

    if (value > 0)
        add_text(s, key, str_u64(value, buf));
}

static void add_list(struct str *s, const char *key, const char *const *list)
{
    for (size_t i = 0; list && list[i]; i++)
        add_text(s, key, list[i]);
}

static void add_tables(struct str *s, const struct launch *l)
{
    char buf[24];

    for (size_t i = 0; i < l->groups_len; i++)
        add_text(s, "group", str_u64(l->groups[i], buf));
    for (size_t i = 0; i < l->rlimits_len; i++) {
        add_text(s, "rlimit", str_u64((uint64_t)l->rlimits[i].resource, buf));
        add(s, str_u64(l->rlimits[i].soft, buf));
        add(s, str_u64(l->rlimits[i].hard, buf));
    }
    for (size_t i = 0; i < l->procs_paths_len; i++)
        add_text(s, "entrance", l->procs_paths[i]);
    for (size_t i = 0; i < l->mounts_len; i++) {
        const struct launch_mount *m = &l->mounts[i];

        add_text(s, "mount", m->source ? m->source : "");
        add(s, m->target);
        add(s, m->type ? m->type : "");
        add(s, m->data ? m->data : "");
        add(s, m->read_only ? "ro" : "rw");
    }
    for (size_t i = 0; i < l->sockets_len; i++)
        add_text(s, "socket", l->socket_names && l->socket_names[i] ? l->socket_names[i] : "unknown");
}

int spec_write(const struct launch *l, const char *logs, const char *heard, struct str *ret, struct berth_err *err)
{
    if (!l->runtime && (!l->argv || !l->argv[0] || !*l->argv[0]))
        return err_set(err, EINVAL, "instance %" PRIu64 " has no command", l->id);
    if (l->sockets_len > LAUNCH_SOCKETS_MAX)
        return err_set(err, EINVAL, "instance %" PRIu64 " has %zu sockets; at most %d", l->id, l->sockets_len,
                       LAUNCH_SOCKETS_MAX);
    add(ret, VERSION);
    add_u64(ret, "id", l->id);
    add_text(ret, "shim", l->shim);
    add_text(ret, "logs", logs);
    add_text(ret, "heard", heard);
    add_list(ret, "arg", l->argv);
    add_list(ret, "env", l->env);
    add_text(ret, "cwd", l->cwd);
    add_u64(ret, "uid", l->uid);
    add_u64(ret, "gid", l->gid);
    add_tables(ret, l);
    add_u64(ret, "log_bytes", l->log_bytes);
    add_u64(ret, "log_files", l->log_files);
    add_u64(ret, "fence_ns", l->fence_ns > 0 ? (uint64_t)l->fence_ns : 0);
    add_u64(ret, "stop_signal", l->stop_signal > 0 ? (uint64_t)l->stop_signal : 0);
    add_u64(ret, "all_syscalls", l->all_syscalls);
    if (l->hide_processes)
        add_u64(ret, "hide_processes", 1);
    add_text(ret, "pid_namespace", l->pid_namespace);
    add_u64(ret, "trusted", l->trusted);
    add_text(ret, "runtime", l->runtime);
    add_text(ret, "bundle", l->bundle);
    return 0;
}

/* ---- reading ---- */

struct spec_lists {
    VEC(const char *) args, env, procs_paths, sockets;
    VEC(gid_t) groups;
    VEC(struct launch_rlimit) rlimits;
    VEC(struct launch_mount) mounts;
};

enum launch_key {
    KEY_ALL_SYSCALLS,
    KEY_ARG,
    KEY_BUNDLE,
    KEY_CWD,
    KEY_ENTRANCE,
    KEY_ENV,
    KEY_FENCE_NS,
    KEY_GID,
    KEY_GROUP,
    KEY_HEARD,
    KEY_HIDE_PROCESSES,
    KEY_ID,
    KEY_LOG_BYTES,
    KEY_LOG_FILES,
    KEY_LOGS,
    KEY_MOUNT,
    KEY_PID_NAMESPACE,
    KEY_RLIMIT,
    KEY_RUNTIME,
    KEY_SHIM,
    KEY_SOCKET,
    KEY_STOP_SIGNAL,
    KEY_TRUSTED,
    KEY_UID,
};

static const struct {
    const char *name;
    size_t cells;
} keys[] = {
    [KEY_ALL_SYSCALLS] = {"all_syscalls",   1},
    [KEY_ARG] = {"arg",            1},
    [KEY_BUNDLE] = {"bundle",         1},
    [KEY_CWD] = {"cwd",            1},
    [KEY_ENTRANCE] = {"entrance",       1},
    [KEY_ENV] = {"env",            1},
    [KEY_FENCE_NS] = {"fence_ns",       1},
    [KEY_GID] = {"gid",            1},
    [KEY_GROUP] = {"group",          1},
    [KEY_HEARD] = {"heard",          1},
    [KEY_HIDE_PROCESSES] = {"hide_processes", 1},
    [KEY_ID] = {"id",             1},
    [KEY_LOG_BYTES] = {"log_bytes",      1},
    [KEY_LOG_FILES] = {"log_files",      1},
    [KEY_LOGS] = {"logs",           1},
    [KEY_MOUNT] = {"mount",          5},
    [KEY_PID_NAMESPACE] = {"pid_namespace",  1},
    [KEY_RLIMIT] = {"rlimit",         3},
    [KEY_RUNTIME] = {"runtime",        1},
    [KEY_SHIM] = {"shim",           1},
    [KEY_SOCKET] = {"socket",         1},
    [KEY_STOP_SIGNAL] = {"stop_signal",    1},
    [KEY_TRUSTED] = {"trusted",        1},
    [KEY_UID] = {"uid",            1},
};
enum { KEYS_LEN = sizeof keys / sizeof *keys };

static uint64_t number(const char *cell)
{
    return strtoull(cell, NULL, 10);
}

static const char *or_null(const char *cell)
{
    return *cell ? cell : NULL;
}

static void take_list(struct spec_lists *t, enum launch_key key, const char *const *cells)
{
    switch (key) {
    case KEY_ARG: vec_push(&t->args, cells[0]); break;
    case KEY_ENV: vec_push(&t->env, cells[0]); break;
    case KEY_ENTRANCE: vec_push(&t->procs_paths, cells[0]); break;
    case KEY_SOCKET: vec_push(&t->sockets, cells[0]); break;
    case KEY_GROUP: vec_push(&t->groups, (gid_t)number(cells[0])); break;
    case KEY_RLIMIT:
        vec_push(&t->rlimits,
                 ((struct launch_rlimit){
                     .resource = (int)number(cells[0]), .soft = number(cells[1]), .hard = number(cells[2])}));
        break;
    case KEY_MOUNT:
        vec_push(&t->mounts, ((struct launch_mount){.source = or_null(cells[0]),
                                                    .target = cells[1],
                                                    .type = or_null(cells[2]),
                                                    .data = or_null(cells[3]),
                                                    .read_only = strcmp(cells[4], "ro") == 0}));
        break;
    default: break;
    }
}

static void take(struct launch_spec *s, struct spec_lists *t, enum launch_key key, const char *const *cells)
{
    struct launch *l = &s->launch;

    switch (key) {
    case KEY_ALL_SYSCALLS: l->all_syscalls = number(cells[0]) != 0; break;
    case KEY_BUNDLE: l->bundle = cells[0]; break;
    case KEY_CWD: l->cwd = cells[0]; break;
    case KEY_HIDE_PROCESSES: l->hide_processes = number(cells[0]) != 0; break;
    case KEY_FENCE_NS: l->fence_ns = (int64_t)number(cells[0]); break;
    case KEY_GID: l->gid = (gid_t)number(cells[0]); break;
    case KEY_HEARD: s->heard = cells[0]; break;
    case KEY_ID: l->id = number(cells[0]); break;
    case KEY_LOG_BYTES: l->log_bytes = number(cells[0]); break;
    case KEY_LOG_FILES: l->log_files = (unsigned)number(cells[0]); break;
    case KEY_LOGS: s->logs = cells[0]; break;
    case KEY_PID_NAMESPACE: l->pid_namespace = cells[0]; break;
    case KEY_RUNTIME: l->runtime = cells[0]; break;
    case KEY_SHIM: l->shim = cells[0]; break;
    case KEY_STOP_SIGNAL: l->stop_signal = (int)number(cells[0]); break;
    case KEY_TRUSTED: l->trusted = number(cells[0]) > 0; break;
    case KEY_UID: l->uid = (uid_t)number(cells[0]); break;
    default: take_list(t, key, cells); break;
    }
}

/* Returns the next cell; NULL at the end. */
static const char *cell_next(char **at, const char *end)
{
    const char *cell = *at;

    if (*at >= end)
        return NULL;
    *at += strlen(cell) + 1; /* file_read terminates the whole text with a NUL */
    return cell;
}

static int read_cells(struct launch_spec *s, struct spec_lists *t, size_t len, struct berth_err *err)
{
    char *at = s->text, *end = s->text + len;
    const char *cell = cell_next(&at, end);

    if (!cell || strcmp(cell, VERSION) != 0)
        return err_set(err, EINVAL, "the specification is for another version of the shim");
    for (size_t n = 0; (cell = cell_next(&at, end)); n++) {
        const char *cells[5] = {"", "", "", "", ""};
        size_t key = 0;

        while (key < KEYS_LEN && strcmp(keys[key].name, cell) != 0)
            key++;
        if (key == KEYS_LEN || n == SPEC_CELLS_MAX)
            return err_set(err, EINVAL, "unknown key '%s'", cell);
        for (size_t i = 0; i < keys[key].cells; i++) {
            cells[i] = cell_next(&at, end);
            if (!cells[i])
                return err_set(err, EINVAL, "'%s' is incomplete", cell);
        }
        take(s, t, (enum launch_key)key, cells);
    }
    return 0;
}

int spec_read(char *text, size_t len, struct launch_spec *ret, struct berth_err *err)
{
    struct launch_spec s = {.text = text};
    struct spec_lists t = {0};
    int rc = read_cells(&s, &t, len, err);

    vec_push(&t.args, NULL);
    vec_push(&t.env, NULL);
    s.launch.argv = t.args.at;
    s.launch.env = t.env.at;
    s.launch.groups = t.groups.at;
    s.launch.groups_len = t.groups.len;
    s.launch.rlimits = t.rlimits.at;
    s.launch.rlimits_len = t.rlimits.len;
    s.launch.procs_paths = t.procs_paths.at;
    s.launch.procs_paths_len = t.procs_paths.len;
    s.launch.mounts = t.mounts.at;
    s.launch.mounts_len = t.mounts.len;
    s.launch.socket_names = t.sockets.at;
    s.launch.sockets_len = t.sockets.len;
    if (rc == 0 && (!s.logs || !s.heard || t.sockets.len > LAUNCH_SOCKETS_MAX))
        rc = err_set(err, EINVAL, "the specification is incomplete");
    if (rc) {
        spec_done(&s);
        return rc;
    }
    *ret = s;
    return 0;
}

void spec_done(struct launch_spec *s)
{
    mem_free((void *)s->launch.argv);
    mem_free((void *)s->launch.env);
    mem_free((void *)s->launch.groups);
    mem_free((void *)s->launch.rlimits);
    mem_free((void *)s->launch.procs_paths);
    mem_free((void *)s->launch.mounts);
    mem_free((void *)s->launch.socket_names);
    mem_free(s->text);
    memset(s, 0, sizeof *s);
}

const char *env_find(const char *const *env, const char *name)
{
    size_t len = strlen(name);

    for (; env && *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return *env + len + 1;
    return NULL;
}

/* ---- the shim's mark ---- */

size_t shim_mark_text(const struct shim_mark *m, char ret[static SHIM_MARK_MAX])
{
    return (size_t)snprintf(ret, SHIM_MARK_MAX, "%d %" PRIu64 " %d %" PRIu64 " %s\n", (int)m->shim, m->shim_start,
                            (int)m->pid, m->pid_start, m->boot);
}

bool shim_mark_parse(const char *text, struct shim_mark *ret)
{
    struct shim_mark m = {0};
    char again[SHIM_MARK_MAX];
    char *at;
    size_t len;

    m.shim = (pid_t)strtol(text, &at, 10);
    m.shim_start = strtoull(at, &at, 10);
    m.pid = (pid_t)strtol(at, &at, 10);
    m.pid_start = strtoull(at, &at, 10);
    len = strcspn(at, "\n");
    if (*at != ' ' || len == 0 || len > sizeof m.boot)
        return false;
    memcpy(m.boot, at + 1, len - 1);
    shim_mark_text(&m, again);
    if (strcmp(again, text) != 0)
        return false;
    *ret = m;
    return true;
}
