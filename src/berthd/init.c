#include "berthd/init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

static void close_cleanup(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
}

static char *path_of(const char *dir, const char *name)
{
    struct str path = {0};

    str_addf(&path, "%s/%s", dir, name);
    return str_take(&path);
}

static int parent_sync(const char *path)
{
    CLEANUP(mem) char *copy = mem_strdup(path);
    CLEANUP(close) int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

static int bytes_write(int fd, const char *at, size_t len)
{
    while (len) {
        ssize_t n = write(fd, at, len);
        if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0) {
            at += n;
            len -= (size_t)n;
        }
    }
    return fsync(fd) < 0 ? -errno : 0;
}

int secret_write(const char *path, const char *text, struct berth_err *err)
{
    CLEANUP(str) struct str temporary = {0};

    str_addf(&temporary, "%s.new", path);
    (void)unlink(temporary.at); /* left by an interrupted start */
    CLEANUP(close) int fd = open(temporary.at, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, errno, "cannot write %s: %s", temporary.at, strerror(errno));
    int rc = bytes_write(fd, text, strlen(text));
    if (rc == 0 && rename(temporary.at, path) < 0)
        rc = -errno;
    if (rc < 0) {
        (void)unlink(temporary.at);
        return err_set(err, -rc, "cannot write %s: %s", path, strerror(-rc));
    }
    rc = parent_sync(path);
    return rc < 0 ? err_set(err, -rc, "cannot sync the folder of %s: %s", path, strerror(-rc)) : 0;
}

enum { KEY_LEN = 32, KEY_TEXT_LEN = 2 * KEY_LEN };

/* Reads a key file; *ret_there false: it does not exist. */
static int key_file_read(const char *path, unsigned char ret[static KEY_LEN], bool *ret_there, struct berth_err *err)
{
    char text[KEY_TEXT_LEN + 2] = "";
    size_t len = 0;

    CLEANUP(close) int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    *ret_there = fd >= 0 || errno != ENOENT;
    if (!*ret_there)
        return 0;
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text) : -1;
    if (n < 0)
        return err_set(err, errno, "cannot read %s: %s", path, strerror(errno));
    bool good = n >= KEY_TEXT_LEN && n <= KEY_TEXT_LEN + 1 && (n == KEY_TEXT_LEN || text[KEY_TEXT_LEN] == '\n') &&
                sodium_hex2bin(ret, KEY_LEN, text, KEY_TEXT_LEN, NULL, &len, NULL) == 0 && len == KEY_LEN;
    sodium_memzero(text, sizeof text);
    return good ? 0
                : err_set(err, EBADMSG,
                          "%s has no key (64 hexadecimal digits); restore it, or remove it and set all secrets again",
                          path);
}

int secret_key_read(const char *dir, const struct control_env *env, unsigned char ret[static KEY_LEN], bool *ret_there,
                    struct berth_err *err)
{
    CLEANUP(mem) char *path = path_of(dir, "secret.key");
    int rc = key_file_read(path, ret, ret_there, err);

    if (rc == 0 && !*ret_there)
        env->random(env->ctx, ret, KEY_LEN);
    return rc;
}

int secret_key_write(const char *dir, const unsigned char key[static KEY_LEN], struct berth_err *err)
{
    CLEANUP(mem) char *path = path_of(dir, "secret.key");
    char text[KEY_TEXT_LEN + 2];

    (void)sodium_bin2hex(text, sizeof text, key, KEY_LEN);
    text[KEY_TEXT_LEN] = '\n';
    text[KEY_TEXT_LEN + 1] = '\0';
    int rc = secret_write(path, text, err);
    sodium_memzero(text, sizeof text);
    return rc;
}

bool cluster_exists(const char *dir)
{
    CLEANUP(mem) char *path = path_of(dir, "store.db");
    struct stat found;

    return lstat(path, &found) == 0;
}

/* ---- temporary cluster ------------------------------------------------------------------------------------------ */

/* Removes the folder of an unfinished cluster with the files in it. */
static void temporary_cluster_remove(const char *aside)
{
    DIR *dir = opendir(aside);

    if (!dir)
        return;
    for (const struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            (void)unlinkat(dirfd(dir), e->d_name, 0);
    (void)closedir(dir);
    (void)rmdir(aside);
}

static void wake_never(void *ctx, int64_t steady_ns)
{
    (void)ctx;
    (void)steady_ns;
}

static void run_here(void *ctx, void (*work)(void *), void (*after)(void *), void *arg)
{
    (void)ctx;
    work(arg);
    after(arg);
}

/* Creates a cluster in the folder `aside` and a copy of it in one file. */
static int temporary_cluster_make(const char *aside, const char *copy, const struct control_env *env, char *ret_token,
                                  struct berth_err *err)
{
    const struct store_options options = {.create = true};
    const struct control_options defaults = {0};
    struct control_env quiet = *env;
    struct control *control = NULL;
    struct store *store;

    quiet.wake_at = wake_never;
    quiet.serve_soon = NULL;
    quiet.run = run_here;
    int rc = store_sqlite_open(aside, &options, &store, err);
    if (rc < 0)
        return rc;
    rc = control_new(&quiet, &defaults, store, &control, err);
    if (rc == 0)
        rc = control_init(control, ret_token, err);
    if (rc == 0) {
        control_quiesce(control);
        rc = store_backup(store, copy, err);
    }
    control_free(control);
    store_close(store);
    return rc;
}

static int folder_make(const char *dir, struct berth_err *err)
{
    if (mkdir(dir, 0700) < 0 && errno != EEXIST)
        return err_set(err, errno, "cannot create the data folder %s: %s", dir, strerror(errno));
    int rc = parent_sync(dir);
    return rc < 0 ? err_set(err, -rc, "cannot sync the folder that holds %s: %s", dir, strerror(-rc)) : 0;
}

int cluster_init(const char *dir, const char *token_file, const struct control_env *env, bool *ret_made,
                 struct berth_err *err)
{
    char token[TOKEN_TEXT_MAX + 1];

    if (cluster_exists(dir)) {
        *ret_made = false;
        return 0;
    }
    int rc = folder_make(dir, err);
    if (rc < 0)
        return rc;
    CLEANUP(mem) char *aside = path_of(dir, "init.tmp");
    CLEANUP(mem) char *copy = path_of(aside, "cluster");
    temporary_cluster_remove(aside);
    if (mkdir(aside, 0700) < 0)
        return err_set(err, errno, "cannot create the folder %s: %s", aside, strerror(errno));
    rc = temporary_cluster_make(aside, copy, env, token, err);
    if (rc == 0) {
        size_t len = strlen(token);
        token[len] = '\n';
        token[len + 1] = '\0';
        rc = secret_write(token_file, token, err);
    }
    if (rc == 0)
        rc = store_sqlite_restore(copy, dir, err);
    sodium_memzero(token, sizeof token);
    temporary_cluster_remove(aside);
    if (rc == 0)
        *ret_made = true;
    return rc;
}
