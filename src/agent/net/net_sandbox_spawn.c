/* net_sandbox_spawn.c - finds the user of the net sandbox, starts its process, and runs a temporary sandbox for a
 * single request.
 */
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/net/net_frame.h"
#include "agent/net/net_sandbox.h"
#include "base/mem.h"
#include "machine/launch/launch_spawn.h"
#include "machine/launch/state_file.h"

enum { ASK_TIMEOUT_MS = 60000, ASK_BYTES_MAX = 1 << 20 };

/* ---- user ------------------------------------------------------------------------------------------------------- */

int net_sandbox_user_find(const struct agent_options *o, struct net_sandbox_user *ret, struct berth_err *err)
{
    const char *name = o->network_user ? o->network_user : "berth-agent";
    uid_t number = (uid_t)o->uid_first - 1;
    if (geteuid() != 0) {
        if (o->network_user)
            return err_set(err, EPERM, "--network-user: needs root");
        *ret = (struct net_sandbox_user){geteuid(), getegid()};
        return 0;
    }
    const struct passwd *account = getpwnam(name);
    if (account && (account->pw_uid == 0 || account->pw_gid == 0))
        return err_set(err, EINVAL, "--network-user: '%s' is %s; use an unprivileged account", name,
                       account->pw_uid == 0 ? "root" : "in root's group");
    if (account) {
        *ret = (struct net_sandbox_user){account->pw_uid, account->pw_gid};
        return 0;
    }
    if (o->network_user)
        return err_set(err, ENOENT, "--network-user: account '%s' does not exist on this machine", name);
    if (getpwuid(number) || getgrgid(number)) /* used as uid and as gid */
        return err_set(err, EEXIST,
                       "UID or GID %u, the one below --uid-first, is already in use; create an unprivileged account "
                       "'berth-agent', or choose one with --network-user",
                       (unsigned)number);
    *ret = (struct net_sandbox_user){number, number};
    return 0;
}

/* ---- start ------------------------------------------------------------------------------------------------------ */

int net_sandbox_spawn(const struct net_sandbox_user *user, pid_t *ret_pid, int *ret_fd, struct berth_err *err)
{
    char uid[24], gid[24];
    const char *const argv[] = {"berth-agent", "network", str_u64(user->uid, uid), str_u64(user->gid, gid), NULL};
    int ends[2];
    pid_t pid = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return err_set(err, errno, "cannot create a pair of sockets: %s", strerror(errno));
    CLEANUP(close_fd) int ours = ends[0], its = ends[1];
    const int fds[] = {-1, -1, STDERR_FILENO, its};
    /* Executes the same program again, even if its file was replaced: a fresh address space never held root's
     * secrets. */
    int rc = spawn_with("/proc/self/exe", argv, (const char *const *)environ, fds, sizeof fds / sizeof *fds, &pid);
    if (rc < 0)
        return err_set(err, -rc, "cannot start the net sandbox: %s", strerror(-rc));
    *ret_pid = pid;
    *ret_fd = take_fd(&ours);
    return 0;
}

/* ---- a single request ------------------------------------------------------------------------------------------- */

static int question_send(int fd, const char *url, const char *pin, const char *body)
{
    CLEANUP(str) struct str out = {0};
    size_t began = net_frame_begin(&out, NET_FRAME_JOIN, 1), sent = 0;
    net_frame_add_text(&out, url);
    net_frame_add_text(&out, pin);
    str_add(&out, body);
    net_frame_end(&out, began);
    while (sent < out.len) {
        ssize_t n = send(fd, out.at + sent, out.len - sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            break;
        sent += n > 0 ? (size_t)n : 0;
    }
    int rc = sent < out.len ? -errno : 0;
    explicit_bzero(out.at, out.len); /* it contains the join token */
    return rc;
}

/* Handles one frame of the answer. 0: more frames follow; 1: the answer is complete. */
static int answer_take(struct net_frame *f, struct str *answer, int64_t *ret_status, struct berth_err *err)
{
    char text[NET_FRAME_TEXT_BYTES_MAX + 1];
    if (f->kind == NET_FRAME_DATA && f->len <= ASK_BYTES_MAX - answer->len) {
        str_add_bytes(answer, f->at, f->len);
        return 0;
    }
    if (f->kind == NET_FRAME_DATA || !net_frame_take_number(f, ret_status))
        return err_set(err, EPROTO, "the answer is too large");
    net_frame_take_printable(f, text);
    if (f->kind == NET_FRAME_CERTIFICATE || *ret_status < 100 || *ret_status > 999)
        return err_set(err, EIO, "%s", text);
    return 1;
}

static int answer_read(int fd, struct str *answer, int64_t *ret_status, struct berth_err *err)
{
    CLEANUP(str) struct str in = {0};
    CLEANUP(mem) char *room = mem_alloc(NET_FRAME_DATA_BYTES_MAX);
    struct net_frame frame;
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        ssize_t n = poll(&wait, 1, ASK_TIMEOUT_MS) > 0 ? recv(fd, room, NET_FRAME_DATA_BYTES_MAX, 0) : 0;
        if (n <= 0)
            return err_set(err, EIO, "the net sandbox of the agent did not answer");
        str_add_bytes(&in, room, (size_t)n);
        while ((n = net_frame_read(in.at, in.len, true, &frame)) != 0) {
            int rc = n < 0 ? err_set(err, EPROTO, "the net sandbox sent a forbidden message")
                           : answer_take(&frame, answer, ret_status, err);
            if (rc != 0)
                return rc;
            memmove(in.at, in.at + n, in.len - (size_t)n);
            in.len -= (size_t)n;
        }
    }
}

int net_sandbox_ask(const struct net_sandbox_user *user, const char *url, const char *pin, const char *body,
                    struct str *ret_answer, struct berth_err *err)
{
    CLEANUP(close_fd) int fd = -1;
    int64_t status = 0;
    pid_t pid = 0;
    int rc = net_sandbox_spawn(user, &pid, &fd, err);
    if (rc < 0)
        return rc;
    rc = question_send(fd, url, pin, body);
    if (rc == 0 || rc == -EPIPE) /* -EPIPE: it may have sent an error before it exited */
        rc = answer_read(fd, ret_answer, &status, err);
    else
        rc = err_set(err, -rc, "cannot communicate with the net sandbox: %s", strerror(-rc));
    (void)kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
    return rc < 0 ? rc : (int)status;
}
