/* image_user_test.c - users of images, with valid and hostile passwd and group files. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/image/image_user.h"
#include "machine/launch/folder_test.h"
#include "machine/launch/state_file.h"

static int find(const struct folder *f, const char *user, struct image_user *ret, struct berth_err *err)
{
    CLEANUP(close_fd) int root = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(root >= 0);
    return image_user_find(root, user, ret, err);
}

static void users_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *user;
        uint32_t uid, gid;
        size_t groups;
        uint32_t last; /* last supplementary group */
    } rows[] = {
        {NULL,         0,          0,    0, 0 },
        {"",           0,          0,    0, 0 },
        {"root",       0,          0,    1, 50},
        {"0",          0,          0,    1, 50},
        {"web",        33,         34,   2, 41},
        {"33",         33,         34,   2, 41},
        {"web:more",   33,         40,   0, 0 },
        {"web:77",     33,         77,   0, 0 },
        {"1000",       1000,       0,    0, 0 },
        {"1000:1001",  1000,       1001, 0, 0 },
        {":more",      0,          40,   0, 0 },
        {"4294967294", 4294967294, 0,    0, 0 },
    };
    CLEANUP(folder) struct folder f = folder_new();
    folder_put(&f, "etc/passwd",
               "# people\n\nbad line\nroot:x:0:0:r:/root:/bin/sh\nevil:x:-1:0::/:\nhuge:x:99999999999999999999:0::/:\n"
               "web:x:33:34:w:/:/bin/sh\nweb:x:0:0:a second one:/:\nweb2:x:33:0::/:");
    folder_put(&f, "etc/group",
               "root:x:0:\nweb:x:34:web\nmore:x:40:a,web,b\nodd:x:x:web\nyet:x:41:web\nwide:x:50:root,webby");
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct image_user got = {.uid = 99};
        struct berth_err err;
        if (find(&f, rows[i].user, &got, &err) < 0)
            fail_msg("%s: %s", rows[i].user, err.text);
        assert_int_equal(got.uid, rows[i].uid);
        assert_int_equal(got.gid, rows[i].gid);
        assert_int_equal(got.groups_len, rows[i].groups);
        assert_true(!got.groups_len || got.groups[got.groups_len - 1] == rows[i].last);
    }
}

static void users_resolve_without_passwd_files(void **state)
{
    (void)state;
    static const struct {
        const char *user;
        int rc;
    } rows[] = {
        {"",            0      },
        {"root",        0      },
        {"root:root",   0      },
        {"65534:65534", 0      },
        {"web",         -EINVAL},
        {"0:web",       -EINVAL},
        {"4294967295",  -EINVAL}, /* means "unchanged", and is no name */
        {"-1",          -EINVAL},
        {"0x10",        -EINVAL},
    };
    CLEANUP(folder) struct folder f = folder_new();
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct image_user got = {.uid = 99};
        struct berth_err err;
        assert_int_equal(find(&f, rows[i].user, &got, &err), rows[i].rc);
        assert_true(rows[i].rc == 0 || got.uid == 99); /* output untouched on failure */
    }
}

/* Names of any length in the files and in the request. */
static void long_user_names_are_handled(void **state)
{
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(str) struct str text = {0};
    struct image_user got;
    struct berth_err err;
    for (int i = 0; i < 5000; i++)
        str_add(&text, "n");
    assert_int_equal(find(&f, str_text(&text), &got, &err), -EINVAL);
    assert_non_null(strstr(err.text, "too long"));
    str_add(&text, ":x:1:1::/:\nweb:x:5:6::/:\n");
    folder_put(&f, "etc/passwd", str_text(&text));
    assert_int_equal(find(&f, "web", &got, &err), 0);
    assert_int_equal(got.uid, 5);
}

static void excess_groups_are_dropped(void **state)
{
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(str) struct str text = {0};
    struct image_user got;
    struct berth_err err;
    for (int i = 0; i < 1000; i++)
        str_addf(&text, "g%d:x:%d:web\n", i, 1000 + i);
    folder_put(&f, "etc/group", str_text(&text));
    folder_put(&f, "etc/passwd", "web:x:5:6::/:\n");
    assert_int_equal(find(&f, "web", &got, &err), 0);
    assert_int_equal(got.groups_len, IMAGE_GROUPS_MAX);
}

/* Files of a wrong type, links out of the root, or too large files: an error, and no file outside the image is read. */
static void hostile_user_files_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *label, *want;
    } rows[] = {
        {"pipe",   "is not a regular file"},
        {"folder", "is not a regular file"},
        {"huge",   "is larger than"       },
        {"loop",   "cannot be opened"     },
        {"device", "is not a regular file"},
 /* the node's /etc/passwd has a user daemon; within the image's root these links lead nowhere */
        {"out",    "which is not in"      },
        {"above",  "which is not in"      },
        {"proc",   "which is not in"      },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(folder) struct folder f = folder_new();
        struct image_user got;
        struct berth_err err = {0};
        folder_make(&f, "etc");
        const char *path = folder_at(&f, "etc/passwd");
        int rc = 0;
        if (strcmp(rows[i].label, "pipe") == 0)
            rc = mkfifo(path, 0644);
        else if (strcmp(rows[i].label, "folder") == 0)
            rc = mkdir(path, 0755);
        else if (strcmp(rows[i].label, "device") == 0)
            rc = mknod(path, S_IFCHR | 0644, makedev(1, 5));
        else if (strcmp(rows[i].label, "loop") == 0)
            rc = symlink("passwd", path);
        else if (strcmp(rows[i].label, "out") == 0)
            rc = symlink("/etc/passwd-of-the-image", path);
        else if (strcmp(rows[i].label, "above") == 0)
            rc = symlink("../../../../../../../../etc/shadow", path);
        else if (strcmp(rows[i].label, "proc") == 0)
            rc = symlink("/proc/self/root/etc/passwd", path);
        else {
            folder_put(&f, "etc/passwd", "daemon:x:1:1::/:\n");
            rc = truncate(path, (off_t)1 << 40); /* a sparse file, which costs the image nothing */
        }
        if (rc < 0 && errno == EPERM) {
            print_message("skip: not root\n");
            continue;
        }
        if (rc < 0 && errno == EFBIG)
            rc = truncate(path, (off_t)IMAGE_USERS_BYTES_MAX + 1);
        assert_int_equal(rc, 0);
        assert_int_equal(find(&f, "daemon", &got, &err), -EINVAL);
        if (!strstr(err.text, rows[i].want))
            fail_msg("%s: %s", rows[i].label, err.text);
        assert_int_equal(find(&f, "", &got, &err), 0); /* without a user no file is read */
    }
}

/* Links within the image are followed. */
static void links_within_image_are_followed(void **state)
{
    (void)state;
    CLEANUP(folder) struct folder f = folder_new();
    struct image_user got;
    struct berth_err err;
    folder_put(&f, "usr/lib/passwd", "daemon:x:7:8::/:\n");
    folder_make(&f, "etc");
    assert_int_equal(symlink("/usr/lib/passwd", folder_at(&f, "etc/passwd")), 0);
    assert_int_equal(find(&f, "daemon", &got, &err), 0);
    assert_int_equal(got.uid, 7);
    assert_int_equal(got.gid, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(users_are_found),
        cmocka_unit_test(users_resolve_without_passwd_files),
        cmocka_unit_test(long_user_names_are_handled),
        cmocka_unit_test(excess_groups_are_dropped),
        cmocka_unit_test(hostile_user_files_are_rejected),
        cmocka_unit_test(links_within_image_are_followed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
