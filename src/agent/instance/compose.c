/* compose.c - starts an instance from its configuration: start marker, user, limits, files, ports, environment, exec.
 *
 * Runs on the threads of the launchers and of the cleaner. If a step fails, the earlier steps are undone.
 */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/agent_parts.h"
#include "agent/instance/mps.h"
#include "agent/instance/ports.h"
#include "agent/instance/task_env.h"
#include "machine/cgroup/limit_names.h"
#include "machine/container/leftover.h"
#include "machine/container/userns.h"
#include "machine/gpu/nvml_file.h"
#include "machine/launch/pid_namespace.h"
#include "machine/launch/proc_view.h"
#include "machine/launch/state_file.h"

/* State of one launch; texts are allocated from the arena. */
struct launch_build {
    struct agent_instance *run;
    struct arena arena;
    struct instance_user user;
    struct launch launch;
    VEC(const char *) env;
    char *procs_paths[CGROUP_PATHS_MAX];
    struct launch_mount *mounts;
    size_t mounts_len;
    struct bound_ports bound; /* its ports */
    bool vm;
    struct gpu_assignment gpus;
    struct mps_share mps; /* pipes NULL: no MPS */
    struct nvml_files devices;
};

/* ---- environment ------------------------------------------------------------------------------------------------ */

static void env_add(void *ctx, const char *name, const char *value)
{
    struct launch_build *m = ctx;
    size_t len = strlen(name);
    const char *line = arena_fmt(&m->arena, "%s=%s", name, value);
    for (size_t i = 0; i < m->env.len; i++)
        if (strncmp(m->env.at[i], name, len) == 0 && m->env.at[i][len] == '=') {
            m->env.at[i] = line;
            return;
        }
    vec_push(&m->env, line);
}

static void env_number(struct launch_build *m, const char *name, uint64_t number)
{
    char text[24];
    env_add(m, name, str_u64(number, text));
}

static void env_user(struct launch_build *m)
{
    env_add(m, "PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
    env_add(m, "LANG", "C.UTF-8");
    env_add(m, "HOME", m->user.home);
    env_add(m, "USER", m->user.name);
    env_add(m, "LOGNAME", m->user.name);
    env_add(m, "SHELL", "/bin/sh");
}

/* Sets the variables that select devices for the vendors' libraries. With an NVIDIA driver they are set even if the
 * list is empty, or the instance would use all GPUs. */
static void env_gpus(struct launch_build *m)
{
    const struct gpu_assignment *g = &m->gpus;
    CLEANUP(str) struct str list = {0};
    for (size_t i = 0; i < g->len; i++) {
        str_add(&list, i ? "," : "");
        if (*g->at[i].uuid)
            str_add(&list, g->at[i].uuid);
        else
            str_addf(&list, "%d", g->at[i].number);
    }
    if (!g->len && !g->nvidia)
        return;
    env_add(m, "CUDA_VISIBLE_DEVICES", str_text(&list));
    env_add(m, "NVIDIA_VISIBLE_DEVICES", g->len ? list.at : "void");
    if (!m->mps.pipes)
        return;
    env_add(m, "CUDA_MPS_PIPE_DIRECTORY", m->mps.pipes);
    env_number(m, "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", m->mps.percent);
    if (m->mps.limit)
        env_add(m, "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", m->mps.limit);
}

static void env_make(struct launch_build *m, const char *const *mounts_env)
{
    const struct agent_instance *r = m->run;
    const char *workload = json_string_value(json_object_get(r->config, "workload"));
    const char *name;
    json_t *value;
    if (!m->launch.runtime && !m->vm)
        env_user(m);
    task_env(r, &m->arena, env_add, m); /* before the configured variables, which take precedence */
    json_object_foreach(json_object_get(r->config, "env"), name, value)
        env_add(m, name, json_string_value(value) ? json_string_value(value) : "");
    env_gpus(m);
    env_add(m, "BERTH_NODE", r->agent->identity.node);
    env_number(m, "BERTH_INSTANCE", r->id);
    env_add(m, "BERTH_WORKLOAD", workload ? workload : "");
    env_number(m, "BERTH_ORDINAL", (uint64_t)json_integer_value(json_object_get(r->config, "ordinal")));
    bound_ports_env(&m->bound, &m->arena, env_add, m);
    for (size_t i = 0; mounts_env && mounts_env[i]; i++) {
        const char *equals = strchr(mounts_env[i], '=');
        if (equals)
            env_add(m, arena_strndup(&m->arena, mounts_env[i], (size_t)(equals - mounts_env[i])), equals + 1);
    }
    vec_push(&m->env, NULL);
    m->launch.env = m->env.at;
}

/* ---- the process ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *name;
    int resource;
} rlimit_names[] = {
    {"as",       RLIMIT_AS      },
    {"core",     RLIMIT_CORE    },
    {"cpu",      RLIMIT_CPU     },
    {"data",     RLIMIT_DATA    },
    {"fsize",    RLIMIT_FSIZE   },
    {"memlock",  RLIMIT_MEMLOCK },
    {"nofile",   RLIMIT_NOFILE  },
    {"nproc",    RLIMIT_NPROC   },
    {"stack",    RLIMIT_STACK   },
    {"msgqueue", RLIMIT_MSGQUEUE},
};

static int rlimits_make(struct launch_build *m)
{
    const json_t *given = json_object_get(m->run->config, "rlimits");
    struct launch_rlimit *list = ARENA_ARRAY(&m->arena, struct launch_rlimit, json_object_size(given) + 1);
    const char *name;
    json_t *value;
    size_t len = 0;
    if (!json_object_get(given, "core"))
        list[len++] = (struct launch_rlimit){RLIMIT_CORE, 0, 0};
    json_object_foreach((json_t *)given, name, value)
    {
        size_t i = 0;
        while (i < sizeof rlimit_names / sizeof *rlimit_names && strcmp(rlimit_names[i].name, name) != 0)
            i++;
        if (i == sizeof rlimit_names / sizeof *rlimit_names)
            return err_set(&m->run->err, EINVAL, "rlimits: this machine does not support '%s'", name);
        rlim_t to = json_integer_value(value) < 0 ? RLIM_INFINITY : (rlim_t)json_integer_value(value);
        list[len++] = (struct launch_rlimit){rlimit_names[i].resource, to, to};
    }
    m->launch.rlimits = list;
    m->launch.rlimits_len = len;
    return 0;
}

static int argv_make(struct launch_build *m)
{
    const json_t *command = json_object_get(m->run->config, "command");
    size_t len = json_array_size(command);
    const char **argv = ARENA_ARRAY(&m->arena, const char *, len + 1);
    for (size_t i = 0; i < len; i++)
        argv[i] = json_string_value(json_array_get(command, i));
    m->launch.argv = argv;
    if (len == 0 && !m->launch.runtime && !m->vm)
        return err_set(&m->run->err, EINVAL, "nothing to run: expected a command or an image");
    return 0;
}

/* Enforces a GPU share through MPS if possible; otherwise its memory use is only watched. */
static void share_make(struct launch_build *m)
{
    const struct agent_instance *r = m->run;
    const struct gpu_assignment *g = &m->gpus;
    struct berth_err err = {0};
    if (!g->share_milli || g->at[0].minor < 0 || g->at[0].instance >= 0 || m->launch.runtime ||
        r->agent->options->no_mps)
        return;
    if (mps_join(m->run, g, &m->user, &m->arena, &m->mps, &err) < 0)
        NOTE(r->agent, err.code == ENOENT ? LEVEL_INFO : LEVEL_WARN, "gpu.no-mps", LOG_NUMBER("id", (int64_t)r->id),
             LOG_TEXT("text", err.text));
}

/* Denies access to GPUs of other instances. The memory of a share that MPS does not enforce is watched. */
static void group_gpus(struct launch_build *m)
{
    struct agent_instance *r = m->run;
    const struct gpu_assignment *g = &m->gpus;
    bool unbound = g->share_milli && !m->mps.pipes;
    int rc = gpu_monitor_confine(r->agent, r->group, g);
    (void)snprintf(r->gpu_unenforced, sizeof r->gpu_unenforced, "%s%s%s", rc < 0 ? "gpu" : "",
                   rc < 0 && unbound ? "," : "", unbound ? "gpu-memory" : "");
    limit_names_join(r->unenforced, r->gpu_unenforced);
    if (*r->gpu_unenforced) /* for a restarted agent; without this file it does not know the list */
        (void)instance_dir_write(r->agent->state_dir, r->id, "gpu-unenforced", r->gpu_unenforced, NULL);
}

static int group_make(struct launch_build *m)
{
    struct agent_instance *r = m->run;
    int rc = limits_begin(r);
    if (rc < 0)
        return rc;
    group_gpus(m);
    m->launch.procs_paths_len = cgroup_procs_paths(r->agent->cgroups, r->group, m->procs_paths);
    m->launch.procs_paths = (const char *const *)m->procs_paths;
    return 0;
}

static int hostfile_add(struct launch_build *m)
{
    struct launch_mount file;
    int rc = task_hostfile(m->run, &m->arena, &file, &m->run->err);
    if (rc < 0 || !file.target)
        return rc;
    struct launch_mount *all = ARENA_ARRAY(&m->arena, struct launch_mount, m->mounts_len + 1);
    for (size_t i = 0; i < m->mounts_len; i++)
        all[i] = m->mounts[i];
    all[m->mounts_len++] = file;
    m->mounts = all;
    return 0;
}

/* Logs a reason only if it differs from the last one: many instances may use an image that cannot have a user
 * namespace. */
static void userns_reason_note(struct agent *a, const char *why)
{
    (void)pthread_mutex_lock(&a->userns_reason_lock);
    bool news = strcmp(a->userns_reason.text, why) != 0;
    (void)err_set(&a->userns_reason, EOPNOTSUPP, "%s", why);
    (void)pthread_mutex_unlock(&a->userns_reason_lock);
    if (news)
        NOTE(a, LEVEL_WARN, "container.no-userns", LOG_TEXT("text", why));
}

static void plain(void *ctx, const char *why)
{
    const struct launch_build *m = ctx;
    userns_reason_note(m->run->agent, why);
}

void compose_check(struct agent *a)
{
    struct berth_err err;
    CLEANUP(close_fd) int view = proc_view_make();
    a->hide_processes = geteuid() == 0 && view >= 0;
    if (!a->hide_processes)
        NOTE(a, LEVEL_WARN, "processes.shown",
             LOG_TEXT("text", "instances without a container see the processes of other users in /proc"),
             LOG_TEXT("reason", geteuid() != 0 ? "the agent is not root" : strerror(-view)));
    int rc = a->hide_processes ? pid_namespace_check() : 0;
    a->pid_namespaces = a->hide_processes && rc == 0;
    if (rc)
        NOTE(a, LEVEL_WARN, "processes.numbered-together",
             LOG_TEXT("text", "jobs share the PIDs of the node: cannot create a PID namespace"),
             LOG_TEXT("reason", strerror(-rc)));
    if (!a->oci || a->options->no_user_namespaces || geteuid() != 0)
        return;
    a->user_namespaces = userns_check(&err) == 0;
    if (!a->user_namespaces)
        userns_reason_note(a, err.text);
}

static int bundle(struct launch_build *m)
{
    struct agent_instance *r = m->run;
    const char *as = json_string_value(json_object_get(r->config, "run_as"));
    char path[STATE_PATH_MAX], group[STATE_PATH_MAX];
    struct bundle_options options = {
        .cgroup_path = cgroup_path(r->agent->cgroups, r->group, group, sizeof group),
        .user = &m->user,
        .mounts = m->mounts,
        .mounts_len = m->mounts_len,
        .env = m->launch.env,
        .rlimits = m->launch.rlimits,
        .rlimits_len = m->launch.rlimits_len,
        .all_syscalls = r->agent->options->all_syscalls,
        .user_namespace = r->agent->user_namespaces && !(as && strcmp(as, "owner") == 0),
        .plain = plain,
        .ctx = m,
        .sockets_len = m->bound.sockets_len,
        .devices = m->devices.at,
    };
    for (size_t i = 0; i < m->gpus.len; i++)
        nvml_files_add(&m->devices, m->gpus.at[i].minor, m->gpus.at[i].instance, m->gpus.at[i].compute);
    options.devices_len = m->devices.len;
    int rc = bundle_make(r->agent->state_dir, r->id, r->config, &options, &r->err);
    if (rc == 0)
        rc = instance_dir_path(r->agent->state_dir, r->id, "bundle", path);
    m->launch.bundle = arena_strdup(&m->arena, path);
    return rc;
}

static int machine(struct launch_build *m)
{
    struct agent_instance *r = m->run;
    const json_t *port_specs = json_object_get(r->config, "ports");
    struct vm_port ports[ENDPOINTS_MAX];
    struct vm_options options = {.user = &m->user, .env = m->launch.env, .ports = ports};
    for (size_t i = 0; i < m->bound.ports_len; i++) {
        const json_t *port_spec = json_array_get(port_specs, i);
        const char *protocol = json_string_value(json_object_get(port_spec, "protocol"));
        json_int_t guest = json_integer_value(json_object_get(port_spec, "guest"));
        if (guest < 1 || guest > UINT16_MAX)
            return err_set(&r->err, EINVAL, "endpoint %s: the guest port is missing", m->bound.ports[i].endpoint);
        ports[options.ports_len++] =
            (struct vm_port){protocol && strcmp(protocol, "udp") == 0, m->bound.ports[i].port, (uint16_t)guest};
    }
    int rc = vm_make(r->agent->state_dir, r->id, r->config, &options, &m->arena, &m->launch, &r->err);
    m->launch.groups_len = m->user.groups_len;
    return rc;
}

/* Sets the PID namespace that tasks of one job of one user share on this node. The name includes the uid and kind, as
 * another user's or kind's workload of the same name may still be ending. Without a cgroup there is no way to find
 * orphaned processes of such a namespace. */
static int pid_namespace_choose(struct launch_build *m)
{
    struct agent_instance *r = m->run;
    const char *kind = json_string_value(json_object_get(r->config, "kind"));
    const char *workload = json_string_value(json_object_get(r->config, "workload"));
    char name[NAME_MAX + 1], path[STATE_PATH_MAX];
    if (!r->agent->pid_namespaces || !m->launch.hide_processes || m->launch.procs_paths_len == 0 || m->launch.runtime)
        return 0;
    int n = snprintf(name, sizeof name, "%u-%s-%s", (unsigned)m->user.uid, kind ? kind : "", workload ? workload : "");
    int rc = n < 0 || n >= (int)sizeof name ? -ENAMETOOLONG
                                            : state_dir_entry_path(r->agent->state_dir, "pid-namespaces", name, path);
    if (rc < 0)
        return err_set(&r->err, -rc, "'%s' is not a valid name for a PID namespace: %s", workload, strerror(-rc));
    m->launch.pid_namespace = arena_strdup(&m->arena, path);
    return 0;
}

static void launch_fill(struct launch_build *m)
{
    struct agent_instance *r = m->run;
    const json_t *log = json_object_get(r->config, "log");
    struct launch *l = &m->launch;
    l->id = r->id;
    l->shim = r->agent->shim;
    l->cwd = json_string_value(json_object_get(r->config, "workdir"));
    l->uid = m->user.uid;
    l->gid = m->user.gid;
    l->groups = m->user.groups;
    l->groups_len = m->user.groups_len;
    l->mounts = m->mounts;
    l->mounts_len = m->mounts_len;
    l->sockets = m->bound.sockets;
    l->socket_names = m->bound.socket_names;
    l->sockets_len = m->bound.sockets_len;
    l->log_bytes = (uint64_t)json_integer_value(json_object_get(log, "bytes"));
    l->log_files = (unsigned)json_integer_value(json_object_get(log, "files"));
    l->fence_ns = json_integer_value(json_object_get(r->config, "fence_ns"));
    l->all_syscalls = r->agent->options->all_syscalls;
    l->hide_processes = r->agent->hide_processes && !m->vm;
    l->stop_signal = SIGTERM;
}

/* ---- launch, change, cleanup ------------------------------------------------------------------------------------ */

static int runtime_choose(struct launch_build *m)
{
    struct agent_instance *r = m->run;
    const char *runtime = json_string_value(json_object_get(r->config, "runtime"));
    bool contains = json_object_get(r->config, "image") || json_object_get(r->config, "rootfs");
    m->vm = image_is_vm(r->config);
    if (m->vm)
        return 0;
    if (runtime && strcmp(runtime, "process") != 0 && strcmp(runtime, "oci") != 0)
        return err_set(&r->err, ENOTSUP, "this node has no runtime '%s'", runtime);
    if (runtime && strcmp(runtime, "oci") == 0 && !contains)
        return err_set(&r->err, EINVAL, "a container needs an image or a rootfs");
    if (!contains)
        return 0;
    m->launch.runtime = r->agent->oci;
    return r->agent->oci
               ? 0
               : err_set(&r->err, ENOTSUP, "this node cannot run containers: neither crun nor runc is installed");
}

/* Finds the user that the instance runs as. `launch`: the instance is about to be started. */
static int user_find(struct agent_instance *r, bool launch, struct instance_user *ret, struct berth_err *err)
{
    const struct user_query ask = {
        .owner = instance_owner(r),
        .uid = (uid_t)json_integer_value(json_object_get(r->config, "uid")),
        .no_account = json_is_false(json_object_get(r->config, "account")),
        .launch = launch,
        .alone = r->alone,
    };
    int rc = users_resolve(r->agent->users, &ask, ret, err);
    if (rc == 0 && ret->old_number)
        NOTE(r->agent, LEVEL_INFO, "user.old-number", LOG_TEXT("owner", ask.owner), LOG_NUMBER("uid", ret->uid),
             LOG_NUMBER("later", ask.uid),
             LOG_TEXT("text", "instances of the owner are running; its files are moved after they end"));
    return rc;
}

static int steps(struct launch_build *m)
{
    struct agent_instance *r = m->run;
    const char **mounts_env = NULL;
    int rc = runtime_choose(m);
    if (rc == 0)
        rc = user_find(r, true, &m->user, &r->err);
    if (rc == 0)
        rc = gpu_monitor_assign(r->agent->gpus, r->config, &m->gpus, &r->err);
    if (rc == 0)
        rc = rlimits_make(m);
    if (rc == 0)
        rc = argv_make(m);
    if (rc == 0) {
        share_make(m);
        rc = group_make(m);
    }
    if (rc == 0)
        rc = mounts_make(r->agent->state_dir, r->id, r->config, &m->user, instance_secret, r, &m->arena, &m->mounts,
                         &m->mounts_len, &mounts_env, &r->err);
    if (rc == 0 && !m->vm)
        rc = hostfile_add(m);
    if (rc == 0)
        rc = bound_ports_make(r, &m->bound, &r->err);
    if (rc < 0)
        return rc;
    launch_fill(m);
    rc = pid_namespace_choose(m);
    if (rc < 0)
        return rc;
    env_make(m, (const char *const *)mounts_env);
    rc = m->vm ? machine(m) : m->launch.runtime ? bundle(m) : 0;
    if (rc == 0)
        rc = bound_ports_save(r, &m->bound, &r->err);
    rc = rc == 0 ? launch_start(r->agent->state_dir, &m->launch, &r->launched, &r->err) : rc;
    if (rc == 0 && m->launch.bundle)
        bundle_started(r->agent->state_dir, r->id);
    return rc;
}

int compose_launch(struct agent_instance *r)
{
    char *text = json_dumps(r->config, JSON_COMPACT);
    int rc = instance_dir_create(r->agent->state_dir, r->id, text, &r->err);
    free(text);
    if (rc < 0)
        return rc;
    struct launch_build *m = mem_zalloc(sizeof *m);
    m->run = r;
    arena_init(&m->arena);
    rc = steps(m);
    if (rc < 0) {
        struct berth_err why = r->err;
        (void)compose_clear(r); /* what cannot be removed now is removed when the instance is forgotten */
        r->err = why;
    }
    for (size_t i = 0; i < CGROUP_PATHS_MAX; i++)
        mem_free(m->procs_paths[i]);
    bound_ports_done(&m->bound);
    vec_done(&m->env);
    arena_done(&m->arena);
    mem_free(m);
    return rc;
}

/* Saves the current configuration for a restarted agent; if that fails, it uses an older one until the daemon sends the
 * current one. Without `applied`, the saved document is marked so that it differs from the daemon's and is applied
 * again. */
static void save_current_config(struct agent_instance *r, bool applied)
{
    CLEANUP(json) json_t *config = json_copy(r->config);
    if (!applied)
        (void)json_object_set_new(config, "unapplied", json_true());
    char *text = json_dumps(config, JSON_COMPACT);
    if (text)
        (void)instance_dir_write(r->agent->state_dir, r->id, "changed.json", text, NULL);
    free(text);
}

int compose_change(struct agent_instance *r)
{
    struct instance_user *user = mem_zalloc(sizeof *user);
    save_current_config(r, false);
    int rc = limits_change(r);
    if (rc == 0)
        rc = user_find(r, false, user, &r->err);
    if (rc == 0)
        rc = mounts_change(r->agent->state_dir, r->id, r->config, user, instance_secret, r, &r->err);
    if (rc == 0)
        save_current_config(r, true);
    mem_free(user);
    return rc;
}

void compose_leftovers(struct agent_instance *r)
{
    struct instance_user *user = mem_zalloc(sizeof *user);
    struct berth_err err;
    if (user_find(r, false, user, &err) == 0 && user->given)
        (void)leftovers_remove(user->uid, user->uids, leftover_folders, agent_clock_ns());
    users_release(r->agent->users, instance_owner(r));
    mem_free(user);
}

int compose_clear(struct agent_instance *r)
{
    struct agent *a = r->agent;
    if (r->cleared) /* an instance is started only once */
        return 0;
    int rc = cgroup_kill(a->cgroups, r->group);
    if (rc < 0 && rc != -ENOENT)
        return err_set(&r->err, EBUSY, "some of its processes cannot be killed");
    rc = bundle_end(a->state_dir, r->id, &r->err);
    if (rc == 0)
        rc = mounts_end(a->state_dir, r->id, &r->err);
    if (rc == 0 || rc == -ENOENT) {
        limits_end(r);
        rc = cgroup_remove(a->cgroups, r->group);
        if (rc == 0 || rc == -ENOENT)
            rc = mps_leave(r);
    }
    r->cleared = rc == 0 || rc == -ENOENT;
    return r->cleared ? 0 : rc;
}
