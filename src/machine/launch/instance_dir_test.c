#include "machine/launch/instance_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "machine/launch/launch_kit_test.h"

static struct state_dir *open_again(struct kit *k)
{
    struct berth_err err;

    state_dir_free(k->state_dir);
    k->state_dir = NULL;
    if (state_dir_open(k->root, &k->state_dir, &err))
        fail_msg("%s", err.text);
    return k->state_dir;
}

static void put(struct kit *k, const char *file, const char *text)
{
    int dir = open(k->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(file_write(dir, file, text, strlen(text), false), 0);
    close(dir);
}

static void list_id(void *ctx, uint64_t id)
{
    str_addf(ctx, "%" PRIu64 " ", id);
}

static void expect_ids(const struct state_dir *p, const char *want)
{
    CLEANUP(str) struct str ids = {0};

    assert_int_equal(instance_dirs_each(p, list_id, &ids), 0);
    assert_string_equal(str_text(&ids), want);
}

static void epoch_grows(void **state)
{
    struct kit *k = *state;
    struct state_dir *other;
    struct berth_err err;

    uint64_t first = state_dir_epoch(k->state_dir);
    assert_in_range(first, 1, 65536);
    assert_int_equal(state_dir_open(k->root, &other, &err), -EBUSY);
    assert_in_range(state_dir_epoch(open_again(k)), first + 1, first + 65536);
    put(k, "epoch", "x\n");
    state_dir_free(k->state_dir);
    k->state_dir = NULL;
    assert_int_equal(state_dir_open(k->root, &k->state_dir, &err), -EINVAL);
    put(k, "epoch", "41\n");
    assert_in_range(state_dir_epoch(open_again(k)), 42, 41 + 65536);
}

static void instance_dir_is_created_once(void **state)
{
    struct kit *k = *state;
    struct berth_err err;
    char *text;

    assert_int_equal(instance_dir_create(k->state_dir, 10, "{\"a\": 1}", &err), 0);
    assert_int_equal(instance_dir_create(k->state_dir, 9, "{}", &err), 0);
    assert_int_equal(instance_dir_create(k->state_dir, 10, "{}", &err), -EEXIST);
    assert_int_equal(state_dir_sync(k->state_dir, &err), 0);
    open_again(k);
    expect_ids(k->state_dir, "9 10 ");
    assert_int_equal(instance_dir_create(k->state_dir, 10, "{}", &err), -EEXIST);
    assert_int_equal(instance_dir_read(k->state_dir, 10, "config.json", &text, &err), 0);
    assert_string_equal(text, "{\"a\": 1}");
    mem_free(text);
    assert_int_equal(instance_dir_remove(k->state_dir, 10, &err), 0);
    assert_int_equal(instance_dir_remove(k->state_dir, 10, &err), 0);
    expect_ids(k->state_dir, "9 ");
    open_again(k);
    expect_ids(k->state_dir, "9 ");
}

/* State after a power failure: synced lines, with or without their directories. */
static void started_file_survives_power_failure(void **state)
{
    static const struct {
        const char *label, *started, *want;
        bool folder_7, spec_7;
    } rows[] = {
        {"the folder is lost",         "+7\n",              "7 ", false, false},
        {"the folder is empty",        "+7\n",              "7 ", true,  false},
        {"it was over",                "+7\n-7\n",          "",   false, false},
        {"begun, ended, begun",        "+7\n-7\n+7\n",      "7 ", false, false},
        {"the last line is not whole", "+8\n+7",            "8 ", false, false},
        {"a line of rubbish",          "+8\nxyz\n+\n-9x\n", "8 ", false, false},
        {"begin did not get through",  "",                  "",   true,  false},
        {"the file was removed",       "",                  "7 ", true,  true },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kit *k = *state;
        struct berth_err err;
        char path[128], *text;

        put(k, "started", rows[i].started);
        (void)snprintf(path, sizeof path, "%s/instances/7", k->root);
        if (rows[i].folder_7)
            assert_int_equal(mkdir(path, 0700), 0);
        if (rows[i].spec_7)
            assert_int_equal(instance_dir_write(k->state_dir, 7, "spec", "x", &err), 0);
        open_again(k);
        expect_ids(k->state_dir, rows[i].want);
        if (strcmp(rows[i].want, "7 ") == 0) {
            assert_int_equal(instance_dir_read(k->state_dir, 7, "config.json", &text, &err), 0);
            assert_string_equal(text, "{}");
            mem_free(text);
        }
        assert_int_equal(instance_dir_remove(k->state_dir, 7, &err), 0);
        assert_int_equal(instance_dir_remove(k->state_dir, 8, &err), 0);
    }
}

static void started_file_is_rewritten_when_grown(void **state)
{
    struct kit *k = *state;
    struct berth_err err;
    struct stat st;
    char path[128];

    (void)snprintf(path, sizeof path, "%s/started", k->root);
    assert_int_equal(instance_dir_create(k->state_dir, 5, "{}", &err), 0);
    for (int i = 0; i < 1600; i++) {
        assert_int_equal(instance_dir_create(k->state_dir, UINT64_C(10000000000000000000), "", &err), 0);
        assert_int_equal(instance_dir_remove(k->state_dir, UINT64_C(10000000000000000000), &err), 0);
    }
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size > 64 << 10);
    assert_int_equal(state_dir_sync(k->state_dir, &err), 0);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_size, 3);
    assert_int_equal(instance_dir_create(k->state_dir, 6, "{}", &err), 0);
    assert_int_equal(state_dir_sync(k->state_dir, &err), 0);
    open_again(k);
    expect_ids(k->state_dir, "5 6 ");
}

static void *sync_often(void *ctx)
{
    for (int i = 0; i < 50; i++)
        if (state_dir_sync(ctx, NULL))
            return ctx;
    return NULL;
}

static void sync_is_thread_safe(void **state)
{
    struct kit *k = *state;
    struct berth_err err;
    pthread_t thread;
    void *failed;

    assert_int_equal(pthread_create(&thread, NULL, sync_often, k->state_dir), 0);
    for (uint64_t id = 1; id <= 200; id++)
        assert_int_equal(instance_dir_create(k->state_dir, id, "{}", &err), 0);
    assert_int_equal(pthread_join(thread, &failed), 0);
    assert_null(failed);
    put(k, "instances/200/config.json", "");
    open_again(k);
    for (uint64_t id = 1; id <= 200; id++)
        assert_int_equal(instance_dir_create(k->state_dir, id, "{}", &err), -EEXIST);
}

static void names_with_slashes_are_rejected(void **state)
{
    struct kit *k = *state;
    static const char *const bad[] = {"", ".", "..", "...", "a/b", "/a", "../a"};
    char path[STATE_PATH_MAX], want[128], *text;
    struct berth_err err;

    assert_int_equal(instance_dir_create(k->state_dir, 1, "{}", &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(state_dir_entry_path(k->state_dir, "homes", bad[i], path), -EINVAL);
        assert_int_equal(instance_dir_path(k->state_dir, 1, bad[i], path), -EINVAL);
        assert_int_equal(instance_dir_read(k->state_dir, 1, bad[i], &text, &err), -EINVAL);
        assert_int_equal(instance_dir_write(k->state_dir, 1, bad[i], "", &err), -EINVAL);
    }
    assert_int_equal(state_dir_entry_path(k->state_dir, "homes", "ann.b", path), 0);
    (void)snprintf(want, sizeof want, "%s/homes/ann.b", k->root);
    assert_string_equal(path, want);
    assert_int_equal(instance_dir_path(k->state_dir, 12, "exit", path), 0);
    (void)snprintf(want, sizeof want, "%s/instances/12/exit", k->root);
    assert_string_equal(path, want);
}

/* Owners can reach their homes and nothing else, regardless of the umask and of who created the directory. */
static void owners_reach_their_homes(void **state)
{
    struct kit *k = *state;
    static const struct {
        const char *name;
        mode_t mode;
    } want[] = {
        {"",           0711},
        {"/homes",     0711},
        {"/images",    0711},
        {"/instances", 0700},
        {"/logs",      0700},
        {"/roots",     0711},
        {"/volumes",   0700},
    };
    char path[512];
    struct stat st;

    assert_int_equal(chmod(k->root, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/homes", k->root);
    assert_int_equal(rmdir(path), 0);
    mode_t before = umask(077);
    open_again(k);
    (void)umask(before);
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        (void)snprintf(path, sizeof path, "%s%s", k->root, want[i].name);
        assert_int_equal(stat(path, &st), 0);
        if ((st.st_mode & 0777) != want[i].mode)
            fail_msg("'%s' has the mode %o", want[i].name, (unsigned)st.st_mode & 0777U);
    }
}

/* Mounts in an instance directory and targets of links are not removed with it. */
static void mounts_and_link_targets_are_not_removed(void **state)
{
    struct kit *k = *state;
    struct berth_err err;
    char precious[128], mounted[128], path[160];
    struct stat st;

    (void)snprintf(precious, sizeof precious, "%s/volumes/precious", k->root);
    (void)snprintf(mounted, sizeof mounted, "%s/instances/1/mounted", k->root);
    assert_int_equal(instance_dir_create(k->state_dir, 1, "{}", &err), 0);
    assert_int_equal(mkdir(precious, 0700), 0);
    put(k, "volumes/precious/file", "keep");
    (void)snprintf(path, sizeof path, "%s/instances/1/link", k->root);
    assert_int_equal(symlink(precious, path), 0);
    assert_int_equal(mkdir(mounted, 0700), 0);
    (void)snprintf(path, sizeof path, "%s/deep", mounted);
    assert_int_equal(mkdir(path, 0700), 0);
    if (getuid() == 0) {
        assert_int_equal(mount(precious, mounted, NULL, MS_BIND, NULL), 0);
        assert_int_equal(instance_dir_remove(k->state_dir, 1, &err), -EBUSY);
        assert_int_equal(umount(mounted), 0);
        expect_ids(k->state_dir, "1 ");
    }
    assert_int_equal(instance_dir_remove(k->state_dir, 1, &err), 0);
    expect_ids(k->state_dir, "");
    (void)snprintf(path, sizeof path, "%s/file", precious);
    assert_int_equal(stat(path, &st), 0);
}

static void contact_time_is_of_this_boot(void **state)
{
    struct kit *k = *state;

    assert_int_equal(state_dir_contact_ns(k->state_dir), 0);
    state_dir_set_contact_ns(k->state_dir, 123456789);
    assert_int_equal(state_dir_contact_ns(k->state_dir), 123456789);
    state_dir_set_contact_ns(k->state_dir, INT64_MAX);
    assert_int_equal(state_dir_contact_ns(open_again(k)), INT64_MAX);
    put(k, "heard", "00000000000000000005 another-boot 00000000000000000005\n");
    assert_int_equal(state_dir_contact_ns(k->state_dir), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(epoch_grows, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(instance_dir_is_created_once, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(started_file_survives_power_failure, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(started_file_is_rewritten_when_grown, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(sync_is_thread_safe, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(names_with_slashes_are_rejected, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(owners_reach_their_homes, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(mounts_and_link_targets_are_not_removed, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(contact_time_is_of_this_boot, kit_setup, kit_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
