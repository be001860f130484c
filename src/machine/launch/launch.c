#include "machine/launch/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/launch/launch_spawn.h"
#include "machine/launch/launch_spec.h"
#include "machine/launch/state_file.h"

enum { START_MS_MAX = 10 * 1000, START_CONTAINER_MS_MAX = 60 * 1000, END_MS_MAX = 2 * 1000 };
enum { LOOK_MS = 2 };

/* ---- start ------------------------------------------------------------------------------------------------------ */

static int folder_open(const struct state_dir *p, uint64_t id, char ret_path[static STATE_PATH_MAX])
{
    int rc = instance_dir_path(p, id, "spec", ret_path), fd;

    if (rc)
        return rc;
    *strrchr(ret_path, '/') = 0;
    fd = open(ret_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int spec_put(const struct state_dir *p, const struct launch *l, char ret_dir[static STATE_PATH_MAX],
                    struct berth_err *err)
{
    CLEANUP(str) struct str text = {0};
    CLEANUP(close_fd) int dir = -1;
    char logs[STATE_PATH_MAX], heard[STATE_PATH_MAX], name[24];
    int rc = state_dir_entry_path(p, "logs", str_u64(l->id, name), logs);

    if (rc == 0 && snprintf(heard, sizeof heard, "%s/heard", state_dir_path(p)) >= (int)sizeof heard)
        rc = -ENAMETOOLONG;
    if (rc)
        return err_set(err, -rc, "the path of the state folder '%s' is too long", state_dir_path(p));
    rc = spec_write(l, logs, heard, &text, err);
    if (rc)
        return rc;
    (void)mkdir(logs, 0700); /* so that the log can be requested as soon as the instance runs; a failure is not fatal */
    dir = folder_open(p, l->id, ret_dir);
    rc = dir < 0 ? dir : file_write(dir, "spec", text.at, text.len, false);
    return rc ? err_set(err, -rc, "cannot write the specification of instance %s for its shim: %s", name, strerror(-rc))
              : 0;
}

/* Receives one message of the shim, with a descriptor if it has one. -ETIMEDOUT: no message came; -EPIPE: the shim has
 * died. */
static int message_receive(int fd, int timeout_ms, struct shim_message *ret, int *ret_fd)
{
    char control[CMSG_SPACE(sizeof(int))];
    struct iovec iov = {.iov_base = ret, .iov_len = sizeof *ret};
    struct msghdr message = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct pollfd poll_fd = {.fd = fd, .events = POLLIN};
    int64_t end = boottime_ns() + (int64_t)timeout_ms * 1000000;
    ssize_t n;

    for (;;) {
        int64_t left = (end - boottime_ns()) / 1000000;
        int ready = poll(&poll_fd, 1, left > 0 ? (int)left : 0);

        if (ready > 0)
            break;
        if (ready == 0)
            return -ETIMEDOUT;
        if (errno != EINTR)
            return -errno;
    }
    n = recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (n < 0)
        return -errno;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&message); c; c = CMSG_NXTHDR(&message, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS)
            memcpy(ret_fd, CMSG_DATA(c), sizeof *ret_fd);
    ret->text[sizeof ret->text - 1] = 0;
    return n == sizeof *ret ? 0 : -EPIPE;
}

/* Kills a shim whose instance has not been executed. The kernel kills its children with it. */
static void shim_kill(int pidfd)
{
    struct pollfd hangup = {.fd = pidfd, .events = POLLIN};

    if (pidfd < 0)
        return;
    pidfd_send_signal(pidfd, SIGKILL, NULL, 0);
    poll(&hangup, 1, END_MS_MAX);
}

static int shim_listen(const struct state_dir *p, int fd, const struct launch *l, struct launch_result *ret,
                       struct berth_err *err)
{
    CLEANUP(close_fd) int pidfd = -1;
    struct shim_message word = {0};
    int rc = message_receive(fd, START_MS_MAX, &word, &pidfd);

    if (rc == 0 && word.code == 0)
        rc = message_receive(fd, l->runtime ? START_CONTAINER_MS_MAX : START_MS_MAX, &word, &pidfd);
    if (rc) {
        shim_kill(pidfd);
        launch_prevent(p, l->id); /* the shim may only be slow: it must not start the instance later */
        return err_set(err, -rc,
                       rc == -ETIMEDOUT ? "the shim of instance %" PRIu64 " did not start in time"
                                        : "the shim of instance %" PRIu64 " died during its start",
                       l->id);
    }
    if (word.code)
        return err_set(err, word.code, "%s", word.text);
    *ret = (struct launch_result){
        .pidfd = take_fd(&pidfd), .shim = word.shim, .pid = word.pid, .pid_start = word.pid_start};
    return 0;
}

int launch_start(struct state_dir *p, const struct launch *l, struct launch_result *ret, struct berth_err *err)
{
    CLEANUP(close_fd) int ours = -1;
    CLEANUP(close_fd) int theirs = -1;
    char dir[STATE_PATH_MAX];
    int fds[LAUNCH_SOCKETS_MAX + SHIM_SOCKETS_FD] = {-1, -1, -1};
    int pair[2], status, rc = spec_put(p, l, dir, err);
    const char *const argv[] = {"berth-shim", "run", dir, NULL}, *const env[] = {NULL};
    pid_t pid;

    if (rc == 0)
        rc = state_dir_sync(p, err);
    if (rc)
        return rc;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return err_set(err, errno, "cannot create a socket: %s", strerror(errno));
    ours = pair[0];
    theirs = pair[1];
    fds[SHIM_STATUS_FD] = theirs;
    for (size_t i = 0; i < l->sockets_len; i++)
        fds[SHIM_SOCKETS_FD + i] = l->sockets[i];
    rc = spawn_with(l->shim, argv, env, fds, SHIM_SOCKETS_FD + l->sockets_len, &pid);
    if (rc)
        return err_set(err, -rc, "cannot run the shim '%s': %s", l->shim, strerror(-rc));
    close(take_fd(&theirs));
    /* The spawned process forks the shim and exits, so that the shim becomes a child of init. */
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return shim_listen(p, ours, l, ret, err);
}

/* ---- adoption --------------------------------------------------------------------------------------------------- */

/* Writes an exit file while this process holds the shim's lock: no shim is alive, and a later one finds the file and
 * exits. */
static void exit_file_claim(int dir)
{
    static const char text[] = "error the agent stopped during the start\n";

    if (faccessat(dir, "exit", F_OK, 0) && errno == ENOENT)
        (void)file_write(dir, "exit", text, sizeof text - 1, true);
}

static int mark_read(int dir, struct shim_mark *ret)
{
    CLEANUP(mem) char *text = NULL;
    char boot[BOOT_ID_MAX];
    int rc = file_read(dir, "shim", &text, NULL);

    if (rc)
        return rc;
    if (!shim_mark_parse(text, ret))
        return -EAGAIN; /* not written yet */
    return boot_id(boot) == 0 && strcmp(boot, ret->boot) == 0 ? 0 : -ESRCH;
}

/* Finds the running shim by its mark. -ESRCH: none is running and none will start; -EAGAIN: it is starting. */
static int shim_find(const struct state_dir *p, uint64_t id, struct shim_mark *ret)
{
    CLEANUP(close_fd) int dir = -1;
    CLEANUP(close_fd) int fd = -1;
    char path[STATE_PATH_MAX];

    dir = folder_open(p, id, path);
    if (dir < 0)
        return -ESRCH;
    fd = openat(dir, "shim", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        exit_file_claim(dir);
        return -ESRCH;
    }
    return errno == EWOULDBLOCK ? mark_read(dir, ret) : -errno;
}

int launch_find(const struct state_dir *p, uint64_t id, struct launch_result *ret, struct berth_err *err)
{
    struct shim_mark m = {0};
    int rc = shim_find(p, id, &m), fd;

    if (rc == -ESRCH)
        return err_set(err, ESRCH, "instance %" PRIu64 " no longer has a shim", id);
    if (rc && rc != -EAGAIN)
        return err_set(err, -rc, "cannot find the shim of instance %" PRIu64 ": %s", id, strerror(-rc));
    fd = rc == 0 && m.pid > 0 ? process_open(m.shim, m.shim_start) : -EAGAIN;
    /* A shim holds the lock, but has not written its mark yet or is about to exit. */
    if (fd < 0)
        return err_set(err, EAGAIN, "the shim of instance %" PRIu64 " is still starting", id);
    *ret = (struct launch_result){.pidfd = fd, .shim = m.shim, .pid = m.pid, .pid_start = m.pid_start};
    return 0;
}

static bool is_container(const struct state_dir *p, uint64_t id)
{
    CLEANUP(close_fd) int dir = -1;
    struct launch_spec s;
    char path[STATE_PATH_MAX], *text;
    size_t len;
    bool is;

    dir = folder_open(p, id, path);
    if (dir < 0 || file_read(dir, "spec", &text, &len) || spec_read(text, len, &s, NULL))
        return false;
    is = s.launch.runtime != NULL;
    spec_done(&s);
    return is;
}

int launch_adopt(const struct state_dir *p, uint64_t id, struct launch_result *ret, struct berth_err *err)
{
    int rc = launch_find(p, id, ret, err), code;
    char text[LAUNCH_TEXT_MAX];

    if (rc != -EAGAIN)
        return rc;
    /* Counts attempts instead of time: while the whole machine is suspended, the shim makes no progress either. */
    for (int looks = 0, max = (is_container(p, id) ? START_CONTAINER_MS_MAX : START_MS_MAX) / LOOK_MS; looks < max;
         looks++) {
        bool over = launch_exit(p, id, &code, text) == 0;

        /* Writing the exit file is the last thing that a shim does. */
        if (over && looks >= END_MS_MAX / LOOK_MS)
            return err_set(err, ESRCH, "instance %" PRIu64 " has ended, and its shim is exiting", id);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
        rc = launch_find(p, id, ret, err);
        if (rc != -EAGAIN)
            return rc;
    }
    return rc;
}

int launch_first_process(const struct launch_result *l)
{
    return process_open(l->pid, l->pid_start);
}

void launch_prevent(const struct state_dir *p, uint64_t id)
{
    int64_t end = boottime_ns() + (int64_t)END_MS_MAX * 1000000;

    do {
        struct shim_mark m = {0};
        int rc = shim_find(p, id, &m);
        CLEANUP(close_fd) int fd = rc ? -1 : process_open(m.shim, m.shim_start);

        if (rc == -ESRCH)
            return;
        shim_kill(fd);
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000}, NULL);
    } while (boottime_ns() < end);
}

/* ---- result ----------------------------------------------------------------------------------------------------- */

static void text_copy(const char *from, char ret[static LAUNCH_TEXT_MAX])
{
    size_t len = strcspn(from, "\n");

    if (len >= LAUNCH_TEXT_MAX)
        len = LAUNCH_TEXT_MAX - 1;
    memcpy(ret, from, len);
    ret[len] = 0;
    /* A workload may write any bytes; JSON documents need valid UTF-8. */
    for (size_t i = 0; i < len && !str_utf8_valid(ret, len); i++)
        if ((unsigned char)ret[i] >= 0x80)
            ret[i] = '?';
}

int launch_exit(const struct state_dir *p, uint64_t id, int *ret_code, char ret_text[static LAUNCH_TEXT_MAX])
{
    CLEANUP(mem) char *text = NULL;
    char *end;
    long code;

    if (instance_dir_read(p, id, "exit", &text, NULL))
        return -ENOENT;
    if (strncmp(text, "error ", 6) == 0) {
        *ret_code = -1;
        text_copy(text + 6, ret_text);
        return 0;
    }
    code = strtol(text, &end, 10);
    if (end == text || (*end != '\n' && *end != ' '))
        return -ENOENT; /* truncated by a power failure before the sync */
    *ret_code = (int)code;
    text_copy(*end == ' ' ? end + 1 : end, ret_text);
    return 0;
}

int launch_progress(const struct state_dir *p, uint64_t id, int *ret_milli, char ret_note[static LAUNCH_TEXT_MAX])
{
    CLEANUP(mem) char *text = NULL;
    char *end;
    long milli;

    if (instance_dir_read(p, id, "progress", &text, NULL))
        return -ENOENT;
    milli = strtol(text, &end, 10);
    if (end == text)
        return -ENOENT;
    *ret_milli = (int)milli;
    text_copy(*end == ' ' ? end + 1 : end, ret_note);
    return 0;
}
