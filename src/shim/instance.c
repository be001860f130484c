/* instance.c - starts the instance's process: drops privileges, applies its limits and descriptors, executes its
 * program.
 */
#include "shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"
#include "machine/launch/syscalls.h"

#define PATH_DEFAULT "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

int cgroups_enter(const struct launch *l, struct berth_err *err)
{
    for (size_t i = 0; i < l->procs_paths_len; i++) {
        CLEANUP(close_fd) int fd = open(l->procs_paths[i], O_WRONLY | O_CLOEXEC);
        int rc = fd < 0 ? -errno : fd_write(fd, "0", 1); /* 0: the writing process */

        if (rc)
            return err_set(err, -rc, "cannot enter the cgroup '%s': %s", l->procs_paths[i], strerror(-rc));
    }
    return 0;
}

int user_become(const struct launch *l, struct berth_err *err)
{
    for (size_t i = 0; i < l->rlimits_len; i++) {
        struct rlimit limit = {.rlim_cur = l->rlimits[i].soft, .rlim_max = l->rlimits[i].hard};

        if (setrlimit((__rlimit_resource_t)l->rlimits[i].resource, &limit))
            return err_set(err, errno, "cannot set resource limit %d: %s", l->rlimits[i].resource, strerror(errno));
    }
    /* An agent that is not root runs all instances as its own user. */
    if (geteuid() == 0 &&
        (setgroups(l->groups_len, l->groups) || setresgid(l->gid, l->gid, l->gid) || setresuid(l->uid, l->uid, l->uid)))
        return err_set(err, errno, "cannot become user %u: %s", (unsigned)l->uid, strerror(errno));
    if (geteuid() != l->uid || getegid() != l->gid)
        return err_set(err, EPERM, "cannot become user %u: the agent is not root", (unsigned)l->uid);
    if (!l->trusted && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return err_set(err, errno, "cannot set no_new_privs: %s", strerror(errno));
    return l->trusted || l->all_syscalls ? 0 : syscalls_narrow(err);
}

int folder_enter(const struct launch *l, struct berth_err *err)
{
    const char *home = env_find(l->env, "HOME");

    umask(022);
    if (l->cwd) {
        if (chdir(l->cwd))
            return err_set(err, errno, "cannot enter the folder '%s': %s", l->cwd, strerror(errno));
        return 0;
    }
    if ((!home || chdir(home)) && chdir("/"))
        return err_set(err, errno, "cannot enter '/': %s", strerror(errno));
    return 0;
}

void signals_reset(void)
{
    static const char zero[64]; /* the kernel's struct sigaction: SIG_DFL, no flags */
    sigset_t none;

    /* By system call, because sigaction of the C library refuses its two internal signals, which would stay ignored. */
    for (int i = 1; i < NSIG; i++)
        (void)syscall(SYS_rt_sigaction, i, zero, NULL, (size_t)(NSIG - 1) / 8); /* fails for SIGKILL and SIGSTOP */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* ---- exec ---- */

static int exec_failed(const char *path, int code, struct berth_err *err)
{
    if (code == ENOENT && access(path, F_OK) == 0)
        return err_set(err, code, "cannot run '%s': its interpreter does not exist", path);
    if (code == E2BIG)
        return err_set(err, code, "cannot run '%s': its arguments and environment are too long", path);
    if (code == ENOEXEC)
        return err_set(err, code, "cannot run '%s': it is neither a program for this architecture nor a script with #!",
                       path);
    return err_set(err, code, "cannot run '%s': %s", path, strerror(code));
}

int program_exec(const char *const *argv, const char *const *env, struct berth_err *err)
{
    const char *path = env_find(env, "PATH"), *name = argv[0];
    size_t name_len = strlen(name);
    bool denied = false;

    if (strchr(name, '/')) {
        execve(name, (char *const *)argv, (char *const *)env);
        return exec_failed(name, errno, err);
    }
    if (!path)
        path = PATH_DEFAULT;
    for (;;) {
        size_t len = strcspn(path, ":");
        char full[4096];

        /* Empty parts of PATH are skipped; the working directory must be written as "." */
        if (len > 0 && len + name_len + 2 <= sizeof full) {
            (void)snprintf(full, sizeof full, "%.*s/%s", (int)len, path, name);
            execve(full, (char *const *)argv, (char *const *)env);
            if (errno == EACCES)
                denied = true;
            else if ((errno != ENOENT && errno != ENOTDIR && errno != ENAMETOOLONG) || access(full, F_OK) == 0)
                return exec_failed(full, errno, err);
        }
        path += len;
        if (!*path++)
            break;
    }
    if (denied)
        return err_set(err, EACCES, "the program '%s' in PATH is not executable for this user", name);
    return err_set(err, ENOENT, "no program '%s' in PATH", name);
}

/* ---- the child ---- */

struct environment {
    const char **at;
    size_t len, cap;
    char fds[32], pid[32], progress[40], *names;
};

static const char *const ours[] = {"LISTEN_FDS=", "LISTEN_PID=", "LISTEN_FDNAMES=", "BERTH_PROGRESS_FD="};

static bool is_ours(const char *assignment)
{
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (strncmp(assignment, ours[i], strlen(ours[i])) == 0)
            return true;
    return false;
}

static void environment_make(const struct launch *l, struct environment *e)
{
    CLEANUP(str) struct str names = {0};

    for (size_t i = 0; l->env[i]; i++)
        if (!is_ours(l->env[i]))
            vec_push(e, l->env[i]);
    (void)snprintf(e->progress, sizeof e->progress, "BERTH_PROGRESS_FD=%zu", 3 + l->sockets_len);
    vec_push(e, e->progress);
    if (l->sockets_len > 0) {
        (void)snprintf(e->fds, sizeof e->fds, "LISTEN_FDS=%zu", l->sockets_len);
        (void)snprintf(e->pid, sizeof e->pid, "LISTEN_PID=%d", (int)getpid());
        for (size_t i = 0; i < l->sockets_len; i++)
            str_addf(&names, "%s%s", i ? ":" : "LISTEN_FDNAMES=", l->socket_names[i]);
        e->names = str_take(&names);
        vec_push(e, e->fds);
        vec_push(e, e->pid);
        vec_push(e, e->names);
    }
    vec_push(e, NULL);
}

int descriptors_arrange(const struct shim *s, int *failed, struct berth_err *err)
{
    int sockets = (int)s->spec.launch.sockets_len, last = 3 + sockets, above = SHIM_SOCKETS_FD + sockets + 8;
    int log = fcntl(s->log_out, F_DUPFD_CLOEXEC, above), progress = fcntl(s->progress_out, F_DUPFD_CLOEXEC, above);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC), fail = fcntl(*failed, F_DUPFD_CLOEXEC, above);
    bool ok = log >= 0 && progress >= 0 && fail >= 0 && null >= 0 && dup2(null, 0) == 0 && dup2(log, 1) == 1 &&
              dup2(log, 2) == 2;

    for (int i = 0; ok && i < sockets; i++)
        ok = dup2(SHIM_SOCKETS_FD + i, 3 + i) >= 0;
    ok = ok && dup2(progress, last) == last && dup3(fail, last + 1, O_CLOEXEC) == last + 1 &&
         close_range((unsigned)last + 2, ~0U, 0) == 0;
    if (!ok)
        return err_set(err, errno, "cannot arrange the descriptors of the instance: %s", strerror(errno));
    *failed = last + 1;
    return 0;
}

void oom_score_reset(void)
{
    CLEANUP(close_fd) int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0)
        (void)fd_write(fd, "0", 1); /* raising the score needs no privilege */
}

/* Makes the kernel kill this process when its parent dies. A change of uid clears this setting. */
int parent_bind(pid_t parent, struct berth_err *err)
{
    if (prctl(PR_SET_PDEATHSIG, SIGKILL))
        return err_set(err, errno, "cannot set the parent-death signal of the instance: %s", strerror(errno));
    return getppid() == parent ? 0 : err_set(err, ECHILD, "the shim has died");
}

static int child(struct shim *s, pid_t shim, int *failed, struct berth_err *err)
{
    const struct launch *l = &s->spec.launch;
    struct environment env = {0};
    int rc = parent_bind(shim, err);

    if (rc == 0)
        rc = cgroups_enter(l, err);
    oom_score_reset();
    if (rc == 0 && (l->mounts_len > 0 || l->hide_processes))
        rc = mounts_enter(l, err);
    setsid();
    if (rc == 0)
        rc = descriptors_arrange(s, failed, err);
    signals_reset();
    if (rc == 0)
        rc = user_become(l, err);
    if (rc == 0)
        rc = parent_bind(shim, err);
    if (rc == 0)
        rc = folder_enter(l, err);
    if (rc)
        return rc;
    environment_make(l, &env);
    return program_exec(l->argv, env.at, err);
}

int instance_start(struct shim *s, struct berth_err *err)
{
    pid_t shim = s->pid_namespace < 0 ? getpid() : PARENT_OUTSIDE, pid;
    struct berth_err failure = {0};
    int failed[2];
    ssize_t n;

    if (pipe2(failed, O_CLOEXEC))
        return err_set(err, errno, "cannot create a pipe: %s", strerror(errno));
    pid = fork();
    if (pid < 0) {
        int code = errno;

        close(failed[0]);
        close(failed[1]);
        return err_set(err, code, "cannot fork: %s", strerror(code));
    }
    if (pid == 0) {
        (void)child(s, shim, &failed[1], &failure);
        (void)fd_write(failed[1], &failure, sizeof failure);
        _exit(127);
    }
    close(failed[1]);
    do
        n = read(failed[0], &failure, sizeof failure);
    while (n < 0 && errno == EINTR);
    close(failed[0]);
    if (n == 0) { /* exec has closed the pipe */
        s->pid = pid;
        return 0;
    }
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    if (n != sizeof failure)
        return err_set(err, EIO, "the instance's process died before its program ran");
    failure.text[sizeof failure.text - 1] = 0;
    return err_set(err, failure.code, "%s", failure.text);
}
