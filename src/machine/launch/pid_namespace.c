#include "machine/launch/pid_namespace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/launch/state_file.h"

/* Byte offsets in the file, used only as record locks. */
enum { JOINING, LIFE, FIRST };

static int lock_byte(int fd, int command, short type, off_t byte)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    while (fcntl(fd, command, &lock)) {
        if (errno != EINTR)
            return -errno;
    }
    return 0;
}

static bool is_locked(int fd, off_t byte)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};

    return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* Tells whether the open file still has this path: the first process removes it when it ends. */
static bool is_still(int fd, const char *file)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 && stat(file, &there) == 0 && ours.st_dev == there.st_dev &&
           ours.st_ino == there.st_ino;
}

static int wait_for(pid_t pid, int *ret_status)
{
    while (waitpid(pid, ret_status, 0) < 0) {
        if (errno != EINTR)
            return -errno;
    }
    return 0;
}

int pid_namespace_check(void)
{
    int status, rc;
    pid_t pid = fork();

    if (pid < 0)
        return -errno;
    if (pid == 0)
        _exit(unshare(CLONE_NEWPID) ? errno : 0);
    rc = wait_for(pid, &status);
    return rc ? rc : WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

/* ---- joining ---------------------------------------------------------------------------------------------------- */

/* Returns a pidfd of the first process of the namespace; -ESRCH: there is none. */
static int first_open(int fd)
{
    char text[24] = {0};
    pid_t pid;
    int first;

    if (!is_locked(fd, FIRST) || pread(fd, text, sizeof text - 1, 0) <= 0)
        return -ESRCH;
    pid = (pid_t)strtol(text, NULL, 10);
    first = pid > 0 ? pidfd_open(pid, 0) : -1;
    return first < 0 ? -ESRCH : first;
}

static int first_write(int fd, pid_t pid)
{
    char text[24];
    int len = snprintf(text, sizeof text, "%d\n", (int)pid);

    return ftruncate(fd, 0) || pwrite(fd, text, (size_t)len, 0) != len ? -EIO : 0;
}

/* Becomes the first process, after its pid was written into the file. Its lock is held by its standard input. */
static int first_become(const char *file, const char *shim, int lock, int go)
{
    const char *const argv[] = {"berth-shim", "hold", file, NULL}, *const env[] = {NULL};
    char byte;

    if (read(go, &byte, 1) != 1 || dup2(lock, STDIN_FILENO) < 0)
        return EIO;
    execve(shim, (char *const *)argv, (char *const *)env);
    return -pid_namespace_hold(file); /* exec failed: does the same without it */
}

/* Runs in a fork of the shim, so that the first process is not a child of the shim, which waits for all its children.
 * Returns a positive errno. */
static int first_spawn(int fd, const char *file, const char *shim)
{
    CLEANUP(close_fd) int lock = open(file, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    int go[2], rc = lock < 0 ? -errno : lock_byte(lock, F_OFD_SETLK, F_WRLCK, FIRST);
    pid_t pid;

    if (rc)
        return -rc;
    if (pipe2(go, O_CLOEXEC) || unshare(CLONE_NEWPID))
        return errno;
    pid = fork();
    if (pid < 0)
        return errno;
    if (pid == 0) {
        close(go[1]);
        _exit(first_become(file, shim, lock, go[0]));
    }
    rc = first_write(fd, pid);
    return rc ? -rc : -fd_write(go[1], "", 1);
}

static int make(int fd, const char *file, const char *shim)
{
    int status, rc;
    pid_t pid = fork();

    if (pid < 0)
        return -errno;
    if (pid == 0)
        _exit(first_spawn(fd, file, shim));
    rc = wait_for(pid, &status);
    return rc ? rc : WIFEXITED(status) ? -WEXITSTATUS(status) : -ECHILD;
}

static int enter(int fd, const char *file, const char *shim)
{
    CLEANUP(close_fd) int first = first_open(fd);
    int rc;

    if (first < 0) {
        rc = make(fd, file, shim);
        if (rc)
            return rc;
        first = first_open(fd);
    }
    if (first < 0)
        return first;
    return setns(first, CLONE_NEWPID) ? -errno : 0;
}

int pid_namespace_join(const char *file, const char *shim, struct berth_err *err)
{
    for (;;) {
        CLEANUP(close_fd) int fd = open(file, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        int rc = fd < 0 ? -errno : lock_byte(fd, F_OFD_SETLKW, F_WRLCK, JOINING);

        if (rc == 0)
            rc = lock_byte(fd, F_OFD_SETLKW, F_RDLCK, LIFE);
        if (rc == 0 && !is_still(fd, file))
            continue;
        if (rc == 0)
            rc = enter(fd, file, shim);
        if (rc == 0)
            rc = lock_byte(fd, F_OFD_SETLK, F_UNLCK, JOINING);
        return rc ? err_set(err, -rc, "cannot join the PID namespace '%s': %s", file, strerror(-rc)) : take_fd(&fd);
    }
}

void pid_namespace_leave(void)
{
    CLEANUP(close_fd) int own = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);

    if (own >= 0)
        (void)setns(own, CLONE_NEWPID);
}

/* ---- first process ---------------------------------------------------------------------------------------------- */

int pid_namespace_hold(const char *file)
{
    int rc;

    (void)signal(SIGCHLD, SIG_IGN); /* the kernel reaps the children */
    (void)prctl(PR_SET_NAME, "berth-shim-hold");
    rc = lock_byte(STDIN_FILENO, F_OFD_SETLKW, F_WRLCK, LIFE);
    if (rc == 0 && is_still(STDIN_FILENO, file))
        (void)unlink(file);
    return rc;
}

void pid_namespaces_trim(const char *folder)
{
    DIR *dir = opendir(folder);
    const struct dirent *e;

    while (dir && (e = readdir(dir))) {
        CLEANUP(close_fd) int fd = openat(dirfd(dir), e->d_name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

        /* A concurrent join notices the removal and opens the file again. */
        if (fd >= 0 && lock_byte(fd, F_OFD_SETLK, F_WRLCK, JOINING) == 0 &&
            lock_byte(fd, F_OFD_SETLK, F_WRLCK, LIFE) == 0)
            (void)unlinkat(dirfd(dir), e->d_name, 0);
    }
    if (dir)
        closedir(dir);
}
