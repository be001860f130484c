/* started_file.c - STATE/started: records started instances in one file, so that one sync makes many starts durable.
 *
 * Lines are only appended. "+ID" is written after the instance directory was created and before anything runs, "-ID"
 * after the directory was removed. If a "-ID" is lost, an ended instance reappears, which the daemon does not know, and
 * it is forgotten again. The file is rewritten from the directories when it is opened, when it has grown, and after a
 * failed sync.
 */
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
#include "machine/launch/instance_dir_parts.h"
#include "machine/launch/state_file.h"

enum { STARTED_BYTES_MORE = 64 << 10 };

static int by_number(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

int instance_dirs_list(const struct state_dir *p, struct instance_ids *ret)
{
    int fd = openat(p->instances_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;
    int rc;

    if (!entries) {
        rc = -errno;
        if (fd >= 0)
            close(fd);
        return rc;
    }
    while ((errno = 0, e = readdir(entries))) {
        char *end;
        uint64_t id = strtoull(e->d_name, &end, 10);
        char name[24];

        if (strcmp(str_u64(id, name), e->d_name) == 0)
            vec_push(ret, id);
    }
    rc = -errno;
    closedir(entries);
    if (ret->len > 1)
        qsort(ret->at, ret->len, sizeof *ret->at, by_number);
    return rc;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

struct started_line {
    uint64_t id;
    size_t at; /* position in the file: the last line of an id counts */
    char sign;
};
struct started_lines {
    struct started_line *at;
    size_t len, cap;
};

static int by_id_and_place(const void *a, const void *b)
{
    const struct started_line *x = a, *y = b;

    return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : (x->at > y->at) - (x->at < y->at);
}

/* Returns the ids whose last line is a '+'. An incomplete last line was never synced, so its instance never ran. */
static void started_parse(const char *text, struct instance_ids *ret)
{
    struct started_lines lines = {0};

    for (const char *end; (end = strchr(text, '\n')); text = end + 1) {
        char *stop;
        uint64_t id = strtoull(text + 1, &stop, 10);

        if ((*text == '+' || *text == '-') && stop == end && text + 1 != end)
            vec_push(&lines, ((struct started_line){.id = id, .at = lines.len, .sign = *text}));
    }
    if (lines.len > 1)
        qsort(lines.at, lines.len, sizeof *lines.at, by_id_and_place);
    for (size_t i = 0; i < lines.len; i++)
        if ((i + 1 == lines.len || lines.at[i + 1].id != lines.at[i].id) && lines.at[i].sign == '+')
            vec_push(ret, lines.at[i].id);
    vec_done(&lines);
}

static bool ids_has(const struct instance_ids *ids, uint64_t id)
{
    return ids->len > 0 && bsearch(&id, ids->at, ids->len, sizeof *ids->at, by_number);
}

/* Recreates an instance directory that is recorded in the file but lost or incomplete on disk. */
static int instance_restore(struct state_dir *p, uint64_t id)
{
    CLEANUP(close_fd) int dir = -1;
    struct stat st;
    char name[24];

    if (mkdirat(p->instances_fd, str_u64(id, name), 0711) && errno != EEXIST)
        return -errno;
    dir = instance_dir_open(p, id);
    if (dir < 0)
        return dir;
    if (fstatat(dir, "config.json", &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > 0)
        return 0;
    return file_write(dir, "config.json", "{}", 2, false);
}

/* Removes an instance directory without a record: instance_dir_create did not complete, so nothing of it ever ran. If
 * it contains a spec (the directory reached the disk, the line did not), it is kept. */
static int instance_discard(struct state_dir *p, uint64_t id)
{
    CLEANUP(close_fd) int dir = instance_dir_open(p, id);
    char name[24];

    if (dir < 0)
        return dir;
    if (faccessat(dir, "spec", F_OK, 0) == 0)
        return instance_restore(p, id);
    unlinkat(dir, "config.json.new", 0);
    unlinkat(dir, "config.json", 0);
    if (unlinkat(p->instances_fd, str_u64(id, name), AT_REMOVEDIR) && errno != ENOTEMPTY)
        return -errno;
    return 0;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* Called with both locks held, or before other threads exist. */
static int started_rewrite(struct state_dir *p)
{
    CLEANUP(str) struct str text = {0};
    struct instance_ids ids = {0};
    int rc = instance_dirs_list(p, &ids), fd = -1;

    for (size_t i = 0; i < ids.len; i++)
        str_addf(&text, "+%" PRIu64 "\n", ids.at[i]);
    vec_done(&ids);
    if (rc == 0)
        rc = file_write(p->dir_fd, "started", str_text(&text), text.len, true);
    if (rc)
        return rc;
    fd = openat(p->dir_fd, "started", O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    close_fd_cleanup(&p->started_fd);
    p->started_fd = fd;
    p->started_bytes = p->started_base = text.len;
    p->synced = p->appended;
    p->damaged = false;
    return 0;
}

int started_open(struct state_dir *p, struct berth_err *err)
{
    CLEANUP(mem) char *text = NULL;
    struct instance_ids begun = {0}, there = {0};
    int rc = file_read(p->dir_fd, "started", &text, NULL);

    if (rc == 0)
        started_parse(text, &begun);
    if (rc == 0 || rc == -ENOENT)
        rc = instance_dirs_list(p, &there);
    for (size_t i = 0; rc == 0 && i < begun.len; i++)
        rc = instance_restore(p, begun.at[i]);
    for (size_t i = 0; rc == 0 && i < there.len; i++)
        if (!ids_has(&begun, there.at[i]))
            rc = instance_discard(p, there.at[i]);
    vec_done(&begun);
    vec_done(&there);
    if (rc == 0)
        rc = started_rewrite(p);
    return rc ? err_set(err, -rc, "cannot open '%s/started': %s", p->dir, strerror(-rc)) : 0;
}

int started_append(struct state_dir *p, char sign, uint64_t id)
{
    char line[32];
    int len = snprintf(line, sizeof line, "%c%" PRIu64 "\n", sign, id);
    ssize_t n;
    int rc = 0;

    pthread_mutex_lock(&p->append_lock);
    n = write(p->started_fd, line, (size_t)len);
    if (n == len) {
        p->appended++;
        p->started_bytes += (uint64_t)len;
    } else {
        rc = n < 0 ? -errno : -ENOSPC;
        p->damaged |= n > 0; /* a partial line would corrupt the next one */
    }
    pthread_mutex_unlock(&p->append_lock);
    return rc;
}

static int sync_locked(struct state_dir *p)
{
    uint64_t upto;
    bool anew;
    int fd, rc;

    pthread_mutex_lock(&p->append_lock);
    upto = p->appended;
    anew = p->damaged || p->started_bytes > 2 * p->started_base + STARTED_BYTES_MORE;
    if (anew)
        rc = started_rewrite(p);
    else
        rc = 0;
    fd = p->started_fd;
    pthread_mutex_unlock(&p->append_lock);
    if (anew || p->synced == upto)
        return rc;
    if (fdatasync(fd)) {
        rc = -errno;
        pthread_mutex_lock(&p->append_lock);
        p->damaged = true;
        pthread_mutex_unlock(&p->append_lock);
        return rc;
    }
    p->synced = upto;
    return 0;
}

int state_dir_sync(struct state_dir *p, struct berth_err *err)
{
    int rc;

    pthread_mutex_lock(&p->sync_lock);
    rc = sync_locked(p);
    pthread_mutex_unlock(&p->sync_lock);
    return rc ? err_set(err, -rc, "cannot sync '%s/started', so nothing may start: %s", p->dir, strerror(-rc)) : 0;
}
