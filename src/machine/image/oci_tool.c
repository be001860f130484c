/* oci_tool.c - runs a system program to its end. */
#include "machine/image/oci_tool.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/image/tool_user.h"
#include "machine/mount/mount_tree.h"

static const char usual_path[] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

static bool is_program(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool find_on(const char *path, const char *name, char ret[static PATH_MAX])
{
    while (path && *path) {
        size_t len = strcspn(path, ":");
        if (len && path[0] == '/' && len + strlen(name) + 2 <= PATH_MAX) {
            char try[PATH_MAX];
            (void)snprintf(try, sizeof try, "%.*s/%s", (int)len, path, name);
            if (is_program(try)) {
                memcpy(ret, try, strlen(try) + 1);
                return true;
            }
        }
        path += len + (path[len] == ':');
    }
    return false;
}

int tool_find(const char *name, char ret[static PATH_MAX])
{
    if (name[0] == '/') {
        if (strlen(name) >= PATH_MAX || !is_program(name))
            return -ENOENT;
        memcpy(ret, name, strlen(name) + 1);
        return 0;
    }
    return find_on(getenv("PATH"), name, ret) || find_on(usual_path, name, ret) ? 0 : -ENOENT;
}

/* ---- child process ---------------------------------------------------------------------------------------------- */

struct tool_child {
    pid_t pid;
    int pidfd, out, err;
};

static void child_cleanup(struct tool_child *c)
{
    if (c->pid > 0) { /* kills its process group and reaps it */
        (void)kill(-c->pid, SIGKILL);
        (void)kill(c->pid, SIGKILL);
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    close_fd_cleanup(&c->pidfd);
    close_fd_cleanup(&c->out);
    close_fd_cleanup(&c->err);
}

/* Runs after fork in a multithreaded program: only async-signal-safe functions. */
_Noreturn static void child_exec(const char *path, const struct tool *tool, char *const *env, int out, int err)
{
    struct sigaction usual = {.sa_handler = SIG_DFL};
    sigset_t none;
    sigemptyset(&none);
    for (int signo = 1; signo < NSIG; signo++)
        (void)sigaction(signo, &usual, NULL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    int in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (setpgid(0, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || in < 0 || dup2(in, 0) < 0 || dup2(out, 1) < 0 ||
        dup2(err, 2) < 0 || (tool->dir >= 0 ? fchdir(tool->dir) : chdir("/")) < 0)
        _exit(127);
    for (const char *const *group = tool->procs_paths; group && *group; group++) {
        int fd = open(*group, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || write(fd, "0", 1) != 1)
            _exit(127);
    }
    struct rlimit largest = {tool->bytes_max, tool->bytes_max};
    if (tool->bytes_max && setrlimit(RLIMIT_FSIZE, &largest) < 0)
        _exit(127);
    if (tool->user && tool_user_become(tool->user) < 0)
        _exit(127);
    (void)syscall(SYS_close_range, tool->user && tool->user->given >= 0 ? TOOL_GIVEN_FD + 1u : 3u, ~0u, 0u);
    (void)umask(022);
    execve(path, (char *const *)tool->argv, env);
    _exit(127);
}

static int child_start(const char *path, const struct tool *tool, struct tool_child *ret)
{
    CLEANUP(tool_env) char **env = tool->user ? tool_user_env(tool->user) : NULL;
    int out[2] = {-1, -1}, err[2] = {-1, -1};
    if (pipe2(out, O_CLOEXEC) < 0)
        return -errno;
    ret->out = out[0];
    CLEANUP(close_fd) int out_end = out[1];
    if (pipe2(err, O_CLOEXEC) < 0)
        return -errno;
    ret->err = err[0];
    CLEANUP(close_fd) int err_end = err[1];
    (void)fcntl(ret->out, F_SETFL, O_NONBLOCK);
    (void)fcntl(ret->err, F_SETFL, O_NONBLOCK);
    pid_t pid = tool->user ? tool_user_fork() : fork();
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        (void)close(ret->out); /* or the child's copy would hide that the parent has closed its ends */
        (void)close(ret->err);
        child_exec(path, tool, env ? env : environ, out_end, err_end);
    }
    ret->pid = pid;
    ret->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    return ret->pidfd < 0 ? -errno : 0;
}

/* Interval of checks of free space; minimum ratio of the pause between two measurements of the directory to the
 * duration of one; reserved fraction of inodes. */
enum { LOOK_NS = 200 * 1000 * 1000, MEASURE_PAUSE = 10, SPARE_FILES_PART = 50 };

/* ---- output and limits ------------------------------------------------------------------------------------------ */

static int64_t steady_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Reads the available output. Beyond TOOL_OUT_MAX, drops the older half if `tail`, else the rest. False: end of
 * file. */
static bool drain(int *fd, struct str *to, bool tail)
{
    char block[4096];
    for (;;) {
        ssize_t n = read(*fd, block, sizeof block);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return true;
        if (n <= 0) {
            (void)close(take_fd(fd));
            return false;
        }
        if (to->len + (size_t)n > TOOL_OUT_MAX && tail) {
            memmove(to->at, to->at + to->len / 2, to->len - to->len / 2);
            to->len -= to->len / 2;
        }
        if (to->len + (size_t)n <= TOOL_OUT_MAX)
            str_add_bytes(to, block, (size_t)n);
    }
}

/* Tells whether the disk has less free space than required. */
static bool is_full(const struct tool *tool)
{
    struct statvfs v;
    if (!tool->spare_bytes || tool->dir < 0 || fstatvfs(tool->dir, &v) < 0)
        return false;
    return (uint64_t)v.f_bavail * v.f_frsize < tool->spare_bytes ||
           (v.f_files > 0 && v.f_favail < v.f_files / SPARE_FILES_PART);
}

/* -EFBIG: the directory contains more than allowed. */
static int fits(const struct tool *tool)
{
    if (tool->dir < 0 || (!tool->bytes_max && !tool->entries_max))
        return 0;
    int rc = tree_fits(tool->dir, tool->bytes_max ? tool->bytes_max : UINT64_MAX,
                       tool->entries_max ? tool->entries_max : UINT64_MAX);
    /* other errors come from concurrent changes; the next measurement decides */
    return rc == -EFBIG || rc == -EOVERFLOW ? -EFBIG : 0;
}

/* Calls fits() if it is due, and schedules the next call depending on its duration. */
static int fits_now(const struct tool *tool, int64_t *next_ns)
{
    int64_t begin_ns = steady_ns();
    if (begin_ns < *next_ns)
        return 0;
    int rc = fits(tool);
    int64_t took_ns = steady_ns() - begin_ns;
    *next_ns = steady_ns() + (took_ns * MEASURE_PAUSE > LOOK_NS ? took_ns * MEASURE_PAUSE : LOOK_NS);
    return rc;
}

/* Waits for the end of the program itself, because processes that it leaves behind may keep the pipes open longer. */
static int child_listen(struct tool_child *c, const struct tool *tool, struct str *out, struct str *said)
{
    int64_t until_ns = steady_ns() + tool->timeout_ns, measure_ns = 0;
    for (;;) {
        int64_t left = until_ns - steady_ns();
        if (left <= 0)
            return -ETIMEDOUT;
        if (is_full(tool))
            return -ENOSPC;
        if (fits_now(tool, &measure_ns) < 0)
            return -EFBIG;
        if ((tool->spare_bytes || tool->bytes_max || tool->entries_max) && left > LOOK_NS)
            left = LOOK_NS;
        struct pollfd fds[] = {
            {.fd = c->pidfd, .events = POLLIN},
            {.fd = c->out,   .events = POLLIN},
            {.fd = c->err,   .events = POLLIN},
        };
        struct timespec wait = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        if (ppoll(fds, 3, &wait, NULL) < 0 && errno != EINTR)
            return -errno;
        if (c->out >= 0)
            (void)drain(&c->out, out, false);
        if (c->err >= 0)
            (void)drain(&c->err, said, true);
        if (fds[0].revents)
            return 0;
    }
}

/* Returns the last non-empty line; of a logger's line (`level=fatal msg="..."`) only the message. */
static char *last_error_line(struct str *said)
{
    char *text = said->at;
    if (!text)
        return NULL;
    size_t len = said->len;
    while (len && (text[len - 1] == '\n' || text[len - 1] == ' ' || text[len - 1] == '\r'))
        text[--len] = '\0';
    char *line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    char *message = strstr(line, " msg=\"");
    if (message) {
        line = message + strlen(" msg=\"");
        char *to = line;
        for (const char *from = line; *from && *from != '"'; from++) {
            from += from[0] == '\\' && from[1];
            *to++ = *from;
        }
        *to = '\0';
    }
    while (*line && (*line == ' ' || (unsigned char)*line >= 0x80)) /* skips decorative characters */
        line++;
    return *line ? line : NULL;
}

static int too_large(const struct tool *tool, struct berth_err *err)
{
    return err_set(err, EFBIG,
                   "%s: it needs more than %" PRIu64 " MiB or has more than %" PRIu64
                   " files, which is the limit of this node",
                   tool->what, tool->bytes_max >> 20, tool->entries_max);
}

/* Tells whether the program hit the file size limit; programs in C and in Go report it differently. */
static bool is_too_large(int status, const char *said)
{
    return (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ) || strstr(said, "file too large") ||
           strstr(said, "File too large") || strstr(said, "File size limit exceeded");
}

int tool_run(const struct tool *tool, struct str *ret_out, struct berth_err *err)
{
    char path[PATH_MAX];
    if (tool_find(tool->argv[0], path) < 0)
        return err_set(err, ENOENT, "%s: %s is not installed on this node", tool->what, tool->argv[0]);
    CLEANUP(child) struct tool_child c = {.pidfd = -1, .out = -1, .err = -1};
    CLEANUP(str) struct str out = {0}, said = {0};
    int rc = child_start(path, tool, &c);
    if (rc == 0)
        rc = child_listen(&c, tool, &out, &said);
    if (rc == -ETIMEDOUT)
        return err_set(err, ETIMEDOUT, "%s: %s timed out after %lld s", tool->what, tool->argv[0],
                       (long long)(tool->timeout_ns / 1000000000));
    if (rc == -ENOSPC)
        return err_set(err, ENOSPC, "%s: the disk is full", tool->what);
    if (rc == -EFBIG)
        return too_large(tool, err);
    if (rc < 0)
        return err_set(err, -rc, "%s: cannot run %s: %s", tool->what, tool->argv[0], strerror(-rc));
    if (!tool->procs_paths)
        (void)kill(-c.pid, SIGKILL); /* kills remaining processes of its group; the pid is not reused before waitpid */
    int status = 0;
    while (waitpid(c.pid, &status, 0) < 0)
        if (errno != EINTR)
            return err_set(err, EIO, "%s: cannot wait for %s", tool->what, tool->argv[0]);
    c.pid = 0;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        bool full = strstr(str_text(&said), "no space left on device") || strstr(str_text(&said), "No space left");
        const char *words = last_error_line(&said);
        if (full)
            return err_set(err, ENOSPC, "%s: the disk is full", tool->what);
        if (is_too_large(status, str_text(&said)))
            return too_large(tool, err);
        return err_set(err, EIO, "%s: %s", tool->what, words ? words : "it failed without a message");
    }
    if (fits(tool) < 0)
        return too_large(tool, err);
    if (ret_out) {
        str_clear(ret_out);
        str_add_bytes(ret_out, str_text(&out), out.len);
    }
    return 0;
}
