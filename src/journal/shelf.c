/* shelf.c - segment files in directories: listing and retention. */
#include "journal/shelf.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "store/publish.h"

void shelf_done(struct shelf *s)
{
    for (size_t i = 0; i < s->items.len; i++)
        mem_free(s->items.at[i].path);
    vec_done(&s->items);
}

char *shelf_path(const char *dir, uint64_t number)
{
    struct str path = {0};
    str_addf(&path, "%s/%06" PRIu64 SHELF_ENDING, dir, number);
    return str_take(&path);
}

static bool is_segment(const char *name)
{
    size_t len = strlen(name), end = strlen(SHELF_ENDING);
    return len > end && strcmp(name + len - end, SHELF_ENDING) == 0;
}

int shelf_add_file(struct shelf *s, const char *path, struct berth_err *err)
{
    struct shelf_item item = {0};
    int rc = segment_read_info(path, &item.segment, err);
    if (rc < 0)
        return rc;
    size_t at = s->items.len;
    while (at > 0 && s->items.at[at - 1].segment.number > item.segment.number)
        at--;
    if (at > 0 && s->items.at[at - 1].segment.number == item.segment.number) {
        struct shelf_item *other = &s->items.at[at - 1];
        if (other->segment.hash == item.segment.hash) { /* a copy: the other file may be about to be removed */
            mem_free(other->path);
            other->path = mem_strdup(path);
            return 0;
        }
        return err_set(err, EEXIST,
                       "%s and %s are both segment %" PRIu64 ", of different histories; choose one of "
                       "them",
                       other->path, path, item.segment.number);
    }
    item.path = mem_strdup(path);
    vec_push(&s->items, item);
    memmove(s->items.at + at + 1, s->items.at + at, (s->items.len - 1 - at) * sizeof *s->items.at);
    s->items.at[at] = item;
    return 0;
}

int shelf_add_folder(struct shelf *s, const char *dir, struct berth_err *err)
{
    DIR *folder = opendir(dir);
    int rc = 0;
    if (!folder)
        return errno == ENOENT ? 0 : err_set(err, errno, "cannot read %s: %s", dir, strerror(errno));
    for (struct dirent *entry; rc == 0 && (entry = readdir(folder));) {
        CLEANUP(str) struct str path = {0};
        if (!is_segment(entry->d_name))
            continue;
        str_addf(&path, "%s/%s", dir, entry->d_name);
        rc = shelf_add_file(s, path.at, err);
        if (rc == -ENOENT) /* moved after the directory was read */
            rc = 0;
    }
    (void)closedir(folder);
    return rc;
}

size_t shelf_base(const struct shelf *s)
{
    return s->items.len ? shelf_base_of(s, s->items.len - 1) : 0;
}

size_t shelf_base_of(const struct shelf *s, size_t item)
{
    for (size_t i = item + 1; i-- > 0;) {
        const struct segment *at = &s->items.at[i].segment;
        if (at->base == SEGMENT_LOOSE)
            break;
        if (at->base != SEGMENT_CONTINUES)
            return i;
        if (i == 0 || !shelf_follows(&s->items.at[i - 1].segment, at))
            break;
    }
    return s->items.len;
}

bool shelf_follows(const struct segment *before, const struct segment *after)
{
    return after->number == before->number + 1 && after->first == before->last + 1 && after->previous == before->hash &&
           after->chain_before == before->chain;
}

/* ---- retention -------------------------------------------------------------------------------------------------- */

static int copy_bytes(const char *from, const char *to, struct berth_err *err)
{
    char buf[65536];
    int in = open(from, O_RDONLY | O_CLOEXEC);
    int out = in < 0 ? -1 : open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = out < 0 ? -errno : 0;
    for (ssize_t n; rc == 0 && (n = read(in, buf, sizeof buf)) != 0;)
        if (n < 0 || write(out, buf, (size_t)n) != n)
            rc = errno ? -errno : -EIO;
    if (in >= 0)
        (void)close(in);
    if (out >= 0 && close(out) < 0 && rc == 0)
        rc = -errno;
    return rc < 0 ? err_set(err, -rc, "cannot copy %s to %s: %s", from, to, strerror(-rc)) : 0;
}

/* Moves a segment. It may be copied to another file system, so it is written under a temporary name; the old file is
 * removed last. */
static int move_one(const char *from, const char *exported, uint64_t number, struct berth_err *err)
{
    CLEANUP(mem) char *to = shelf_path(exported, number);
    CLEANUP(str) struct str partial = {0};
    struct segment was, is;
    str_addf(&partial, "%s.partial", to);
    int rc = segment_read_info(from, &was, err);
    if (rc < 0)
        return rc;
    if (access(to, F_OK) != 0) {
        rc = copy_bytes(from, partial.at, err);
        if (rc == 0)
            rc = folder_file_publish(partial.at, to, err);
        (void)unlink(partial.at);
    }
    if (rc == 0)
        rc = segment_walk(to, 0, &(struct segment_visitor){0}, err);
    if (rc == 0)
        rc = segment_read_info(to, &is, err);
    if (rc == 0 && is.hash != was.hash)
        rc = err_set(err, EEXIST, "%s already exists and differs from %s; move it away", to, from);
    if (rc == 0 && unlink(from) < 0)
        rc = err_set(err, errno, "cannot remove %s, which was copied to %s: %s", from, to, strerror(errno));
    return rc;
}

int shelf_retain(const struct shelf_retention *r, size_t *ret, struct berth_err *err)
{
    CLEANUP(shelf) struct shelf s = {0};
    uint64_t bytes = 0;
    int rc = shelf_add_folder(&s, r->dir, err);
    for (size_t i = 0; i < s.items.len; i++)
        bytes += s.items.at[i].segment.file_bytes;
    size_t base = rc == 0 ? shelf_base(&s) : 0, moved = 0;
    if (base == s.items.len)
        base = s.items.len ? s.items.len - 1 : 0;
    for (size_t i = 0; rc == 0 && i < base; i++) {
        const struct segment *at = &s.items.at[i].segment;
        if (at->to_ns >= r->before_ns && bytes <= r->bytes_max)
            break;
        if (r->exported && moved == 0 && mkdir(r->exported, 0700) < 0 && errno != EEXIST)
            rc = err_set(err, errno, "cannot create %s: %s", r->exported, strerror(errno));
        if (rc == 0 && r->exported)
            rc = move_one(s.items.at[i].path, r->exported, at->number, err);
        else if (rc == 0 && unlink(s.items.at[i].path) < 0)
            rc = err_set(err, errno, "cannot remove %s: %s", s.items.at[i].path, strerror(errno));
        if (rc == 0) {
            bytes -= at->file_bytes;
            moved++;
        }
    }
    *ret = moved;
    return rc;
}
