/* userns_test.c - id maps, user namespaces with them, and mounts with mapped ids. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "machine/container/userns.h"
#include "machine/launch/folder_test.h"
#include "machine/launch/state_file.h"

static struct instance_user ann(void)
{
    struct instance_user u = {
        .name = "ann", .uid = 61234, .gid = 61235, .groups = {61235, 44, 0x70000010},
                   .groups_len = 3
    };
    u.uids = u.gids = user_range_of_slot(0);
    return u;
}

static void id_maps_contain_the_owner(void **state)
{
    (void)state;
    const struct instance_user user = ann();
    struct userns_maps maps;
    uint32_t id;
    userns_maps_of(&user, &maps);
    static const struct {
        uint32_t inside, uid, gid; /* 0: unmapped */
    } rows[] = {
        {0,              61234,      61235     },
        {1,              0x70000001, 0x70000001},
        {33,             0x70000021, 0x70000021},
        {65535,          0x7000ffff, 0x7000ffff},
        {65536,          0,          0         }, /* not mapped again: the owner's own group */
        {65537,          0,          44        },
        {65538,          0,          0         }, /* not mapped again: within the owner's range */
        {UINT32_MAX - 1, 0,          0         },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        assert_int_equal(id_map_out(&maps.uids, rows[i].inside, &id), rows[i].uid != 0);
        assert_true(!rows[i].uid || id == rows[i].uid);
        assert_int_equal(id_map_out(&maps.gids, rows[i].inside, &id), rows[i].gid != 0);
        assert_true(!rows[i].gid || id == rows[i].gid);
        assert_true(!rows[i].gid || (id_map_in(&maps.gids, rows[i].gid, &id) && id == rows[i].inside));
    }
    assert_false(id_map_in(&maps.uids, 0, &id)); /* the node's root is unmapped */
    assert_false(id_map_in(&maps.gids, 0, &id));
}

static void swapped_ids_map_to_each_other(void **state)
{
    (void)state;
    static const uint32_t pairs[][2] = {
        {5,      9             },
        {9,      5             },
        {0,      1             },
        {200000, 0x70000021    },
        {7,      7             },
        {0,      UINT32_MAX - 1},
    };
    static const uint32_t ids[] = {0, 1, 4, 5, 6, 7, 8, 9, 10, 200000, 0x70000021, 0x70000022, UINT32_MAX - 1};
    for (size_t i = 0; i < ROWS(pairs); i++) {
        struct id_map map;
        id_map_swap(pairs[i][0], pairs[i][1], &map);
        for (size_t k = 0; k < ROWS(ids); k++) {
            uint32_t want = ids[k] == pairs[i][0] ? pairs[i][1] : ids[k] == pairs[i][1] ? pairs[i][0] : ids[k], out;
            assert_true(id_map_out(&map, ids[k], &out));
            assert_int_equal(out, want);
        }
        uint32_t out;
        assert_false(id_map_out(&map, UINT32_MAX, &out)); /* means "unchanged" */
    }
}

/* Skips the test with the reason if the kernel or the user lacks support. */
static void needs(void)
{
    struct berth_err err;
    if (geteuid() != 0) {
        print_message("skip: not root\n");
        skip();
    }
    if (userns_check(&err) < 0) {
        print_message("skip: %s\n", err.text);
        skip();
    }
}

static void mounts_have_mapped_ids(void **state)
{
    (void)state;
    needs();
    CLEANUP(folder) struct folder f = folder_new();
    folder_put(&f, "file", "x");
    folder_put(&f, "web", "x");
    assert_int_equal(chown(folder_at(&f, "web"), 33, 33), 0);
    const struct instance_user user = ann();
    struct userns_maps maps;
    struct stat st;
    userns_maps_of(&user, &maps);
    CLEANUP(close_fd) int ns = userns_open(&maps);
    assert_true(ns >= 0);
    CLEANUP(close_fd) int tree = userns_tree(AT_FDCWD, f.path, ns);
    if (tree == -EINVAL) {
        print_message("skip: the file system of /tmp cannot be seen through a namespace\n");
        skip();
    }
    assert_true(tree >= 0);
    assert_int_equal(fstatat(tree, "file", &st, 0), 0);
    assert_int_equal(st.st_uid, 61234);
    assert_int_equal(st.st_gid, 61235);
    assert_int_equal(fstatat(tree, "web", &st, 0), 0);
    assert_int_equal(st.st_uid, 0x70000021);
    CLEANUP(close_fd) int plain = userns_tree(tree, "web", -1); /* a copy of a mapped mount keeps its map */
    assert_true(plain >= 0);
    assert_int_equal(fstat(plain, &st), 0);
    assert_int_equal(st.st_uid, 0x70000021);
}

/* Maps that the kernel rejects are errors, and no process is left. */
static void invalid_maps_are_rejected(void **state)
{
    (void)state;
    needs();
    struct instance_user user = ann();
    struct userns_maps maps;
    user.uids.first = user.uid;
    userns_maps_of(&user, &maps);
    assert_int_equal(userns_open(&maps), -EINVAL);
    maps.uids.len = 0;
    assert_true(userns_open(&maps) < 0);
    assert_int_equal(userns_tree(AT_FDCWD, "/nothing/here", -1), -ENOENT);
    assert_int_equal(waitpid(-1, NULL, WNOHANG | __WALL), -1);
    assert_int_equal(errno, ECHILD);
}

/* As for an agent inside a user namespace with a single uid, which has no further uids to map. */
static void userns_check_reports_reason(void **state)
{
    (void)state;
    int status = -1;
    needs();
    pid_t pid = fork();
    if (pid == 0) {
        struct berth_err err = {0};
        if (unshare(CLONE_NEWUSER) < 0)
            _exit(2);
        _exit(userns_check(&err) < 0 && strstr(err.text, "user namespace") ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(id_maps_contain_the_owner),   cmocka_unit_test(swapped_ids_map_to_each_other),
        cmocka_unit_test(mounts_have_mapped_ids),      cmocka_unit_test(invalid_maps_are_rejected),
        cmocka_unit_test(userns_check_reports_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
