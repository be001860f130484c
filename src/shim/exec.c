/* exec.c - `berth-shim exec`: runs a program in the environment (cgroups, mounts, user) of a running instance.
 *
 * If the instance has a PID namespace, only a forked child can join it. The parent then exits with the child's exit
 * status, and the child is killed if the parent dies.
 *
 * Descriptors 0 to 2 are the program's; failures are reported on 3; 4 holds the description of the program as a spec,
 * and 5 the process description for a container's runtime.
 */
#include "shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/vec.h"

enum { PROGRAM_FD = SHIM_SOCKETS_FD, PROCESS_FD };

/* Reads DIR/spec and the description of the program. */
static int specs_read(int dir, struct launch_spec *ret, struct launch_spec *ret_program_spec, struct berth_err *err)
{
    char *text = NULL;
    size_t len = 0;
    int rc = file_read(dir, "spec", &text, &len);

    if (rc)
        return err_set(err, -rc, "cannot read the specification of the instance: %s", strerror(-rc));
    rc = spec_read(text, len, ret, err);
    if (rc)
        return rc;
    rc = fd_read(PROGRAM_FD, &text, &len);
    return rc ? err_set(err, -rc, "cannot read the command: %s", strerror(-rc))
              : spec_read(text, len, ret_program_spec, err);
}

/* Returns a pidfd of the instance's first process, verified by its start time. */
static int first_process(int dir, struct berth_err *err)
{
    CLEANUP(mem) char *text = NULL;
    struct shim_mark m;
    int fd = -1;

    if (file_read(dir, "shim", &text, NULL) == 0 && shim_mark_parse(text, &m))
        fd = process_open(m.pid, m.pid_start);
    return fd < 0 ? err_set(err, ESRCH, "the instance is not running") : take_fd(&fd);
}

/* Merges the instance's environment with additional variables; these take precedence. */
static const char **environment_merge(const char *const *base, const char *const *more)
{
    VEC(const char *) all = {0};

    for (; *base; base++) {
        size_t len = strcspn(*base, "=");
        bool again = false;

        for (size_t i = 0; more[i] && !again; i++)
            again = strncmp(more[i], *base, len) == 0 && more[i][len] == '=';
        if (!again)
            vec_push(&all, *base);
    }
    for (; *more; more++)
        vec_push(&all, *more);
    vec_push(&all, NULL);
    return all.at;
}

/* Exits with the same exit code, or by the same signal. */
static _Noreturn void exit_with_status(int status)
{
    sigset_t all;

    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    (void)prctl(PR_SET_DUMPABLE, 0); /* no second core dump: the program wrote its own */
    (void)signal(WTERMSIG(status), SIG_DFL);
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    (void)raise(WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

/* Joins the PID namespace of the instance. Returns in a forked child. */
static int namespace_enter(int first, struct berth_err *err)
{
    int status;
    pid_t pid;

    if (setns(first, CLONE_NEWPID))
        return err_set(err, errno, "cannot join the instance's PID namespace: %s", strerror(errno));
    pid = fork();
    if (pid < 0)
        return err_set(err, errno, "cannot fork in the instance's PID namespace: %s", strerror(errno));
    if (pid == 0)
        return parent_bind(PARENT_OUTSIDE, err);
    close_range(0, ~0U, 0); /* a reader waits until all copies of the descriptors are closed */
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            _exit(126);
    exit_with_status(status);
}

static int program_become(const char *path, struct berth_err *err)
{
    CLEANUP(close_fd) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(close_fd) int first = -1;
    struct launch_spec spec = {0}, program_spec = {0};
    const struct launch *l = &spec.launch;
    struct pollfd ended = {.events = POLLIN};
    bool terminal = isatty(0);
    int rc;

    if (dir < 0)
        return err_set(err, ESRCH, "unknown instance");
    rc = specs_read(dir, &spec, &program_spec, err);
    if (rc)
        return rc;
    first = first_process(dir, err);
    if (first < 0)
        return first;
    if (fcntl(SHIM_STATUS_FD, F_SETFD, FD_CLOEXEC) || close(PROGRAM_FD))
        return err_set(err, errno, "the shim's descriptors are missing");
    rc = l->pid_namespace ? namespace_enter(first, err) : 0;
    if (rc)
        return rc;
    setsid();
    oom_score_reset();
    if (terminal && (ioctl(0, TIOCSCTTY, 0) || (geteuid() == 0 && fchown(0, l->uid, l->gid))))
        return err_set(err, errno, "cannot set the controlling terminal: %s", strerror(errno));
    if (l->runtime)
        return container_exec(l, PROCESS_FD, terminal, err);
    close(PROCESS_FD);
    ended.fd = first;
    rc = cgroups_enter(l, err);
    if (rc == 0 && poll(&ended, 1, 0) != 0) /* a later kill of the cgroup includes this process */
        rc = err_set(err, ESRCH, "the instance has just ended");
    if (rc == 0 && (l->mounts_len > 0 || l->hide_processes) && setns(first, CLONE_NEWNS))
        rc = err_set(err, errno, "cannot join the instance's mounts: %s", strerror(errno));
    if (rc == 0)
        rc = user_become(l, err);
    if (rc == 0 && l->pid_namespace)
        rc = parent_bind(PARENT_OUTSIDE, err);
    if (rc == 0)
        rc = folder_enter(l, err);
    return rc ? rc : program_exec(program_spec.launch.argv, environment_merge(l->env, program_spec.launch.env), err);
}

int shim_exec(const char *dir)
{
    struct berth_err err = {0};
    struct shim_message word = {0};

    (void)program_become(dir, &err);
    word.code = err.code ? err.code : EIO;
    (void)snprintf(word.text, sizeof word.text, "%.*s", (int)sizeof word.text - 1, err.text);
    (void)send(SHIM_STATUS_FD, &word, sizeof word, MSG_NOSIGNAL);
    return 126;
}
