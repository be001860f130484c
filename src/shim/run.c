/* run.c - `berth-shim run`: from the shim's start to the start of its instance. */
#include "shim/shim.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/launch/pid_namespace.h"

/* Sends the result to launch_start, which may have exited. */
static void message_send(int fd, const struct shim *s, const struct berth_err *failure, int pidfd)
{
    struct shim_message word = {.shim = getpid(), .pid = s->pid, .pid_start = s->mark.pid_start};
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec iov = {.iov_base = &word, .iov_len = sizeof word};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};

    if (failure) {
        word.code = failure->code ? failure->code : EIO;
        (void)snprintf(word.text, sizeof word.text, "%.*s", (int)sizeof word.text - 1, failure->text);
    }
    if (pidfd >= 0) {
        struct cmsghdr *c;

        message.msg_control = control;
        message.msg_controllen = sizeof control;
        c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof pidfd);
        memcpy(CMSG_DATA(c), &pidfd, sizeof pidfd);
    }
    if (sendmsg(fd, &message, MSG_NOSIGNAL) < 0)
        return; /* the agent reads the mark instead */
}

static int mark_write(struct shim *s)
{
    char text[SHIM_MARK_MAX];
    size_t len = shim_mark_text(&s->mark, text);

    /* A single write: a concurrent reader sees nothing, the mark without the first process, or all of it. */
    if (pwrite(s->lock, text, len, 0) != (ssize_t)len)
        return -EIO;
    return ftruncate(s->lock, (off_t)len) ? -errno : 0;
}

/* Ensures that at most one shim ever runs for an instance: takes the lock, and requires that neither a mark nor an exit
 * file exists. */
static int lock_take(struct shim *s, struct berth_err *err)
{
    struct stat st;
    int rc;

    s->lock = openat(s->dir, "shim", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->lock < 0)
        return err_set(err, errno, "cannot create the shim's state file: %s", strerror(errno));
    if (flock(s->lock, LOCK_EX | LOCK_NB))
        return err_set(err, EEXIST, "the instance already has a shim");
    if (fstat(s->lock, &st))
        return err_set(err, errno, "cannot stat the shim's state file: %s", strerror(errno));
    if (st.st_size > 0 || faccessat(s->dir, "exit", F_OK, 0) == 0)
        return err_set(err, EEXIST, "the instance was already started");
    s->mark.shim = getpid();
    rc = process_start(s->mark.shim, &s->mark.shim_start);
    if (rc == 0)
        rc = boot_id(s->mark.boot);
    if (rc == 0)
        rc = mark_write(s);
    return rc ? err_set(err, -rc, "cannot write the shim's state file: %s", strerror(-rc)) : 0;
}

static int pipes_make(struct shim *s, struct berth_err *err)
{
    const struct launch *l = &s->spec.launch;
    int log[2], progress[2];

    if (pipe2(log, O_CLOEXEC) || pipe2(progress, O_CLOEXEC))
        return err_set(err, errno, "cannot create a pipe: %s", strerror(errno));
    s->log_in = log[0];
    s->log_out = log[1];
    s->progress_in = progress[0];
    s->progress_out = progress[1];
    if (fcntl(s->log_in, F_SETFL, O_NONBLOCK) || fcntl(s->progress_in, F_SETFL, O_NONBLOCK))
        return err_set(err, errno, "cannot set up a pipe: %s", strerror(errno));
    /* Owned by the user, so that the instance can reopen it (/dev/stdout), and a runtime can give it to another user of
     * a container. */
    if (geteuid() == 0 && (fchown(s->log_out, l->uid, l->gid) || fchown(s->progress_out, l->uid, l->gid)))
        return err_set(err, errno, "cannot change the owner of a pipe: %s", strerror(errno));
    return 0;
}

static int spec_load(struct shim *s, const char *dir, struct berth_err *err)
{
    char *text;
    size_t len;
    int rc;

    s->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->dir < 0)
        return err_set(err, errno, "cannot open '%s': %s", dir, strerror(errno));
    rc = file_read(s->dir, "spec", &text, &len);
    if (rc)
        return err_set(err, -rc, "cannot read '%s/spec': %s", dir, strerror(-rc));
    return spec_read(text, len, &s->spec, err);
}

/* Protects the shim from the OOM killer and from signals that are meant for the instance. */
static void protect_from_oom_and_signals(void)
{
    static const int ignored[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2};
    int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

    if (fd >= 0) {
        (void)fd_write(fd, "-999", 4); /* needs root */
        close(fd);
    }
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
        (void)signal(ignored[i], SIG_IGN);
}

static int prepare(struct shim *s, const char *dir, struct berth_err *err)
{
    sigset_t child;
    int rc = spec_load(s, dir, err);

    if (rc == 0)
        rc = lock_take(s, err);
    if (rc)
        return rc;
    file_reserve(s->dir, "exit", EXIT_BYTES);
    protect_from_oom_and_signals();
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    for (int fd = SHIM_STATUS_FD; fd < SHIM_SOCKETS_FD + (int)s->spec.launch.sockets_len; fd++)
        if (fcntl(fd, F_SETFD, FD_CLOEXEC))
            return err_set(err, errno, "descriptor %d of the shim is missing", fd);
    return pipes_make(s, err);
}

/* Starts the instance. Only the instance is forked into its PID namespace: later forks of the shim, and the leak check
 * of sanitized builds, need the shim's own namespace. */
static int spawn(struct shim *s, struct berth_err *err)
{
    const struct launch *l = &s->spec.launch;
    int rc = 0;

    if (l->pid_namespace) {
        /* before the shim becomes a subreaper: the namespace's first process must not become its child */
        s->pid_namespace = pid_namespace_join(l->pid_namespace, l->shim, err);
        rc = s->pid_namespace < 0 ? s->pid_namespace : 0;
    }
    if (rc == 0 && prctl(PR_SET_CHILD_SUBREAPER, 1))
        rc = err_set(err, errno, "cannot become the reaper of the instance: %s", strerror(errno));
    if (rc == 0)
        rc = l->runtime ? container_start(s, err) : instance_start(s, err);
    if (l->pid_namespace)
        pid_namespace_leave();
    return rc;
}

static int start(struct shim *s, struct berth_err *err)
{
    int rc = spawn(s, err);

    if (rc)
        return rc;
    close(take_fd(&s->log_out));
    close(take_fd(&s->progress_out));
    for (int i = 0; i < (int)s->spec.launch.sockets_len; i++)
        close(SHIM_SOCKETS_FD + i);
    s->mark.pid = s->pid;
    if (process_start(s->pid, &s->mark.pid_start))
        s->mark.pid_start = 0;
    (void)mark_write(s); /* without the mark the instance runs, but exec sessions cannot join it */
    return 0;
}

int shim_run(const char *dir)
{
    struct shim s = {.dir = -1, .lock = -1, .pid_namespace = -1, .status = SHIM_STATUS_FD, .ended = -1};
    struct berth_err err = {0};
    pid_t pid = fork();
    int pidfd, rc;

    if (pid < 0)
        return 71;
    if (pid > 0)
        _exit(0);
    setsid();
    umask(022);
    if (chdir("/"))
        return 71;
    pidfd = pidfd_open(getpid(), 0);
    rc = prepare(&s, dir, &err);
    message_send(s.status, &s, rc ? &err : NULL, pidfd);
    close_fd_cleanup(&pidfd);
    if (rc)
        return 1; /* does not write DIR/exit, which may belong to another shim */
    rc = fence_past(&s)
             ? err_set(&err, ETIME, "fenced before its start: no contact with the daemon for the allowed time")
             : start(&s, &err);
    if (rc) {
        CLEANUP(str) struct str text = {0};

        str_addf(&text, "error %s\n", err.text);
        (void)file_write(s.dir, "exit", text.at, text.len, true); /* launch_start receives it, too */
    }
    message_send(s.status, &s, rc ? &err : NULL, -1);
    close(take_fd(&s.status));
    if (rc)
        return 1;
    watch(&s);
    return 0;
}
