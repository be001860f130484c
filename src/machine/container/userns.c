/* userns.c - user namespaces of containers. */
#include "machine/container/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/launch/state_file.h"

/* ---- id maps ---------------------------------------------------------------------------------------------------- */

static void extent_add(struct id_map *map, uint32_t inside, uint32_t outside, uint32_t count)
{
    if (count && map->len < ID_EXTENTS_MAX)
        map->at[map->len++] = (struct id_extent){inside, outside, count};
}

bool id_map_out(const struct id_map *map, uint32_t inside, uint32_t *ret)
{
    for (size_t i = 0; i < map->len; i++) {
        const struct id_extent *e = &map->at[i];
        if (inside >= e->inside && inside - e->inside < e->count) {
            *ret = e->outside + (inside - e->inside);
            return true;
        }
    }
    return false;
}

bool id_map_in(const struct id_map *map, uint32_t outside, uint32_t *ret)
{
    for (size_t i = 0; i < map->len; i++) {
        const struct id_extent *e = &map->at[i];
        if (outside >= e->outside && outside - e->outside < e->count) {
            *ret = e->inside + (outside - e->outside);
            return true;
        }
    }
    return false;
}

void userns_maps_of(const struct instance_user *user, struct userns_maps *ret)
{
    *ret = (struct userns_maps){0};
    extent_add(&ret->uids, 0, user->uid, 1);
    extent_add(&ret->uids, 1, user->uids.first, user->uids.count);
    extent_add(&ret->gids, 0, user->gid, 1);
    extent_add(&ret->gids, 1, user->gids.first, user->gids.count);
    for (size_t i = 0; i < user->groups_len; i++) {
        uint32_t there;
        if (!id_map_in(&ret->gids, user->groups[i], &there)) /* each group is mapped once */
            extent_add(&ret->gids, (uint32_t)(USERNS_GROUPS + i), user->groups[i], 1);
    }
}

void id_map_swap(uint32_t a, uint32_t b, struct id_map *ret)
{
    uint32_t low = a < b ? a : b, high = a < b ? b : a;
    *ret = (struct id_map){0};
    if (low == high) {
        extent_add(ret, 0, 0, UINT32_MAX);
        return;
    }
    extent_add(ret, 0, 0, low);
    extent_add(ret, low, high, 1);
    extent_add(ret, low + 1, low + 1, high - low - 1);
    extent_add(ret, high, low, 1);
    extent_add(ret, high + 1, high + 1, UINT32_MAX - high - 1);
}

/* ---- namespaces ------------------------------------------------------------------------------------------------- */

/* A forked process in new namespaces, which waits for a byte. */
struct namespace_child {
    pid_t pid;
    int go;    /* a byte here makes it continue */
    int heard; /* its result is read here */
};

static void namespace_child_cleanup(struct namespace_child *h)
{
    if (h->pid > 0) {
        (void)kill(h->pid, SIGKILL);
        while (waitpid(h->pid, NULL, __WALL) < 0 && errno == EINTR)
            ;
    }
    close_fd_cleanup(&h->go);
    close_fd_cleanup(&h->heard);
}

/* Result of the trial: the failed step and its errno. */
struct trial_result {
    int step, code;
};
enum { TRIAL_BECOME, TRIAL_MOUNTS, TRIAL_PROC, TRIAL_TMPFS, TRIAL_QUEUES, TRIAL_DONE };

/* Performs the steps of a container runtime as root of the namespaces. Uses raw system calls: the C library assumes
 * that the threads of the parent exist and would change their user, too. */
static struct trial_result trial(void)
{
    static const struct {
        const char *type;
        int step;
    } rows[] = {
        {"proc",   TRIAL_PROC  },
        {"tmpfs",  TRIAL_TMPFS },
        {"mqueue", TRIAL_QUEUES},
    };
    if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0)
        return (struct trial_result){TRIAL_BECOME, errno};
    if (mount(NULL, "/", NULL, MS_REC | MS_SLAVE, NULL) < 0)
        return (struct trial_result){TRIAL_MOUNTS, errno};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (mount(rows[i].type, "/proc", rows[i].type, MS_NOSUID | MS_NOEXEC | MS_NODEV, NULL) < 0)
            return (struct trial_result){rows[i].step, errno};
    return (struct trial_result){TRIAL_DONE, 0};
}

_Noreturn static void namespace_child_wait(int go, int say)
{
    char byte;
    struct trial_result word;
    if (syscall(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0 || read(go, &byte, 1) != 1)
        _exit(1);
    word = trial();
    _exit(write(say, &word, sizeof word) == sizeof word ? 0 : 1);
}

static int namespace_child_start(unsigned long namespaces, struct namespace_child *ret)
{
    int go[2], heard[2];
    if (pipe2(go, O_CLOEXEC) < 0)
        return -errno;
    CLEANUP(close_fd) int go_end = go[0];
    ret->go = go[1];
    if (pipe2(heard, O_CLOEXEC) < 0)
        return -errno;
    CLEANUP(close_fd) int heard_end = heard[1];
    ret->heard = heard[0];
    /* fork with namespaces, by raw clone: the C library has no such function, and the child does not use the
     * library. */
    long pid = syscall(SYS_clone, namespaces | SIGCHLD, 0, 0, 0, 0);
    if (pid < 0)
        return -errno;
    if (pid == 0) {
        close_fd_cleanup(&ret->go); /* or the child would keep the write end of its own pipe open */
        namespace_child_wait(go_end, heard_end);
    }
    ret->pid = (pid_t)pid;
    return 0;
}

static int map_write(pid_t pid, const char *name, const struct id_map *map)
{
    CLEANUP(str) struct str text = {0};
    char path[64];
    for (size_t i = 0; i < map->len; i++)
        str_addf(&text, "%" PRIu32 " %" PRIu32 " %" PRIu32 "\n", map->at[i].inside, map->at[i].outside,
                 map->at[i].count);
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    CLEANUP(close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : write(fd, str_text(&text), text.len);
    return n < 0 ? -errno : n == (ssize_t)text.len ? 0 : -EIO; /* the kernel accepts a map only in a single write */
}

static int namespace_child_map(const struct namespace_child *h, const struct userns_maps *maps)
{
    int rc = map_write(h->pid, "uid_map", &maps->uids);
    return rc < 0 ? rc : map_write(h->pid, "gid_map", &maps->gids);
}

int userns_open(const struct userns_maps *maps)
{
    CLEANUP(namespace_child) struct namespace_child h = {.go = -1, .heard = -1};
    char path[64];
    int rc = namespace_child_start(CLONE_NEWUSER, &h);
    rc = rc < 0 ? rc : namespace_child_map(&h, maps);
    if (rc < 0)
        return rc;
    (void)snprintf(path, sizeof path, "/proc/%d/ns/user", (int)h.pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int userns_tree(int dir, const char *path, int ns)
{
    CLEANUP(close_fd)
    int tree = open_tree(dir, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW);
    struct mount_attr attr = {.attr_set = MOUNT_ATTR_IDMAP, .userns_fd = (uint64_t)(unsigned)ns};
    if (tree < 0)
        return -errno;
    if (ns >= 0 && mount_setattr(tree, "", AT_EMPTY_PATH, &attr, sizeof attr) < 0)
        return -errno;
    return take_fd(&tree);
}

int userns_code(int rc)
{
    static const int refusals[] = {EINVAL, EPERM, EACCES, ENOSYS, EOPNOTSUPP, ENODEV, EXDEV};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        if (rc == -refusals[i])
            return EOPNOTSUPP;
    return -rc;
}

/* ---- availability ----------------------------------------------------------------------------------------------- */

int userns_check(struct berth_err *err)
{
    static const char *const steps[] = {
        [TRIAL_BECOME] = "cannot become root in a user namespace",
        [TRIAL_MOUNTS] = "cannot make mounts private in a user namespace",
        [TRIAL_PROC] = "cannot mount /proc in a user namespace",
        [TRIAL_TMPFS] = "cannot mount a tmpfs in a user namespace",
        [TRIAL_QUEUES] = "cannot mount message queues in a user namespace",
    };
    const struct user_range range = user_range_of_slot(0);
    const struct instance_user someone = {.uid = range.first - 1, .gid = range.first - 1, .uids = range, .gids = range};
    CLEANUP(namespace_child) struct namespace_child h = {.go = -1, .heard = -1};
    struct trial_result word;
    struct userns_maps maps;
    userns_maps_of(&someone, &maps);
    int rc = namespace_child_start(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC, &h);
    if (rc < 0)
        return err_set(err, -rc, "cannot create a user namespace: %s", strerror(-rc));
    rc = namespace_child_map(&h, &maps);
    if (rc < 0)
        return err_set(err, -rc, "cannot map the UIDs of a user namespace from %" PRIu32 " up: %s", someone.uid,
                       strerror(-rc));
    if (write(h.go, "", 1) != 1 || read(h.heard, &word, sizeof word) != sizeof word)
        return err_set(err, EIO, "the test of a user namespace ended without a result");
    if (word.step < 0 || word.step > TRIAL_DONE)
        return err_set(err, EIO, "the test of a user namespace returned an invalid result");
    return word.step == TRIAL_DONE ? 0 : err_set(err, word.code, "%s: %s", steps[word.step], strerror(word.code));
}
