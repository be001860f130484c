/* mps.c - starts and stops MPS control daemons, one for each GPU and owner. */
#include "agent/instance/mps.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent_parts.h"
#include "machine/image/oci_tool.h"
#include "machine/launch/state_file.h"
#include "machine/mount/mount_tree.h"

#define CONTROL "nvidia-cuda-mps-control"
enum { KEY_MAX = 64, PERMILLE_PERCENT = 10, SOCKET_PATH_MAX = 108, SOCKET_NAME_MAX = 24 };

/* Limits of the daemon and its server. Both run as the owner, who can control them, so their resources are bounded. */
static const struct cgroup_limits daemon_limits = {.cpu_milli = 2000, .memory_bytes = INT64_C(2) << 30, .pids = 512};

/* Builds STATE/mps/KEY[/part]; key "0.200000" is GPU 0 and uid 200000. Kept short, because paths of sockets are
 * limited. */
static const char *folder(const struct agent *a, const char *key, const char *part, char buf[static PATH_MAX])
{
    (void)snprintf(buf, PATH_MAX, "%s/mps/%s%s%s", state_dir_path(a->state_dir), key, *part ? "/" : "", part);
    return buf;
}

static void group_name(const char *key, char ret[static KEY_MAX + 8])
{
    (void)snprintf(ret, KEY_MAX + 8, "mps-%s", key);
}

/* ---- the daemon ------------------------------------------------------------------------------------------------- */

static int folder_make(const struct agent *a, const char *key, const char *part, const struct instance_user *user)
{
    char path[PATH_MAX];
    folder(a, key, part, path);
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return -errno;
    return user && chown(path, user->uid, user->gid) < 0 ? -errno : chmod(path, user ? 0700 : 0711) < 0 ? -errno : 0;
}

static int folders_make(const struct agent *a, const char *key, const struct instance_user *user)
{
    int rc = folder_make(a, "", "", NULL);
    rc = rc < 0 ? rc : folder_make(a, key, "", NULL);
    rc = rc < 0 ? rc : folder_make(a, key, "users", NULL);
    rc = rc < 0 ? rc : folder_make(a, key, "pipe", user);
    return rc < 0 ? rc : folder_make(a, key, "log", user);
}

/* Starts the daemon inside its cgroup, so that all its children stay in it. */
static int daemon_start(const struct agent *a, const char *key, const char *uuid, const struct instance_user *user,
                        const char *const *procs_paths, struct berth_err *err)
{
    char program[PATH_MAX], path[PATH_MAX];
    CLEANUP(str) struct str pipes = {0}, logs = {0}, gpu = {0}, uid = {0}, gid = {0};
    if (tool_find(CONTROL, program) < 0)
        return err_set(err, ENOENT, CONTROL " is not installed");
    str_addf(&pipes, "CUDA_MPS_PIPE_DIRECTORY=%s", folder(a, key, "pipe", path));
    str_addf(&logs, "CUDA_MPS_LOG_DIRECTORY=%s", folder(a, key, "log", path));
    str_addf(&gpu, "CUDA_VISIBLE_DEVICES=%s", uuid);
    str_addf(&uid, "--reuid=%u", (unsigned)user->uid);
    str_addf(&gid, "--regid=%u", (unsigned)user->gid);
    const char *const argv[] = {"setpriv",
                                uid.at,
                                gid.at,
                                "--clear-groups",
                                "--no-new-privs",
                                "env",
                                "-i",
                                pipes.at,
                                logs.at,
                                gpu.at,
                                "PATH=/usr/local/nvidia/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                program,
                                "-d",
                                NULL};
    const struct tool tool = {.argv = argv,
                              .dir = -1,
                              .timeout_ns = 10 * SECOND_NS,
                              .procs_paths = procs_paths,
                              .what = "cannot start " CONTROL};
    return tool_run(&tool, NULL, err);
}

static int daemon_ensure(const struct agent *a, const char *key, const struct gpu_assignment *grant,
                         const struct instance_user *user, struct berth_err *err)
{
    char group[KEY_MAX + 8], path[PATH_MAX], unenforced[CGROUP_LIST_MAX];
    char *procs_paths[CGROUP_PATHS_MAX + 1] = {0};
    group_name(key, group);
    bool lives = !cgroup_empty(a->cgroups, group);
    CLEANUP(close_fd) int before = lives ? -1 : open(folder(a, key, "", path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (before >= 0)
        (void)tree_remove(before, "pipe"); /* left by a daemon that ended with a machine crash */
    int rc = folders_make(a, key, user);
    if (rc < 0)
        return err_set(err, -rc, "cannot create %s: %s", folder(a, key, "", path), strerror(-rc));
    if (lives)
        return 0;
    rc = cgroup_make(a->cgroups, group, &daemon_limits, unenforced, err);
    if (rc == 0)
        (void)gpu_monitor_confine(a, group, grant); /* if this fails, the same failure is reported for the instance */
    size_t len = rc == 0 ? cgroup_procs_paths(a->cgroups, group, procs_paths) : 0;
    if (rc == 0)
        rc = daemon_start(a, key, grant->at[0].uuid, user, (const char *const *)procs_paths, err);
    if (rc == 0 && cgroup_empty(a->cgroups, group))
        rc = err_set(err, ESRCH, CONTROL " exited immediately");
    for (size_t i = 0; i < len; i++)
        mem_free(procs_paths[i]);
    return rc;
}

/* ---- its end ---------------------------------------------------------------------------------------------------- */

static bool has_users(const struct agent *a, const char *key)
{
    char path[PATH_MAX];
    return rmdir(folder(a, key, "users", path)) < 0 && errno != ENOENT;
}

static int daemon_end(const struct agent *a, const char *key)
{
    char group[KEY_MAX + 8], path[PATH_MAX];
    group_name(key, group);
    int rc = cgroup_kill(a->cgroups, group);
    if (rc == 0 || rc == -ENOENT)
        rc = cgroup_remove(a->cgroups, group);
    if (rc < 0 && rc != -ENOENT)
        return rc;
    CLEANUP(close_fd) int all = open(folder(a, "", "", path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)tree_remove(all, key); /* what cannot be removed now is removed at the next end */
    return 0;
}

/* ---- instances -------------------------------------------------------------------------------------------------- */

static int user_note(const struct agent *a, const char *key, uint64_t id)
{
    char path[PATH_MAX], part[48];
    (void)snprintf(part, sizeof part, "users/%" PRIu64, id);
    CLEANUP(close_fd) int fd = open(folder(a, key, part, path), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : 0;
}

int mps_join(struct agent_instance *r, const struct gpu_assignment *grant, const struct instance_user *user,
             struct arena *arena, struct mps_share *ret, struct berth_err *err)
{
    struct agent *a = r->agent;
    char key[KEY_MAX], path[PATH_MAX];
    if (strcmp(cgroups_version(a->cgroups), "none") == 0)
        return err_set(err, ENOTSUP, "MPS needs control groups on this node");
    (void)snprintf(key, sizeof key, "%d.%u", grant->at[0].minor, (unsigned)user->uid);
    if (strlen(folder(a, key, "pipe/", path)) + SOCKET_NAME_MAX > SOCKET_PATH_MAX)
        return err_set(err, ENAMETOOLONG, "the path %s is too long for MPS sockets", path);
    (void)pthread_mutex_lock(&a->mps_lock);
    int rc = daemon_ensure(a, key, grant, user, err);
    if (rc == 0)
        rc = user_note(a, key, r->id);
    if (rc < 0 && !has_users(a, key))
        (void)daemon_end(a, key);
    (void)pthread_mutex_unlock(&a->mps_lock);
    if (rc < 0)
        return rc;
    ret->pipes = arena_strdup(arena, folder(a, key, "pipe", path));
    ret->percent = (unsigned)(grant->share_milli + PERMILLE_PERCENT - 1) / PERMILLE_PERCENT;
    ret->limit = grant->share_bytes ? arena_fmt(arena, "0=%" PRId64 "M", grant->share_bytes >> 20) : NULL;
    return 0;
}

int mps_leave(struct agent_instance *r)
{
    struct agent *a = r->agent;
    char path[PATH_MAX], part[48];
    int rc = 0;
    if (!json_object_get(r->config, "gpu_milli"))
        return 0;
    (void)snprintf(part, sizeof part, "users/%" PRIu64, r->id);
    (void)pthread_mutex_lock(&a->mps_lock);
    DIR *dir = opendir(folder(a, "", "", path));
    for (const struct dirent *e; rc == 0 && dir && (e = readdir(dir));) {
        if (e->d_name[0] == '.' || strlen(e->d_name) >= KEY_MAX)
            continue;
        (void)unlink(folder(a, e->d_name, part, path));
        if (!has_users(a, e->d_name))
            rc = daemon_end(a, e->d_name);
    }
    if (dir)
        (void)closedir(dir);
    (void)pthread_mutex_unlock(&a->mps_lock);
    return rc < 0 ? err_set(&r->err, EBUSY, "its MPS daemon cannot be stopped") : 0;
}
