/* leftover_test.c - removal of leftover files and IPC objects, with real files and objects of unused uids. Needs root.
 */
#include "machine/container/leftover.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>

#include "machine/launch/launch_kit_test.h"

enum { MINE = 1987654001, THEIRS = 1987654002 };

static int64_t now_ns(void)
{
    struct timespec t;

    assert_int_equal(clock_gettime(CLOCK_REALTIME, &t), 0);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Runs a script as this user in the test's directory. */
static void as(const struct kit *k, uid_t uid, const char *script)
{
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        if (chdir(k->root) == 0 && setresgid(uid, uid, uid) == 0 && setresuid(uid, uid, uid) == 0)
            (void)execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static int segment_of(uid_t uid)
{
    int id = shmget(IPC_PRIVATE, 4096, 0600 | IPC_CREAT);
    struct shmid_ds about;

    assert_true(id >= 0 && shmctl(id, IPC_STAT, &about) == 0);
    about.shm_perm.uid = uid;
    assert_int_equal(shmctl(id, IPC_SET, &about), 0);
    return id;
}

static bool segment_is(int id)
{
    struct shmid_ds about;

    return shmctl(id, IPC_STAT, &about) == 0;
}

static bool is(const struct kit *k, const char *name)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/%s", k->root, name);
    return faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void only_files_of_the_owner_are_removed(void **state)
{
    struct kit *k = *state;
    const char *const folders[] = {k->root, "/no/such/folder", NULL};
    const struct user_range more = user_range_of_slot(9);

    if (geteuid() != 0) {
        print_message("skip: only root may become others\n");
        skip();
    }
    assert_int_equal(chmod(k->root, 01777), 0);
    as(k, MINE,
       "mkdir -p deep/er; echo 1 >deep/er/file; echo 2 >file; ln -s theirs link; mkfifo pipe; chmod 0 deep/er");
    as(k, THEIRS, "echo 3 >theirs; mkdir open; chmod 777 open");
    as(k, MINE, "echo 4 >open/within");
    as(k, more.first, "echo 6 >first");
    as(k, more.first + more.count - 1, "echo 7 >last");
    as(k, more.first - 1, "echo 8 >before");
    as(k, more.first + more.count, "echo 9 >behind");
    int mine = segment_of(MINE), theirs = segment_of(THEIRS);
    int64_t until_ns = now_ns();
    kit_nap();
    as(k, MINE, "echo 5 >later");
    size_t removed = leftovers_remove(MINE, more, folders, until_ns);
    bool kept = segment_is(theirs);
    bool gone = !segment_is(mine);
    (void)shmctl(theirs, IPC_RMID, NULL);
    assert_int_equal(removed, 7); /* deep, file, link, pipe, first, last, the shared memory */
    assert_true(kept && gone);
    assert_true(is(k, "theirs") && is(k, "open/within") && is(k, "later"));
    assert_true(is(k, "before") && is(k, "behind"));
    assert_false(is(k, "first") || is(k, "last"));
    assert_false(is(k, "deep") || is(k, "file") || is(k, "link") || is(k, "pipe"));
}

static void nothing_is_removed_while_owner_has_processes(void **state)
{
    struct kit *k = *state;
    const char *const folders[] = {k->root, NULL};
    const struct user_range none = {0};
    pid_t pid;

    if (geteuid() != 0) {
        print_message("skip: only root may become others\n");
        skip();
    }
    assert_int_equal(chmod(k->root, 01777), 0);
    as(k, MINE, "echo 1 >file");
    pid = fork();
    if (pid == 0) {
        if (setresgid(MINE, MINE, MINE) == 0 && setresuid(MINE, MINE, MINE) == 0)
            (void)execl("/bin/sleep", "sleep", "60", (char *)NULL);
        _exit(127);
    }
    char comm[16] = "", path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    for (int i = 0; i < 12000 && strncmp(comm, "sleep", 5) != 0; i++) { /* waits for the exec */
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        assert_true(fd >= 0 && read(fd, comm, sizeof comm) > 0);
        close(fd);
        kit_nap();
    }
    assert_int_equal(leftovers_remove(MINE, none, folders, now_ns()), 0);
    assert_true(is(k, "file"));
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(leftovers_remove(MINE, none, folders, now_ns()), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(only_files_of_the_owner_are_removed, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(nothing_is_removed_while_owner_has_processes, kit_setup, kit_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
