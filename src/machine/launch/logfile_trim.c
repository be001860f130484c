/* logfile_trim.c - removes logs of ended instances after their retention time. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "machine/launch/launch.h"
#include "machine/launch/state_file.h"

#define KEEP_FILE "keep" /* in a log directory: retention time in nanoseconds, as digits */

struct stored_log {
    char name[24];
    uint64_t bytes;
    int64_t at_ns;   /* time of the last write */
    int64_t keep_ns; /* retention time after that; 0: until space is needed */
};
struct stored_logs {
    struct stored_log *at;
    size_t len, cap;
};

static int64_t stamp_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* Calls `each` for every entry of a log directory, which contains only plain files. */
static void files_each(int logs, const char *name, void (*each)(int dir, const char *file, void *ctx), void *ctx)
{
    int fd = openat(logs, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    if (!entries) {
        close_fd_cleanup(&fd);
        return;
    }
    while ((e = readdir(entries)))
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            each(dirfd(entries), e->d_name, ctx);
    closedir(entries);
}

static void measure(int dir, const char *file, void *ctx)
{
    struct stored_log *k = ctx;
    struct stat st;

    if (fstatat(dir, file, &st, AT_SYMLINK_NOFOLLOW))
        return;
    k->bytes += (uint64_t)st.st_blocks * 512;
    if (stamp_ns(&st) > k->at_ns)
        k->at_ns = stamp_ns(&st);
}

/* Reads the retention time that log_keep has stored. */
static int64_t wanted_ns(int logs, const char *name)
{
    char path[64], text[32] = "";
    int64_t ns = 0;

    (void)snprintf(path, sizeof path, "%s/%s", name, KEEP_FILE);
    CLEANUP(close_fd) int fd = openat(logs, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || read(fd, text, sizeof text - 1) <= 0 || !str_parse_i64(text, &ns))
        return 0;
    return ns > 0 ? ns : 0;
}

int log_keep(const struct state_dir *p, uint64_t id, int64_t keep_ns, struct berth_err *err)
{
    CLEANUP(str) struct str path = {0};
    char text[32];
    int len = snprintf(text, sizeof text, "%" PRId64, keep_ns);

    str_addf(&path, "%s/logs/%" PRIu64 "/%s", state_dir_path(p), id, KEEP_FILE);
    CLEANUP(close_fd) int fd = open(path.at, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && errno == ENOENT)
        return 0; /* the instance has no log */
    if (fd < 0 || write(fd, text, (size_t)len) != len)
        return err_set(err, errno, "cannot write %s: %s", path.at, strerror(errno));
    return 0;
}

static void erase(int dir, const char *file, void *ctx)
{
    (void)ctx;
    (void)unlinkat(dir, file, 0); /* after a failure the directory stays and is tried again */
}

static int by_age(const void *a, const void *b)
{
    const struct stored_log *x = a, *y = b;

    return x->at_ns != y->at_ns ? (x->at_ns > y->at_ns) - (x->at_ns < y->at_ns) : strcmp(x->name, y->name);
}

/* Lists the logs of instances without an instance directory. */
static void forgotten_list(int state, int logs, struct stored_logs *ret)
{
    int fd = fcntl(logs, F_DUPFD_CLOEXEC, 0);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    if (!entries) {
        close_fd_cleanup(&fd);
        return;
    }
    while ((e = readdir(entries))) {
        struct stored_log k = {0};
        struct stat st;
        char instance[64];

        if (strspn(e->d_name, "0123456789") != strlen(e->d_name) || strlen(e->d_name) >= sizeof k.name)
            continue;
        memcpy(k.name, e->d_name, strlen(e->d_name));
        (void)snprintf(instance, sizeof instance, "instances/%s", k.name);
        if (fstatat(state, instance, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
            continue;
        if (fstatat(logs, k.name, &st, AT_SYMLINK_NOFOLLOW) == 0)
            k.at_ns = stamp_ns(&st);
        files_each(logs, k.name, measure, &k);
        k.keep_ns = wanted_ns(logs, k.name);
        vec_push(ret, k);
    }
    closedir(entries);
}

void logs_trim(struct state_dir *p, uint64_t bytes_max, int64_t age_ns_max, int64_t now_ns)
{
    CLEANUP(close_fd) int state = open(state_dir_path(p), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CLEANUP(close_fd) int logs = state < 0 ? -1 : openat(state, "logs", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct stored_logs list = {0};
    uint64_t bytes = 0;

    if (logs < 0)
        return;
    forgotten_list(state, logs, &list);
    for (size_t i = 0; i < list.len; i++)
        bytes += list.at[i].bytes;
    if (list.len > 1)
        qsort(list.at, list.len, sizeof *list.at, by_age);
    for (size_t i = 0; i < list.len; i++) {
        int64_t age_ns = now_ns - list.at[i].at_ns;
        bool unwanted = list.at[i].keep_ns && age_ns > list.at[i].keep_ns;
        if (!unwanted && bytes <= bytes_max && age_ns <= age_ns_max)
            continue;
        files_each(logs, list.at[i].name, erase, NULL);
        (void)unlinkat(logs, list.at[i].name, AT_REMOVEDIR);
        bytes -= list.at[i].bytes;
    }
    vec_done(&list);
}
