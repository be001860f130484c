#include "machine/container/user.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>

#include "machine/launch/launch_kit_test.h"

static void numbers_are_kept(void **state)
{
    struct kit *k = *state;
    struct user_table *u;
    struct instance_user a, b, again;
    struct berth_err err;
    struct stat st;

    if (getuid() != 0) {
        print_message("skip: only root can give users numbers\n");
        skip();
    }
    assert_int_equal(users_open(k->state_dir, NULL, 0, &u, &err), 0);
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
    /* Another start of the range keeps existing numbers and assigns no number twice. */
    assert_int_equal(users_open(k->state_dir, NULL, a.uid, &u, &err), 0);
    assert_int_equal(users_find(u, "bob.x", &again, &err), 0);
    assert_int_equal(again.uid, b.uid);
    assert_int_equal(users_find(u, "eve", &again, &err), 0);
    assert_true(again.uid > b.uid);
    users_free(u);
}

enum { THREADS = 4, OWNERS = 50 };

struct asking {
    pthread_t thread;
    struct user_table *users;
    uid_t uids[OWNERS];
    int failed;
};

static void *ask(void *ctx)
{
    struct asking *a = ctx;
    struct berth_err err;

    for (unsigned i = 0; i < OWNERS; i++) {
        struct instance_user user = {0};
        char name[24];

        (void)snprintf(name, sizeof name, "owner-%u", i);
        a->failed += users_find(a->users, name, &user, &err) != 0;
        a->uids[i] = user.uid;
    }
    return NULL;
}

/* Several threads ask for the same owners. */
static void concurrent_queries_get_one_number_each(void **state)
{
    struct kit *k = *state;
    struct asking asking[THREADS] = {0};
    struct user_table *u;
    struct berth_err err;

    if (getuid() != 0) {
        print_message("skip: only root can give users numbers\n");
        skip();
    }
    assert_int_equal(users_open(k->state_dir, NULL, 0, &u, &err), 0);
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

/* Ranges for containers: the same at every start, and never shared by owners. */
static void container_ranges_are_not_shared(void **state)
{
    static const char list[] = "ann 200000\nbob 200001\neve 236861\nold 1879048200\nzoe 200002\n";
    static const struct {
        const char *owner;
        uint32_t first;
    } rows[] = {
        {"ann", 0         }, /* the uid of "old" is within what would be ann's range */
        {"bob", 0x70010001},
        {"eve", 0         }, /* differs from ann's uid by USER_RANGE_SLOTS */
        {"zoe", 0x70020001},
    };
    struct kit *k = *state;
    struct user_table *u;
    struct instance_user user;
    struct berth_err err;
    int dir = open(k->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (getuid() != 0) {
        print_message("skip: only root can give users numbers\n");
        skip();
    }
    assert_int_equal(file_write(dir, "users", list, strlen(list), false), 0);
    close(dir);
    assert_int_equal(users_open(k->state_dir, NULL, 0, &u, &err), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(users_find(u, rows[i].owner, &user, &err), 0);
        assert_int_equal(user.uids.count, rows[i].first ? 65535 : 0);
        assert_int_equal(user.uids.first, rows[i].first);
        assert_memory_equal(&user.uids, &user.gids, sizeof user.uids);
    }
    users_free(u);
}

static void accounts_are_used_if_enabled(void **state)
{
    struct kit *k = *state;
    struct user_table *u;
    struct instance_user user;
    struct berth_err err;

    if (getuid() != 0) {
        print_message("skip: only root can run things as others\n");
        skip();
    }
    assert_int_equal(users_open(k->state_dir, "nogroup", 0, &u, &err), 0);
    assert_int_equal(users_find(u, "nobody", &user, &err), 0);
    assert_int_equal(user.uid, 65534);
    assert_string_equal(user.home, "/nonexistent");
    assert_int_equal(users_find(u, "root", &user, &err), -EPERM);
    assert_int_equal(users_find(u, "no-such-account", &user, &err), 0);
    assert_true(user.uid >= 200000);
    users_free(u);
    assert_int_equal(users_open(k->state_dir, NULL, 0, &u, &err), 0);
    assert_int_equal(users_find(u, "nobody", &user, &err), 0);
    assert_true(user.uid >= 200000);
    assert_int_equal(users_find(u, "root", &user, &err), 0);
    assert_true(user.uid >= 200000);
    users_free(u);
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

/* Shows the process other accounts by a bind mount over a file of /etc, until it exits. */
static void etc_shown(const struct kit *k, const char *name, const char *text)
{
    char from[128], at[64];
    (void)snprintf(from, sizeof from, "%s/%s", k->root, name);
    (void)snprintf(at, sizeof at, "/etc/%s", name);
    put(from, text);
    assert_int_equal(mount(from, at, NULL, MS_BIND, NULL), 0);
}

static void system_accounts_are_rejected(void **state)
{
    static const struct {
        const char *owner;
        int rc;
        const char *says;
    } rows[] = {
        {"ann",      0,      NULL                                 },
        {"prime",    0,      NULL                                 }, /* the group is her primary group */
        {"rabbitmq", -EPERM, "is a system account"                },
        {"last",     -EPERM, "is a system account"                },
        {"wheel",    -EPERM, "root's group"                       },
        {"toor",     -EPERM, "is root on this node"               },
        {"bob",      -EPERM, "not a member of the group 'cluster'"},
    };
    struct kit *k = *state;
    struct user_table *u;
    struct instance_user user;
    struct berth_err err;

    if (getuid() != 0 || unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)) {
        print_message("skip: only root can show itself other accounts\n");
        skip();
    }
    etc_shown(k, "passwd",
              "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\nprime:x:1001:3000::/:/bin/sh\n"
              "rabbitmq:x:105:3000::/:/bin/sh\nlast:x:999:999::/:/bin/sh\nwheel:x:1002:0::/:/bin/sh\n"
              "toor:x:0:3000::/:/bin/sh\nbob:x:1003:1003::/:/bin/sh\n");
    etc_shown(k, "group", "root:x:0:ann\ncluster:x:3000:ann,rabbitmq,last,wheel\nbob:x:1003:\n");
    assert_int_equal(users_open(k->state_dir, "cluster", 0, &u, &err), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int rc = users_find(u, rows[i].owner, &user, &err);
        if (rc != rows[i].rc || (rc && !strstr(err.text, rows[i].says)))
            fail_msg("%s: %d, %s", rows[i].owner, rc, rc ? err.text : "");
        if (rc == 0)
            assert_false(user.given);
    }
    /* With no_account, a name made by a group's manager is not taken for an account. */
    const struct user_query made = {.owner = "ann", .no_account = true, .launch = true};
    assert_int_equal(users_resolve(u, &made, &user, &err), 0);
    assert_true(user.given && user.uid >= 200000);
    users_free(u);
    assert_int_equal(users_open(k->state_dir, "no-such-group", 0, &u, &err), 0);
    assert_int_equal(users_find(u, "ann", &user, &err), -EPERM);
    users_free(u);
    assert_int_equal(umount2("/etc/group", MNT_DETACH), 0);
    assert_int_equal(umount2("/etc/passwd", MNT_DETACH), 0);
}

/* ---- numbers of the cluster ---- */

static int ask_for(struct user_table *u, const char *owner, uid_t uid, bool alone, struct instance_user *ret,
                   struct berth_err *err)
{
    return users_resolve(u, &(struct user_query){.owner = owner, .uid = uid, .launch = true, .alone = alone}, ret, err);
}

static uid_t owner_of(const struct kit *k, const char *name)
{
    char path[256];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s/%s", k->root, name);
    if (lstat(path, &st))
        fail_msg("%s: %s", path, strerror(errno));
    assert_int_equal(st.st_uid, st.st_gid);
    return st.st_uid;
}

static void put_for(const struct kit *k, const char *name, uid_t uid)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", k->root, name);
    size_t len = strlen(path);
    if (path[len - 1] == '/')
        assert_int_equal(mkdir(path, 0755), 0);
    else
        put(path, "x");
    assert_int_equal(lchown(path, uid, uid), 0);
}

/* Nothing is moved while a process of this machine has the uid, including those of other tests. */
static uid_t own_first(void)
{
    return 210000 + (uid_t)(getpid() % 4000) * 4;
}

/* Homes and volumes that were created with a number of this node. */
static void files_move_to_cluster_number(void **state)
{
    struct kit *k = *state;
    struct user_table *u;
    struct instance_user ann, bob, user;
    struct berth_err err = {0};
    char path[256];

    if (getuid() != 0) {
        print_message("skip: only root can give users numbers\n");
        skip();
    }
    assert_int_equal(users_open(k->state_dir, NULL, own_first(), &u, &err), 0);
    assert_int_equal(users_find(u, "bob", &bob, &err), 0);
    assert_int_equal(users_find(u, "ann", &ann, &err), 0);
    assert_int_equal(ann.uid, own_first() + 1);
    put_for(k, "homes/ann/a", ann.uid);
    put_for(k, "homes/ann/of-bob", bob.uid);
    put_for(k, "homes/ann/in-container", ann.uids.first + 32);
    put_for(k, "homes/ann/deep/", ann.uid);
    put_for(k, "homes/ann/deep/er", ann.uid);
    put_for(k, "volumes/data.ann/", ann.uid);
    put_for(k, "volumes/data.ann/of-bob", bob.uid);
    put_for(k, "volumes/data.bob/", bob.uid);
    put_for(k, "volumes/data.bob/of-ann", ann.uid);
    put_for(k, "outside", ann.uid);
    (void)snprintf(path, sizeof path, "%s/homes/ann/link", k->root);
    assert_int_equal(symlink("../../outside", path), 0);
    assert_int_equal(lchown(path, ann.uid, ann.uid), 0);
    (void)snprintf(path, sizeof path, "%s/volumes/evil", k->root);
    assert_int_equal(symlink("/etc", path), 0);

    /* While an instance of her runs, the old number is used. */
    assert_int_equal(ask_for(u, "ann", 300007, false, &user, &err), 0);
    assert_true(user.old_number);
    assert_int_equal(user.uid, ann.uid);
    assert_int_equal(ask_for(u, "ann", 300007, true, &user, &err), 0); /* its start began before the other one's */
    assert_int_equal(user.uid, ann.uid);
    assert_int_equal(owner_of(k, "homes/ann/a"), ann.uid);
    users_release(u, "ann");
    assert_int_equal(ask_for(u, "ann", 300007, true, &user, &err), 0);
    assert_false(user.old_number);
    assert_int_equal(user.uid, 300007);
    assert_int_equal(user.gid, 300007);
    static const char *const hers[] = {
        "homes/ann",      "homes/ann/a",      "homes/ann/deep",         "homes/ann/deep/er",
        "homes/ann/link", "volumes/data.ann", "volumes/data.bob/of-ann"};
    for (size_t i = 0; i < sizeof hers / sizeof *hers; i++)
        if (owner_of(k, hers[i]) != 300007)
            fail_msg("%s: %u", hers[i], owner_of(k, hers[i]));
    assert_int_equal(owner_of(k, "homes/ann/in-container"), user.uids.first + 32);
    assert_int_not_equal(user.uids.first, ann.uids.first);
    assert_int_equal(owner_of(k, "homes/ann/of-bob"), bob.uid);
    assert_int_equal(owner_of(k, "volumes/data.ann/of-bob"), bob.uid);
    assert_int_equal(owner_of(k, "volumes/data.bob"), bob.uid);
    assert_int_equal(owner_of(k, "outside"), ann.uid); /* reached through a link, so not moved */
    users_free(u);

    /* The new number is kept, whatever the daemon says later, and the old one is not assigned again. */
    assert_int_equal(users_open(k->state_dir, NULL, own_first(), &u, &err), 0);
    assert_int_equal(users_find(u, "ann", &user, &err), 0);
    assert_int_equal(user.uid, 300007);
    assert_int_equal(users_find(u, "new", &user, &err), 0);
    assert_int_equal(user.uid, own_first() + 2);
    assert_int_equal(ask_for(u, "new", 300007, true, &user, &err), -EEXIST);          /* ann's number */
    assert_int_equal(ask_for(u, "zoe", own_first() + 1, true, &user, &err), -EEXIST); /* ann's old number */
    users_free(u);
}

/* As after a crash during a move: some files have the new number, the list has the old one. */
static void interrupted_move_is_repeated(void **state)
{
    struct kit *k = *state;
    struct user_table *u;
    struct instance_user user;
    struct berth_err err;

    if (getuid() != 0) {
        print_message("skip: only root can give users numbers\n");
        skip();
    }
    assert_int_equal(users_open(k->state_dir, NULL, own_first(), &u, &err), 0);
    assert_int_equal(users_find(u, "ann", &user, &err), 0);
    put_for(k, "homes/ann/done", 300000);
    put_for(k, "homes/ann/yet", user.uid);
    users_free(u);
    assert_int_equal(users_open(k->state_dir, NULL, own_first(), &u, &err), 0);
    assert_int_equal(ask_for(u, "ann", 300000, true, &user, &err), 0);
    assert_int_equal(owner_of(k, "homes/ann/done"), 300000);
    assert_int_equal(owner_of(k, "homes/ann/yet"), 300000);
    assert_int_equal(owner_of(k, "homes/ann"), 300000);
    users_free(u);
}

/* A deleted user and a new user of the same name are different. */
static void recreated_user_does_not_get_old_home(void **state)
{
    struct kit *k = *state;
    struct user_table *u;
    struct instance_user user;
    struct berth_err err;
    char path[256];

    if (getuid() != 0) {
        print_message("skip: only root can give users numbers\n");
        skip();
    }
    assert_int_equal(users_open(k->state_dir, NULL, own_first(), &u, &err), 0);
    assert_int_equal(ask_for(u, "ann", 300000, true, &user, &err), 0);
    put_for(k, "homes/ann/secret", 300000);
    assert_int_equal(ask_for(u, "ann", 300009, true, &user, &err), 0);
    assert_int_equal(user.uid, 300009);
    (void)snprintf(path, sizeof path, "%s/homes/ann/secret", k->root);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(owner_of(k, "homes/.ann.300000/secret"), 300000);
    assert_int_equal(ask_for(u, "ann", 300000, true, &user, &err), -ESTALE);
    /* Leftovers of the deleted user are found by that user's number. */
    assert_int_equal(users_resolve(u, &(struct user_query){.owner = "ann", .uid = 300000}, &user, &err), 0);
    assert_int_equal(user.uid, 300000);
    assert_int_equal(owner_of(k, "homes/ann"), 300009);
    users_free(u);
}

/* Two nodes on which owners appeared in a different order. */
static void cluster_numbers_are_equal_on_all_nodes(void **state)
{
    struct kit *k = *state;
    struct berth_err err;
    struct instance_user first, second;
    struct state_dir *state_dir = NULL;
    struct user_table *one, *two;
    char root[96];

    if (getuid() != 0) {
        print_message("skip: only root can give users numbers\n");
        skip();
    }
    (void)snprintf(root, sizeof root, "%s/other", k->root);
    assert_int_equal(mkdir(root, 0755), 0);
    assert_int_equal(state_dir_open(root, &state_dir, &err), 0);
    assert_int_equal(users_open(k->state_dir, NULL, own_first(), &one, &err), 0);
    assert_int_equal(users_open(state_dir, NULL, own_first(), &two, &err), 0);
    assert_int_equal(users_find(one, "ann", &first, &err), 0);
    assert_int_equal(users_find(two, "bob", &second, &err), 0);
    assert_int_equal(first.uid, second.uid); /* numbers of the nodes: two owners, one number */
    static const char *const owners[] = {"bob", "ann", "eve"};
    for (uid_t i = 0; i < 3; i++) {
        assert_int_equal(ask_for(one, owners[i], 300000 + i, true, &first, &err), 0);
        assert_int_equal(ask_for(two, owners[2 - i], 300000 + (2 - i), true, &second, &err), 0);
        assert_int_equal(first.uid, 300000 + i);
        assert_int_equal(second.uid, 300000 + (2 - i));
    }
    for (uid_t i = 0; i < 3; i++) {
        assert_int_equal(ask_for(one, owners[i], 300000 + i, true, &first, &err), 0);
        assert_int_equal(ask_for(two, owners[i], 300000 + i, true, &second, &err), 0);
        assert_int_equal(first.uid, second.uid);
        assert_memory_equal(&first.uids, &second.uids, sizeof first.uids); /* ranges for containers, too */
        assert_int_equal(first.uids.count, 65535);
    }
    users_free(one);
    users_free(two);
    state_dir_free(state_dir);
}

static void invalid_owner_names_are_rejected(void **state)
{
    static const char *const bad[] = {"", ".", "..", "a/b", "../root", "a b", "a\nb 0"};
    struct kit *k = *state;
    struct user_table *u;
    struct instance_user user;
    struct berth_err err;
    char longest[80];

    assert_int_equal(users_open(k->state_dir, NULL, 0, &u, &err), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(users_find(u, bad[i], &user, &err), -EINVAL);
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    assert_int_equal(users_find(u, longest, &user, &err), -EINVAL);
    users_free(u);
}

/* A home that is a symbolic link is rejected, not followed. */
static void linked_home_is_rejected(void **state)
{
    struct kit *k = *state;
    struct user_table *u;
    struct instance_user user;
    struct berth_err err;
    char home[128];
    struct stat st;

    (void)snprintf(home, sizeof home, "%s/homes/mallory", k->root);
    assert_int_equal(symlink("/etc", home), 0);
    assert_int_equal(users_open(k->state_dir, NULL, 0, &u, &err), 0);
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
        struct user_table *u;
        struct berth_err err;
        int dir = open(k->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        assert_int_equal(file_write(dir, "users", bad[i], strlen(bad[i]), false), 0);
        close(dir);
        assert_int_equal(users_open(k->state_dir, NULL, 0, &u, &err), -EINVAL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(numbers_are_kept, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(concurrent_queries_get_one_number_each, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(container_ranges_are_not_shared, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(accounts_are_used_if_enabled, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(system_accounts_are_rejected, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(files_move_to_cluster_number, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(interrupted_move_is_repeated, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(recreated_user_does_not_get_old_home, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(cluster_numbers_are_equal_on_all_nodes, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(invalid_owner_names_are_rejected, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(linked_home_is_rejected, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(damaged_list_is_refused, kit_setup, kit_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
