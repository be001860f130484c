/* folder_test.h - a temporary directory with files, for tests that imitate another machine.
 *
 * Include <cmocka.h> and its prerequisites before this. Errors fail the test.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))

struct folder {
    char path[64];
};

static inline struct folder folder_new(void)
{
    struct folder f = {.path = "/tmp/berth-test-XXXXXX"};
    assert_non_null(mkdtemp(f.path));
    return f;
}

static inline int folder_unlink(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st, (void)flag, (void)at;
    return remove(path);
}

static inline void folder_cleanup(struct folder *f)
{
    if (*f->path)
        (void)nftw(f->path, folder_unlink, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* Returns the path of a file in the directory; valid until the eighth call after this one. */
static inline const char *folder_at(const struct folder *f, const char *name)
{
    static char paths[8][512];
    static unsigned turn;
    char *path = paths[turn++ % ROWS(paths)];
    int len = snprintf(path, sizeof paths[0], "%s/%s", f->path, name);
    assert_true(len > 0 && len < (int)sizeof paths[0]);
    return path;
}

/* Creates every directory of the path. */
static inline void folder_make(const struct folder *f, const char *name)
{
    char path[512];
    int len = snprintf(path, sizeof path, "%s/%s/", f->path, name);
    assert_true(len > 0 && len < (int)sizeof path);
    for (char *at = strchr(path + strlen(f->path) + 1, '/'); at; at = strchr(at + 1, '/')) {
        *at = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        *at = '/';
    }
}

/* Writes a file and creates its parent directories. */
static inline void folder_put(const struct folder *f, const char *name, const char *text)
{
    char dir[256];
    int len = snprintf(dir, sizeof dir, "%s", name);
    assert_true(len > 0 && len < (int)sizeof dir);
    char *slash = strrchr(dir, '/');
    if (slash) {
        *slash = '\0';
        folder_make(f, dir);
    }
    FILE *out = fopen(folder_at(f, name), "we");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

/* Returns the content of a file; "(none)" if it does not exist. Valid until the next call. */
static inline const char *folder_get(const struct folder *f, const char *name)
{
    static char text[4096];
    FILE *in = fopen(folder_at(f, name), "re");
    if (!in)
        return "(none)";
    text[fread(text, 1, sizeof text - 1, in)] = '\0';
    (void)fclose(in);
    return text;
}
