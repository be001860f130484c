/* mount_files.c - files, secrets and settings of an instance on the node. */
#include "machine/mount/mount_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "machine/mount/mount_tree.h"

enum { HASHED_MAX = 24 };

/* Builds a name from the hash of a path. After a collision two directories of one instance would share their files,
 * which affects only that instance. */
static const char *hashed(char kind, const char *path, char buf[static HASHED_MAX])
{
    (void)snprintf(buf, HASHED_MAX, "%c-%016" PRIx64, kind, hash_bytes(path, strlen(path), 0));
    return buf;
}

/* ---- content ---------------------------------------------------------------------------------------------------- */

struct file_content {
    const char *text;
    size_t len;
    uid_t uid;
    gid_t gid;
    mode_t mode;
};

static struct file_content content_of(const struct file_set *s, const struct plan_file *f)
{
    if (f->text)
        return (struct file_content){f->text, f->text_len, s->user->uid, s->user->gid, f->mode};
    const char *text = s->find(s->ctx, f->secret, f->key);
    return (struct file_content){text, text ? strlen(text) : 0, s->user->uid, s->user->gid, 0400};
}

int files_check(const struct file_set *s, struct berth_err *err)
{
    for (size_t i = 0; i < s->plan->files_len; i++) {
        const struct plan_file *f = &s->plan->files[i];
        if (!f->text && (!s->find || !s->find(s->ctx, f->secret, f->key)))
            return err_set(err, ENOENT, "file %s: secret %s with key %s does not exist", f->path, f->secret, f->key);
    }
    return 0;
}

static bool is_same(int folder, const char *name, const struct file_content *c)
{
    CLEANUP(mem) char *text = NULL;
    size_t len = 0;
    struct stat st;
    bool same = tree_read(folder, name, PLAN_TEXT_MAX, &text, &len) == 0 && len == c->len &&
                memcmp(text, c->text, len) == 0 && fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
                (st.st_mode & 0777) == c->mode;
    if (text)
        explicit_bzero(text, len);
    return same;
}

/* Writes a file only if it differs, so that watchers are not woken without a change. */
static int content_write(int folder, const char *name, const struct file_content *c)
{
    if (is_same(folder, name, c))
        return 0;
    return tree_write(folder, name, c->text, c->len, c->uid, c->gid, c->mode);
}

static int settings_write(const struct file_set *s, int files)
{
    CLEANUP(close_fd) int folder = tree_folder(files, "settings", 0755);
    if (folder < 0)
        return folder;
    char *text = json_dumps(s->plan->settings, JSON_INDENT(2));
    if (!text)
        return -EINVAL;
    size_t len = strlen(text);
    text[len] = '\n'; /* replaces the NUL */
    const struct file_content c = {text, len + 1, s->user->uid, s->user->gid, 0444};
    int rc = content_write(folder, SETTINGS_FILE, &c);
    free(text);
    return rc;
}

/* ---- location --------------------------------------------------------------------------------------------------- */

static bool is_within(const char *path, const char *folder)
{
    size_t len = strlen(folder);
    return strncmp(path, folder, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

/* Tells whether the directory can be mounted as a whole without hiding anything: it is missing or empty in the root
 * (empty after an earlier mount), and nothing else is mounted in it or above it. */
static bool is_own_folder(const struct file_set *s, int root, const char *folder)
{
    if (!*folder)
        return false;
    for (size_t i = 0; i < s->plan->mounts_len; i++)
        if (is_within(folder, s->plan->mounts[i].path) || is_within(s->plan->mounts[i].path, folder))
            return false;
    for (size_t i = 0; i < s->plan->files_len; i++) {
        const char *other = s->plan->files[i].folder;
        if (strcmp(other, folder) != 0 && *other && (is_within(other, folder) || is_within(folder, other)))
            return false;
    }
    CLEANUP(close_fd) int there = tree_open_in(root, folder, O_RDONLY | O_DIRECTORY);
    return there == -ENOENT || (there >= 0 && tree_is_empty(there));
}

static bool has_secret(const struct file_set *s, const char *folder)
{
    for (size_t i = 0; i < s->plan->files_len; i++)
        if (!s->plan->files[i].text && strcmp(s->plan->files[i].folder, folder) == 0)
            return true;
    return false;
}

/* Mounts the tmpfs for secrets, without swap if the kernel supports that (6.4). */
static int secrets_mount(const struct file_set *s, int instance)
{
    char path[STATE_PATH_MAX];
    int rc = instance_dir_path(s->state_dir, s->id, "secrets", path);
    CLEANUP(close_fd) int point = rc < 0 ? rc : tree_folder(instance, "secrets", 0700);
    if (point < 0)
        return point;
    unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (mount("berth", path, "tmpfs", flags, "size=16m,nr_inodes=4096,mode=0700,noswap") < 0 &&
        mount("berth", path, "tmpfs", flags, "size=16m,nr_inodes=4096,mode=0700") < 0)
        return -errno;
    if (mount(NULL, path, NULL, MS_PRIVATE, NULL) < 0)
        return -errno;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static const char *source_path(const struct file_set *s, struct arena *arena, const char *base, const char *name)
{
    char path[STATE_PATH_MAX];
    return instance_dir_path(s->state_dir, s->id, base, path) < 0 ? "" : arena_fmt(arena, "%s/%s", path, name);
}

struct base_dirs {
    int files, secrets;
};

static void base_dirs_cleanup(struct base_dirs *b)
{
    close_fd_cleanup(&b->files);
    close_fd_cleanup(&b->secrets);
}

/* Writes a file and adds its mount, unless its directory is in the list already. */
static int file_make(const struct file_set *s, const struct base_dirs *b, int root, const struct plan_file *f,
                     bool again, struct arena *arena, struct launch_mount *list, size_t *len)
{
    bool secret = has_secret(s, f->folder), own = is_own_folder(s, root, f->folder);
    const char *base = secret ? "secrets" : "files";
    int base_fd = secret ? b->secrets : b->files;
    char name[HASHED_MAX];
    hashed(own ? 'd' : 'f', own ? f->folder : f->path, name);
    CLEANUP(close_fd) int folder = own ? tree_folder(base_fd, name, 0755) : -1;
    if (own && folder < 0)
        return folder;
    struct file_content c = content_of(s, f);
    int rc = content_write(own ? folder : base_fd, own ? f->name : name, &c);
    if (rc == 0 && !(own && again))
        list[(*len)++] = (struct launch_mount){
            .source = source_path(s, arena, base, name),
            .target = own ? f->folder : f->path,
            .read_only = true,
        };
    return rc;
}

int files_make(const struct file_set *s, int root, struct arena *arena, struct launch_mount *list, size_t *len,
               struct berth_err *err)
{
    CLEANUP(base_dirs) struct base_dirs b = {.files = -1, .secrets = -1};
    CLEANUP(close_fd) int instance = tree_open_instance(s->state_dir, s->id);
    b.files = instance < 0 ? instance : tree_folder(instance, "files", 0700);
    if (b.files < 0)
        return err_set(err, -b.files, "cannot create the folder of an instance's files: %s", strerror(-b.files));
    if (s->plan->settings) {
        int rc = settings_write(s, b.files);
        if (rc < 0)
            return err_set(err, -rc, "cannot write the settings: %s", strerror(-rc));
        if (geteuid() == 0)
            list[(*len)++] = (struct launch_mount){
                .source = source_path(s, arena, "files", "settings"), .target = SETTINGS_FOLDER, .read_only = true};
    }
    for (size_t i = 0; i < s->plan->files_len; i++) {
        const struct plan_file *f = &s->plan->files[i];
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again = again || strcmp(s->plan->files[k].folder, f->folder) == 0;
        if (b.secrets < 0 && has_secret(s, f->folder))
            b.secrets = secrets_mount(s, instance);
        int rc =
            b.secrets < 0 && has_secret(s, f->folder) ? b.secrets : file_make(s, &b, root, f, again, arena, list, len);
        if (rc < 0)
            return err_set(err, -rc, "file %s: cannot create it: %s", f->path, strerror(-rc));
    }
    return 0;
}

/* ---- changes ---------------------------------------------------------------------------------------------------- */

static bool is_planned(const struct file_set *s, const char *folder_name, const char *name)
{
    char buf[HASHED_MAX];
    for (size_t i = 0; i < s->plan->files_len; i++)
        if (strcmp(s->plan->files[i].name, name) == 0 &&
            strcmp(hashed('d', s->plan->files[i].folder, buf), folder_name) == 0)
            return true;
    return false;
}

static void dir_cleanup(DIR **dir)
{
    if (*dir)
        (void)closedir(*dir);
}

static DIR *dir_below(int base, const char *name)
{
    int fd = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir && fd >= 0)
        (void)close(fd);
    return dir;
}

/* Removes files that are not configured any more from directories that are mounted as a whole. */
static int remove_stale_files(const struct file_set *s, int base)
{
    CLEANUP(dir) DIR *all = dir_below(base, ".");
    const struct dirent *e, *f;
    while (all && (e = readdir(all))) {
        CLEANUP(dir) DIR *one = strncmp(e->d_name, "d-", 2) == 0 ? dir_below(base, e->d_name) : NULL;
        while (one && (f = readdir(one)))
            if (strcmp(f->d_name, ".") != 0 && strcmp(f->d_name, "..") != 0 && !is_planned(s, e->d_name, f->d_name) &&
                unlinkat(dirfd(one), f->d_name, 0) < 0 && errno != ENOENT)
                return -errno;
    }
    return all ? 0 : -errno;
}

static int planned_write(const struct file_set *s, int base, bool secrets, struct berth_err *err)
{
    for (size_t i = 0; i < s->plan->files_len; i++) {
        const struct plan_file *f = &s->plan->files[i];
        char name[HASHED_MAX];
        if (!secrets && !f->text)
            continue; /* a secret whose directory is not on the tmpfs has to wait for the next start */
        CLEANUP(close_fd) int folder = tree_open(base, hashed('d', f->folder, name), O_RDONLY | O_DIRECTORY, 0);
        if (folder == -ENOENT)
            continue;
        struct file_content c = content_of(s, f);
        int rc = folder < 0 ? folder : content_write(folder, f->name, &c);
        if (rc < 0)
            return err_set(err, -rc, "file %s: cannot write it: %s", f->path, strerror(-rc));
    }
    return 0;
}

static int base_change(const struct file_set *s, int instance, const char *name, struct berth_err *err)
{
    bool secrets = strcmp(name, "secrets") == 0;
    CLEANUP(close_fd) int base = openat(instance, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (base < 0)
        return errno == ENOENT ? 0 : err_set(err, errno, "cannot open %s: %s", name, strerror(errno));
    int rc = planned_write(s, base, secrets, err);
    if (rc < 0)
        return rc;
    rc = remove_stale_files(s, base);
    if (rc == 0 && !secrets && s->plan->settings)
        rc = settings_write(s, base);
    return rc < 0 ? err_set(err, -rc, "cannot change the files of an instance: %s", strerror(-rc)) : 0;
}

int files_change(const struct file_set *s, struct berth_err *err)
{
    CLEANUP(close_fd) int instance = tree_open_instance(s->state_dir, s->id);
    if (instance < 0)
        return err_set(err, -instance, "no instance %" PRIu64, s->id);
    int rc = base_change(s, instance, "files", err);
    return rc < 0 ? rc : base_change(s, instance, "secrets", err);
}
