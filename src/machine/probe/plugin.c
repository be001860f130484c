/* plugin.c - runs the plugins of a directory concurrently, each with bounded time and output. */
#include "machine/probe/plugin.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"

enum { SAID_MAX = 200, FDS_EACH = 3, NS_PER_MS = 1000000 };

struct plugin_run {
    char *name;
    pid_t pid;
    int pidfd, out, err; /* -1: not open, or at end of file */
    struct str text, said;
    bool over;
    struct berth_err trouble; /* code 0: none */
};

typedef VEC(struct plugin_run) runs;

static int64_t steady_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void condition_add(json_t *conditions, const char *plugin, const char *text)
{
    CLEANUP(str) struct str s = {0};
    str_addf(&s, "%s: %s", plugin, text);
    for (size_t i = 0; !str_utf8_valid(s.at, s.len) && i < s.len; i++)
        s.at[i] = (char)((unsigned char)s.at[i] < 0x80 ? s.at[i] : '?');
    json_array_append_new(conditions, json_pack("{s:s, s:s}", "type", "PluginFailed", "text", s.at));
}

/* ---- selection -------------------------------------------------------------------------------------------------- */

/* Returns why this must not be run: a user other than root and the agent's could have created or changed it. NULL: it
 * is trusted. */
static const char *untrusted_reason(const struct stat *st)
{
    if (st->st_uid != 0 && st->st_uid != geteuid())
        return "is not run, as its owner is neither root nor the agent's user; `chown root` it";
    if (st->st_mode & (S_IWGRP | S_IWOTH))
        return "is not run, as others can write to it; `chmod go-w` it";
    return NULL;
}

static int entry_compare(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Tells whether this is a program to run. Other files are skipped; an untrusted program adds a condition. */
static bool may_run(const char *folder, const char *name, json_t *conditions)
{
    CLEANUP(str) struct str path = {0};
    struct stat st;
    str_addf(&path, "%s/%s", folder, name);
    if (name[0] == '.' || lstat(path.at, &st) < 0 || S_ISDIR(st.st_mode))
        return false;
    if (S_ISLNK(st.st_mode)) {
        condition_add(conditions, name, "is not run, as it is a symbolic link; use the program itself");
        return false;
    }
    if (!S_ISREG(st.st_mode) || !(st.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)))
        return false;
    const char *why = untrusted_reason(&st);
    if (why)
        condition_add(conditions, name, why);
    return !why;
}

/* ---- execution -------------------------------------------------------------------------------------------------- */

static void fd_close(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

static int spawn(const char *path, int out, int err, pid_t *ret)
{
    static char *const env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C.UTF-8",
                                NULL};
    char *argv[] = {(char *)path, "probe", NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attr;
    sigset_t all, none;
    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    int rc = posix_spawn_file_actions_init(&files);
    if (rc)
        return -rc;
    rc = posix_spawnattr_init(&attr);
    if (rc) {
        (void)posix_spawn_file_actions_destroy(&files);
        return -rc;
    }
    if ((rc = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0)) == 0 &&
        (rc = posix_spawn_file_actions_adddup2(&files, out, 1)) == 0 &&
        (rc = posix_spawn_file_actions_adddup2(&files, err, 2)) == 0 &&
        (rc = posix_spawn_file_actions_addclosefrom_np(&files, 3)) == 0 &&
        (rc = posix_spawn_file_actions_addchdir_np(&files, "/")) == 0 &&
        (rc = posix_spawnattr_setpgroup(&attr, 0)) == 0 && (rc = posix_spawnattr_setsigdefault(&attr, &all)) == 0 &&
        (rc = posix_spawnattr_setsigmask(&attr, &none)) == 0 &&
        (rc = posix_spawnattr_setflags(&attr,
                                       POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK)) == 0)
        rc = posix_spawn(ret, path, &files, &attr, argv, env);
    (void)posix_spawnattr_destroy(&attr);
    (void)posix_spawn_file_actions_destroy(&files);
    return -rc;
}

/* Opens a pipe with descriptors above 2, so that the child's dup2 calls do not overwrite them. */
static int pipe_open(int *ret_read, int *ret_write)
{
    int fds[2];
    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    for (int i = 0; i < 2; i++) {
        int up = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
        if (fds[i] < 3 && up >= 0) {
            (void)close(fds[i]);
            fds[i] = up;
        } else if (up >= 0) {
            (void)close(up);
        }
    }
    (void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
    *ret_read = fds[0];
    *ret_write = fds[1];
    return 0;
}

static void run_start(struct plugin_run *r, const char *folder)
{
    CLEANUP(str) struct str path = {0};
    int out = -1, err = -1;
    str_addf(&path, "%s/%s", folder, r->name);
    int rc = pipe_open(&r->out, &out);
    if (rc == 0)
        rc = pipe_open(&r->err, &err);
    if (rc == 0)
        rc = spawn(path.at, out, err, &r->pid);
    fd_close(&out);
    fd_close(&err);
    if (rc == 0 && (r->pidfd = (int)syscall(SYS_pidfd_open, r->pid, 0)) < 0)
        rc = -errno;
    if (rc < 0) {
        err_set(&r->trouble, -rc, "cannot be run: %s", strerror(-rc));
        r->over = r->pid == 0;
    }
}

/* Reads the available output up to slightly more than the bound; the rest is discarded. */
static void output_read(int *fd, struct str *to, size_t max)
{
    char buf[4096];
    ssize_t n = -1;
    while (*fd >= 0 && (n = read(*fd, buf, sizeof buf)) > 0)
        if (to->len <= max)
            str_add_bytes(to, buf, (size_t)n);
    if (n == 0)
        fd_close(fd);
}

static void run_output_read(struct plugin_run *r)
{
    output_read(&r->out, &r->text, PLUGIN_BYTES_MAX);
    output_read(&r->err, &r->said, SAID_MAX);
    if (r->text.len > PLUGIN_BYTES_MAX && !r->trouble.code)
        err_set(&r->trouble, EFBIG, "printed more than %d bytes and was killed", PLUGIN_BYTES_MAX);
}

/* Returns the first line of standard error, to be appended to the failure. */
static const char *first_error_line(struct plugin_run *r)
{
    const char *text = str_text(&r->said);
    if (r->said.at)
        r->said.at[strcspn(text, "\n")] = '\0';
    return text;
}

/* Kills the plugin if it runs, kills its children, and reaps it. */
static void run_end(struct plugin_run *r)
{
    siginfo_t info = {0};
    (void)kill(-r->pid, SIGKILL);
    (void)kill(r->pid, SIGKILL);
    run_output_read(r);
    while (waitid(P_PID, (id_t)r->pid, &info, WEXITED) < 0 && errno == EINTR)
        ;
    r->over = true;
    if (!r->trouble.code && (info.si_code != CLD_EXITED || info.si_status != 0)) {
        const char *said = first_error_line(r);
        err_set(&r->trouble, EIO, "ended with %s %d%s%s", info.si_code == CLD_EXITED ? "status" : "signal",
                info.si_status, *said ? ": " : "", said);
    }
}

/* Waits once for output or an end; returns whether any plugin was still running. */
static bool runs_wait(runs *all, int64_t left_ns)
{
    struct pollfd fds[PLUGINS_MAX * FDS_EACH];
    nfds_t len = 0;
    for (size_t i = 0; i < all->len; i++) {
        struct plugin_run *r = &all->at[i];
        if (r->over)
            continue;
        fds[len++] = (struct pollfd){.fd = r->pidfd, .events = POLLIN};
        fds[len++] = (struct pollfd){.fd = r->out, .events = POLLIN};
        fds[len++] = (struct pollfd){.fd = r->err, .events = POLLIN};
    }
    if (len == 0)
        return false;
    int n = poll(fds, len, (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS));
    for (size_t i = 0, at = 0; i < all->len; i++) {
        struct plugin_run *r = &all->at[i];
        if (r->over)
            continue;
        bool ended = n > 0 && fds[at].revents;
        at += FDS_EACH;
        run_output_read(r);
        if (ended || r->trouble.code)
            run_end(r);
    }
    return true;
}

/* ---- all plugins ------------------------------------------------------------------------------------------------ */

static void run_done(struct plugin_run *r)
{
    fd_close(&r->pidfd);
    fd_close(&r->out);
    fd_close(&r->err);
    str_done(&r->text);
    str_done(&r->said);
    mem_free(r->name);
}

static void runs_find(const char *folder, runs *all, json_t *conditions)
{
    struct dirent **entries;
    int len = scandir(folder, &entries, NULL, entry_compare);
    for (int i = 0; i < len; i++) {
        if (may_run(folder, entries[i]->d_name, conditions)) {
            struct plugin_run r = {.name = mem_strdup(entries[i]->d_name), .pidfd = -1, .out = -1, .err = -1};
            vec_push(all, r);
        }
        free(entries[i]);
    }
    if (len >= 0)
        free(entries);
    else
        condition_add(conditions, folder, strerror(errno));
    while (all->len > PLUGINS_MAX) {
        condition_add(conditions, all->at[all->len - 1].name, "is not run, as there are more than 32 plugins");
        run_done(&all->at[--all->len]);
    }
}

json_t *plugins_run(const char *folder, int64_t timeout_ns, json_t *conditions)
{
    json_t *found = json_pack("{s:{}, s:{}, s:{}, s:{}}", "resources", "labels", "devices", "use");
    struct stat st;
    if (!folder || lstat(folder, &st) < 0)
        return found;
    const char *why = S_ISDIR(st.st_mode) ? untrusted_reason(&st) : "is not a folder; no plugins are run";
    if (why) {
        condition_add(conditions, folder, why);
        return found;
    }
    runs all = {0};
    int64_t end_ns = steady_ns() + timeout_ns, left_ns = timeout_ns;
    runs_find(folder, &all, conditions);
    for (size_t i = 0; i < all.len; i++)
        run_start(&all.at[i], folder);
    while (left_ns > 0 && runs_wait(&all, left_ns))
        left_ns = end_ns - steady_ns();
    /* Accepts answers that arrived before the deadline, if this process was merely delayed in reading them. */
    if (left_ns <= 0)
        (void)runs_wait(&all, 0);
    for (size_t i = 0; i < all.len; i++) {
        struct plugin_run *r = &all.at[i];
        if (!r->over) {
            if (!r->trouble.code)
                err_set(&r->trouble, ETIMEDOUT, "timed out and was killed");
            run_end(r);
        }
        if (r->trouble.code || plugin_take(found, r->name, str_text(&r->text), r->text.len, &r->trouble) < 0)
            condition_add(conditions, r->name, r->trouble.text);
        run_done(r);
    }
    vec_done(&all);
    return found;
}
