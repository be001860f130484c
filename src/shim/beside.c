/* beside.c - `berth-shim exec`: from the agent's process to a program in the surroundings of a living instance.
 *
 * Where the instance is in a PID namespace, only a fork can join it: the program is then a child of this process, which ends
 * as the program has ended, and takes it along where it is killed itself.
 *
 * Descriptors 0 to 2 are its own already, 3 is where a failure is told, 4 holds what to run, in the form of a
 * spec, and 5 the same for a container's runtime.
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

enum { WISH_FD = SHIM_SOCKETS_FD, PROCESS_FD };

/* DIR/spec, and the wish. */
static int specs_read(int dir, struct spec *ret, struct spec *ret_wish, struct berth_err *err)
{
    char *text = NULL;
    size_t len = 0;
    int rc = file_read(dir, "spec", &text, &len);

    if (rc)
        return err_set(err, -rc, "cannot read what the instance was started with: %s", strerror(-rc));
    rc = spec_read(text, len, ret, err);
    if (rc)
        return rc;
    rc = fd_read(WISH_FD, &text, &len);
    return rc ? err_set(err, -rc, "cannot read what to run: %s", strerror(-rc)) : spec_read(text, len, ret_wish, err);
}

/* The instance's first process, surely. */
static int first_process(int dir, struct berth_err *err)
{
    CLEANUP(mem) char *text = NULL;
    struct shim_mark m;
    int fd = -1;

    if (file_read(dir, "shim", &text, NULL) == 0 && shim_mark_parse(text, &m))
        fd = process_open(m.pid, m.pid_start);
    return fd < 0 ? err_set(err, ESRCH, "the instance does not run") : take_fd(&fd);
}

/* Its environment, then what was asked for beside it; a name counts once, as it was said last. */
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

/* Ends as it has ended: by the same code or signal. */
static _Noreturn void end_like(int status)
{
    sigset_t all;

    if (WIFEXITED(status))
        _exit(WEXITSTATUS(status));
    (void)prctl(PR_SET_DUMPABLE, 0); /* the core is its, not this process's */
    (void)signal(WTERMSIG(status), SIG_DFL);
    sigfillset(&all);
    sigprocmask(SIG_UNBLOCK, &all, NULL);
    (void)raise(WTERMSIG(status));
    _exit(128 + WTERMSIG(status));
}

/* Returns in a child, which is in the PID namespace of the instance. */
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
    close_range(0, ~0U, 0); /* whoever waits for the program's end reads until it closes them */
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            _exit(126);
    end_like(status);
}

static int become(const char *path, struct berth_err *err)
{
    CLEANUP(close_fd) int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(close_fd) int first = -1;
    struct spec spec = {0}, wish = {0};
    const struct launch *l = &spec.launch;
    struct pollfd ended = {.events = POLLIN};
    bool terminal = isatty(0);
    int rc;

    if (dir < 0)
        return err_set(err, ESRCH, "there is no such instance");
    rc = specs_read(dir, &spec, &wish, err);
    if (rc)
        return rc;
    first = first_process(dir, err);
    if (first < 0)
        return first;
    if (fcntl(SHIM_STATUS_FD, F_SETFD, FD_CLOEXEC) || close(WISH_FD))
        return err_set(err, errno, "the shim's descriptors are missing");
    rc = l->pid_namespace ? namespace_enter(first, err) : 0;
    if (rc)
        return rc;
    setsid();
    oom_score_reset();
    if (terminal && (ioctl(0, TIOCSCTTY, 0) || (geteuid() == 0 && fchown(0, l->uid, l->gid))))
        return err_set(err, errno, "cannot take the terminal: %s", strerror(errno));
    if (l->runtime)
        return container_exec(l, PROCESS_FD, terminal, err);
    close(PROCESS_FD);
    ended.fd = first;
    rc = cgroups_enter(l, err);
    if (rc == 0 && poll(&ended, 1, 0) != 0) /* whoever ends it from here on finds this process, too */
        rc = err_set(err, ESRCH, "the instance has just ended");
    if (rc == 0 && (l->mounts_len > 0 || l->hide_processes) && setns(first, CLONE_NEWNS))
        rc = err_set(err, errno, "cannot join the instance's mounts: %s", strerror(errno));
    if (rc == 0)
        rc = user_become(l, err);
    if (rc == 0 && l->pid_namespace)
        rc = parent_bind(PARENT_OUTSIDE, err);
    if (rc == 0)
        rc = folder_enter(l, err);
    return rc ? rc : program_exec(wish.launch.argv, environment_merge(l->env, wish.launch.env), err);
}

int shim_exec(const char *dir)
{
    struct berth_err err = {0};
    struct shim_word word = {0};

    (void)become(dir, &err);
    word.code = err.code ? err.code : EIO;
    (void)snprintf(word.text, sizeof word.text, "%.*s", (int)sizeof word.text - 1, err.text);
    (void)send(SHIM_STATUS_FD, &word, sizeof word, MSG_NOSIGNAL);
    return 126;
}
