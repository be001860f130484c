#include "machine/user.h"

#include <pthread.h>

#include "machine/launch_kit_test.h"

static void numbers_are_kept(void **state)
{
    struct kit *k = *state;
    struct users *u;
    struct user a, b, again;
    struct berth_err err;
    struct stat st;

    if (getuid() != 0) {
        print_message("skip: only root can give users numbers\n");
        skip();
    }
    assert_int_equal(users_open(k->place, false, 0, &u, &err), 0);
    assert_int_equal(users_find(u, "ann", &a, &err), 0);
    assert_int_equal(users_find(u, "bob.x", &b, &err), 0);
    assert_true(a.uid >= 200000);
    assert_int_equal(a.gid, a.uid);
    assert_true(b.uid > a.uid);
    assert_int_equal(users_find(u, "ann", &again, &err), 0);
    assert_int_equal(again.uid, a.uid);
    assert_int_equal(stat(a.home, &st), 0);
    assert_int_equal(st.st_uid, a.uid);
    assert_int_equal(st.st_mode & 07777, 0700);
    users_free(u);
    /* Another start of the range does not move those who have one, and gives nobody the same. */
    assert_int_equal(users_open(k->place, false, a.uid, &u, &err), 0);
    assert_int_equal(users_find(u, "bob.x", &again, &err), 0);
    assert_int_equal(again.uid, b.uid);
    assert_int_equal(users_find(u, "eve", &again, &err), 0);
    assert_true(again.uid > b.uid);
    users_free(u);
}

enum { THREADS = 4, OWNERS = 50 };

struct asking {
    pthread_t thread;
    struct users *users;
    uid_t uids[OWNERS];
    int failed;
};

static void *ask(void *ctx)
{
    struct asking *a = ctx;
    struct berth_err err;

    for (unsigned i = 0; i < OWNERS; i++) {
        struct user user = {0};
        char name[24];

        (void)snprintf(name, sizeof name, "owner-%u", i);
        a->failed += users_find(a->users, name, &user, &err) != 0;
        a->uids[i] = user.uid;
    }
    return NULL;
}

/* Several threads start instances. */
static void one_number_each_whoever_asks(void **state)
{
    struct kit *k = *state;
    struct asking asking[THREADS] = {0};
    struct users *u;
    struct berth_err err;

    if (getuid() != 0) {
        print_message("skip: only root can give users numbers\n");
        skip();
    }
    assert_int_equal(users_open(k->place, false, 0, &u, &err), 0);
    for (size_t t = 0; t < THREADS; t++) {
        asking[t].users = u;
        assert_int_equal(pthread_create(&asking[t].thread, NULL, ask, &asking[t]), 0);
    }
    for (size_t t = 0; t < THREADS; t++)
        assert_int_equal(pthread_join(asking[t].thread, NULL), 0);
    for (size_t t = 0; t < THREADS; t++) {
        assert_int_equal(asking[t].failed, 0);
        assert_memory_equal(asking[t].uids, asking[0].uids, sizeof asking[t].uids);
    }
    for (size_t i = 1; i < OWNERS; i++)
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(asking[0].uids[i], asking[0].uids[j]);
    users_free(u);
}

/* Numbers for containers: the same at every start, and never two owners'. */
static void further_numbers_are_ones_own(void **state)
{
    static const char list[] = "ann 200000\nbob 200001\neve 236861\nold 1879048200\nzoe 200002\n";
    static const struct {
        const char *owner;
        uint32_t first;
    } rows[] = {
        {"ann", 0         }, /* old's own number is in what would be ann's */
        {"bob", 0x70010001},
        {"eve", 0         }, /* as far from ann as there are ranges */
        {"zoe", 0x70020001},
    };
    struct kit *k = *state;
    struct users *u;
    struct user user;
    struct berth_err err;
    int dir = open(k->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (getuid() != 0) {
        print_message("skip: only root can give users numbers\n");
        skip();
    }
    assert_int_equal(file_write(dir, "users", list, strlen(list), false), 0);
    close(dir);
    assert_int_equal(users_open(k->place, false, 0, &u, &err), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(users_find(u, rows[i].owner, &user, &err), 0);
        assert_int_equal(user.uids.count, rows[i].first ? 65535 : 0);
        assert_int_equal(user.uids.first, rows[i].first);
        assert_memory_equal(&user.uids, &user.gids, sizeof user.uids);
    }
    users_free(u);
}

static void accounts_where_wished(void **state)
{
    struct kit *k = *state;
    struct users *u;
    struct user user;
    struct berth_err err;

    if (getuid() != 0) {
        print_message("skip: only root can run things as others\n");
        skip();
    }
    assert_int_equal(users_open(k->place, true, 0, &u, &err), 0);
    assert_int_equal(users_find(u, "nobody", &user, &err), 0);
    assert_int_equal(user.uid, 65534);
    assert_string_equal(user.home, "/nonexistent");
    assert_int_equal(users_find(u, "root", &user, &err), -EPERM);
    assert_int_equal(users_find(u, "no-such-account", &user, &err), 0);
    assert_true(user.uid >= 200000);
    users_free(u);
    assert_int_equal(users_open(k->place, false, 0, &u, &err), 0);
    assert_int_equal(users_find(u, "nobody", &user, &err), 0);
    assert_true(user.uid >= 200000);
    assert_int_equal(users_find(u, "root", &user, &err), 0);
    assert_true(user.uid >= 200000);
    users_free(u);
}

static void names_that_are_none(void **state)
{
    static const char *const bad[] = {"", ".", "..", "a/b", "../root", "a b", "a\nb 0"};
    struct kit *k = *state;
    struct users *u;
    struct user user;
    struct berth_err err;
    char longest[80];

    assert_int_equal(users_open(k->place, false, 0, &u, &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(users_find(u, bad[i], &user, &err), -EINVAL);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(users_find(u, longest, &user, &err), -EINVAL);
    users_free(u);
}

/* A home that is somebody's link is refused, not followed. */
static void home_is_a_folder(void **state)
{
    struct kit *k = *state;
    struct users *u;
    struct user user;
    struct berth_err err;
    char home[128];
    struct stat st;

    (void)snprintf(home, sizeof home, "%s/homes/mallory", k->root);
    assert_int_equal(symlink("/etc", home), 0);
    assert_int_equal(users_open(k->place, false, 0, &u, &err), 0);
    assert_true(users_find(u, "mallory", &user, &err) < 0);
    assert_int_equal(stat("/etc", &st), 0);
    assert_int_equal(st.st_uid, 0);
    users_free(u);
}

static void damaged_list_is_refused(void **state)
{
    static const char *const bad[] = {"ann\n", "ann x\n", "ann 0\n", " 5\n", "ann -1\n", "ann 99999999999\n"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct kit *k = *state;
        struct users *u;
        struct berth_err err;
        int dir = open(k->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(file_write(dir, "users", bad[i], strlen(bad[i]), false), 0);
        close(dir);
        assert_int_equal(users_open(k->place, false, 0, &u, &err), -EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_are_kept, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(one_number_each_whoever_asks, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(further_numbers_are_ones_own, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(accounts_where_wished, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(names_that_are_none, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(home_is_a_folder, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(damaged_list_is_refused, kit_setup, kit_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
