/* image_fetch_test.c - the fetch user has no privileges, leaves no processes, and its files are taken over safely. */
#include "machine/image/image_kit_test.h"

#include <dirent.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

#include "machine/image/image_fetch.h"
#include "machine/launch/state_file.h"

/* ids that no account and no other test uses. */
enum { UID = 61238, GID = 61239, ROUNDS = 400 };
#define MINUTE_NS INT64_C(60000000000)
#define HELLO_SUM "sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" /* sha256 of "hello" */

struct kit {
    struct image_kit image;
    struct image_fetch fetch;
    int tmp, to; /* directory of the fetch; target directory */
};

static int setup(void **state)
{
    void *made = NULL;
    if (geteuid() != 0) {
        print_message("skip: not root\n");
        return 0;
    }
    (void)image_kit_setup(&made);
    struct kit *k = mem_zalloc(sizeof *k);
    k->image = *(struct image_kit *)made;
    mem_free(made);
    state_dir_set_fetcher(k->image.state_dir, UID, GID);
    folder_make(&k->image.folder, "state/images/tmp-0-1/to");
    k->tmp = open(folder_at(&k->image.folder, "state/images/tmp-0-1"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    k->to = open(folder_at(&k->image.folder, "state/images/tmp-0-1/to"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(fchmod(k->tmp, 0700), 0);
    if (fetch_begin(k->image.state_dir, k->tmp, &k->fetch, &k->image.err) < 0)
        fail_msg("%s", k->image.err.text);
    *state = k;
    return 0;
}

static int teardown(void **state)
{
    struct kit *k = *state;
    if (!k)
        return 0;
    fetch_cleanup(&k->fetch);
    (void)close(k->tmp);
    (void)close(k->to);
    void *made = mem_zalloc(sizeof k->image);
    *(struct image_kit *)made = k->image;
    mem_free(k);
    return image_kit_teardown(&made);
}

#define NEEDS_KIT(state, k)                                                                                            \
    struct kit *k = *(state);                                                                                          \
    if (!k) {                                                                                                          \
        skip();                                                                                                        \
        return; /* for the static analyzer */                                                                          \
    }

static int run_for(struct kit *k, const char *script, int64_t timeout_ns, struct str *ret_out)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    memset(&k->image.err, 0, sizeof k->image.err);
    return fetch_run(&k->fetch, &(struct tool){.argv = argv, .timeout_ns = timeout_ns, .what = "cannot fetch"}, ret_out,
                     &k->image.err);
}

static void run(struct kit *k, const char *script, struct str *ret_out)
{
    if (run_for(k, script, MINUTE_NS, ret_out) < 0)
        fail_msg("%s", k->image.err.text);
}

static bool pid_namespaces(void)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0)
        _exit(unshare(CLONE_NEWPID) < 0);
    return waitpid(pid, &status, 0) == pid && status == 0;
}

#define NEEDS_PID_NAMESPACES()                                                                                         \
    if (!pid_namespaces()) {                                                                                           \
        print_message("skip: this process may make no PID namespace\n");                                               \
        skip();                                                                                                        \
    }

/* Returns the number of processes of the fetch user. */
static size_t alive(void)
{
    size_t count = 0;
    DIR *all = opendir("/proc");
    const struct dirent *e;
    while ((e = readdir(all))) {
        struct stat st;
        count += e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
                 fstatat(dirfd(all), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_uid == UID;
    }
    (void)closedir(all);
    return count;
}

/* ---- privileges ------------------------------------------------------------------------------------------------- */

static void assert_no_rights(const char *status)
{
    static const char *const lines[] = {
        "Uid:\t61238\t61238\t61238\t61238\n",
        "Gid:\t61239\t61239\t61239\t61239\n",
        "Groups:\t \n",
        "CapInh:\t0000000000000000\n",
        "CapPrm:\t0000000000000000\n",
        "CapEff:\t0000000000000000\n",
        "CapBnd:\t0000000000000000\n",
        "CapAmb:\t0000000000000000\n",
        "NoNewPrivs:\t1\n",
        "Seccomp:\t2\n",
    };
    for (size_t i = 0; i < ROWS(lines); i++)
        if (!strstr(status, lines[i]))
            fail_msg("no %s in %s", lines[i], status);
}

static void fetch_user_has_no_privileges(void **state)
{
    NEEDS_KIT(state, k)
    CLEANUP(str) struct str out = {0}, want = {0};
    assert_int_equal(setenv("BERTH_TEST_SECRET", "secret", 1), 0);
    assert_int_equal(setenv("https_proxy", "http://proxy.lab", 1), 0);
    run(k, "cat /proc/self/status", &out);
    assert_no_rights(str_text(&out));
    run(k, "pwd; echo $HOME; echo $TMPDIR; echo $XDG_RUNTIME_DIR; echo $https_proxy; echo ${BERTH_TEST_SECRET-none}",
        &out);
    str_addf(&want, "%s\n%s\n%s\n%s\nhttp://proxy.lab\nnone\n", k->fetch.path, k->fetch.path, k->fetch.path,
             k->fetch.path);
    assert_string_equal(str_text(&out), str_text(&want));
    assert_int_equal(unsetenv("BERTH_TEST_SECRET"), 0);
    assert_int_equal(unsetenv("https_proxy"), 0);
    /* The fetch user can read nothing of the agent's directory and cannot become root in a user namespace. */
    assert_int_equal(run_for(k, "ls ../..", MINUTE_NS, NULL), -EIO);
    assert_int_equal(run_for(k, "ls ..", MINUTE_NS, NULL), -EIO);
    assert_int_equal(run_for(k, "echo x >../x", MINUTE_NS, NULL), -EIO);
    assert_int_equal(run_for(k, "ls ../../unpacked", MINUTE_NS, NULL), -EIO);
    assert_int_equal(run_for(k, "unshare --user --map-root-user true", MINUTE_NS, NULL), -EIO);
    struct stat st;
    assert_int_equal(fstat(k->fetch.folder, &st), 0);
    assert_int_equal(st.st_uid, 0);
    assert_int_equal(st.st_mode & 07777, 0700);
}

static void unreachable_directory_is_reported(void **state)
{
    NEEDS_KIT(state, k)
    assert_int_equal(chmod(k->image.folder.path, 0700), 0);
    assert_int_equal(run_for(k, "true", MINUTE_NS, NULL), -EIO);
    assert_non_null(strstr(k->image.err.text, "cannot access /tmp/berth-test-"));
    assert_non_null(strstr(k->image.err.text, "chmod o+x"));
}

static void credentials_are_passed_in_memory(void **state)
{
    NEEDS_KIT(state, k)
    CLEANUP(str) struct str out = {0}, script = {0};
    char name[STATE_PATH_MAX];
    folder_put(&k->image.folder, "state/registries.json", "ann:secret");
    assert_int_equal(chmod(folder_at(&k->image.folder, "state/registries.json"), 0600), 0);
    assert_int_equal(fetch_secrets(&k->fetch, folder_at(&k->image.folder, "state/none"), name), -ENOENT);
    assert_int_equal(fetch_secrets(&k->fetch, folder_at(&k->image.folder, "state/registries.json"), name), 0);
    str_addf(&script, "cat %s; cat %s", name, name);
    run(k, script.at, &out);
    assert_string_equal(str_text(&out), "ann:secretann:secret");
    /* The fetch user cannot store data in the memory file for a later program. */
    str_clear(&script);
    str_addf(&script, "echo bob >%s || echo bob >&3 || cat %s", name, name);
    run(k, script.at, &out);
    assert_string_equal(str_text(&out), "ann:secret");
    assert_int_equal(pwrite(k->fetch.secrets, "bob", 3, 0), -1);
    assert_int_equal(errno, EPERM);
    assert_int_equal(run_for(k, "cat ../../../registries.json", MINUTE_NS, NULL), -EIO);
    assert_true(tree_is_empty(k->fetch.folder));
}

/* ---- no remaining processes ------------------------------------------------------------------------------------- */

#define RUNAWAYS "setsid sh -c 'setsid sleep 1000 & touch away; sleep 1000' >/dev/null 2>&1 & "

static void no_process_outlives_fetch(void **state)
{
    NEEDS_KIT(state, k)
    NEEDS_PID_NAMESPACES();
    run(k, RUNAWAYS "until [ -e away ]; do :; done; rm away", NULL);
    assert_int_equal(alive(), 0);
    assert_int_equal(run_for(k, RUNAWAYS "sleep 1000", INT64_C(300000000), NULL), -ETIMEDOUT);
    assert_int_equal(alive(), 0);
    const char *const argv[] = {"sh", "-c", RUNAWAYS "sleep 1000", NULL};
    const struct tool full = {.argv = argv, .timeout_ns = MINUTE_NS, .spare_bytes = UINT64_MAX, .what = "cannot fetch"};
    assert_int_equal(fetch_run(&k->fetch, &full, NULL, &k->image.err), -ENOSPC);
    assert_non_null(strstr(k->image.err.text, "the disk is full"));
    assert_int_equal(alive(), 0);
}

static void fetch_ends_with_agent(void **state)
{
    NEEDS_KIT(state, k)
    NEEDS_PID_NAMESPACES();
    pid_t agent = fork();
    if (agent == 0) {
        (void)run_for(k, RUNAWAYS "until [ -e away ]; do :; done; touch began; sleep 1000", MINUTE_NS, NULL);
        _exit(0);
    }
    for (int i = 0; i < 6000 && faccessat(k->fetch.folder, "began", F_OK, 0) < 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_true(alive() > 0);
    assert_int_equal(kill(agent, SIGKILL), 0);
    assert_int_equal(waitpid(agent, NULL, 0), agent);
    for (int i = 0; i < 6000 && alive() > 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(alive(), 0);
    /* The directory still belongs to the fetch user; its epoch is over. */
    images_trim(k->image.state_dir, UINT64_MAX);
    assert_int_equal(access(folder_at(&k->image.folder, "state/images/tmp-0-1"), F_OK), -1);
}

/* ---- taking over files ------------------------------------------------------------------------------------------ */

static void fetched_file_is_taken(void **state)
{
    NEEDS_KIT(state, k)
    struct stat before, after;
    run(k, "mkdir sub; printf hello >sub/disk; chmod 6777 sub/disk; chmod 0 sub", NULL);
    assert_int_equal(fetch_take(&k->fetch, "sub/disk", 4, HELLO_SUM, k->to, "disk"), -EBADMSG);
    /* The rejected file belongs to root now, so a second attempt fails. */
    assert_int_equal(fetch_take(&k->fetch, "sub/disk", 5, HELLO_SUM, k->to, "disk"), -EINVAL);
    run(k, "chmod 700 sub; rm -f sub/disk; printf hello >sub/disk; chmod 6777 sub/disk", NULL);
    assert_int_equal(fstatat(k->fetch.folder, "sub/disk", &before, 0), 0);
    assert_int_equal(fetch_take(&k->fetch, "sub/disk", 5, HELLO_SUM, k->to, "disk"), 0);
    assert_int_equal(fstatat(k->to, "disk", &after, AT_SYMLINK_NOFOLLOW), 0);
    CLEANUP(close_fd) int lent = openat(k->to, "disk", O_RDONLY | O_CLOEXEC);
    if (fcntl(lent, F_SETLEASE, F_RDLCK) == 0) /* with leases it is moved instead of copied, as images may be large */
        assert_true(before.st_ino == after.st_ino);
    else
        print_message("skip: this file system lends nothing, so it was copied\n");
    assert_int_equal(after.st_uid, 0);
    assert_int_equal(after.st_gid, 0);
    assert_int_equal(after.st_mode, S_IFREG | 0600);
    run(k, "printf hellO >disk", NULL);
    assert_int_equal(fetch_take(&k->fetch, "disk", UINT64_MAX, HELLO_SUM, k->to, "other"), -EBADMSG);
    assert_int_equal(faccessat(k->to, "other", F_OK, 0), -1);
    run(k, "printf hello >disk2", NULL); /* an existing file is not replaced */
    assert_int_equal(fetch_take(&k->fetch, "disk2", UINT64_MAX, HELLO_SUM, k->to, "disk"), -EEXIST);
}

static void foreign_and_special_files_are_rejected(void **state)
{
    static const struct {
        const char *label, *script, *path;
        int want;
    } rows[] = {
        {"nothing",                 "true",                                "disk",       -ENOENT},
        {"link to a file",          "ln -s ../../../../victim disk",       "disk",       -EINVAL},
        {"link to his own",         "printf hello >real; ln -s real disk", "disk",       -EINVAL},
        {"folder that is a link",   "ln -s ../../../.. sub",               "sub/victim", -EINVAL},
        {"fifo",                    "mkfifo disk",                         "disk",       -EINVAL},
        {"folder",                  "mkdir disk",                          "disk",       -EINVAL},
        {"second name",             "printf hello >disk; ln disk also",    "disk",       -EINVAL},
        {"name of somebody else's", "true; # linked",                      "disk",       -EINVAL},
        {"device",                  "true; # device",                      "disk",       -EINVAL},
    };
    NEEDS_KIT(state, k)
    struct stat st;
    CLEANUP(mem) char *text = NULL;
    folder_put(&k->image.folder, "victim", "hello");
    assert_int_equal(chmod(folder_at(&k->image.folder, "victim"), 0604), 0);
    for (size_t i = 0; i < ROWS(rows); i++) {
        run(k, rows[i].script, NULL);
        /* Created by root here: the fetch user could create these only with other kernel settings. */
        if (strstr(rows[i].script, "# linked"))
            assert_int_equal(linkat(AT_FDCWD, folder_at(&k->image.folder, "victim"), k->fetch.folder, "disk", 0), 0);
        if (strstr(rows[i].script, "# device") &&
            (mknodat(k->fetch.folder, "disk", S_IFCHR | 0666, makedev(1, 3)) < 0 ||
             fchownat(k->fetch.folder, "disk", UID, GID, 0) < 0))
            print_message("skip: no device can be made here\n");
        int rc = fetch_take(&k->fetch, rows[i].path, UINT64_MAX, HELLO_SUM, k->to, "disk");
        if (rc != rows[i].want && !(rc == -ENOENT && strstr(rows[i].script, "# device")))
            fail_msg("%s: %d", rows[i].label, rc);
        assert_int_equal(fetch_read(&k->fetch, rows[i].path, 100, &text, NULL), rc);
        assert_true(tree_is_empty(k->to));
        assert_int_equal(tree_empty(k->fetch.folder), 0);
        assert_int_equal(stat(folder_at(&k->image.folder, "victim"), &st), 0);
        assert_int_equal(st.st_mode, S_IFREG | 0604);
        assert_int_equal(st.st_uid, 0);
        assert_string_equal(folder_get(&k->image.folder, "victim"), "hello");
    }
}

static void assert_taken(struct kit *k, const char *name)
{
    CLEANUP(mem) char *text = NULL;
    assert_int_equal(tree_read(k->to, name, 100, &text, NULL), 0);
    assert_string_equal(text, "hello");
}

/* Writes through descriptors and mappings that are still open do not change the taken file. */
static void open_writer_cannot_change_taken_file(void **state)
{
    NEEDS_KIT(state, k)
    run(k, "printf hello >disk; printf hello >mapped", NULL);
    CLEANUP(close_fd) int fd = openat(k->fetch.folder, "disk", O_RDWR | O_CLOEXEC);
    assert_int_equal(fetch_take(&k->fetch, "disk", 5, HELLO_SUM, k->to, "disk"), 0);
    assert_int_equal(pwrite(fd, "HELLO", 5, 0), 5);
    assert_taken(k, "disk");
    int other = openat(k->fetch.folder, "mapped", O_RDWR | O_CLOEXEC);
    char *at = mmap(NULL, 5, PROT_READ | PROT_WRITE, MAP_SHARED, other, 0);
    (void)close(other);
    assert_true(at != MAP_FAILED);
    assert_int_equal(fetch_take(&k->fetch, "mapped", 5, HELLO_SUM, k->to, "mapped"), 0);
    at[0] = 'H';
    assert_int_equal(msync(at, 5, MS_SYNC), 0);
    assert_taken(k, "mapped");
    assert_int_equal(munmap(at, 5), 0);
}

/* Sets an ACL that gives the fetch user access regardless of the file's owner: version 2; entries: owner, user 61238,
 * group, mask, others. */
static bool list_put(int fd)
{
    static const struct {
        uint32_t version;
        struct {
            uint16_t tag, rights;
            uint32_t id;
        } entries[5];
    } list = {
        2, {{1, 6, ~0u}, {2, 6, UID}, {4, 0, ~0u}, {0x10, 6, ~0u}, {0x20, 0, ~0u}}
    };
    return fsetxattr(fd, "system.posix_acl_access", &list, sizeof list, 0) == 0;
}

/* Opens the file in a process of the fetch user, through /proc/self/fd, so that no directory is searched. */
static bool may_open(int path_fd, int flags)
{
    char path[64];
    int status = 0;
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", path_fd);
    pid_t pid = fork();
    if (pid == 0) {
        if (syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, GID, GID, GID) < 0 ||
            syscall(SYS_setresuid, UID, UID, UID) < 0)
            _exit(2);
        (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* otherwise /proc/self belongs to root */
        _exit(open(path, flags | O_CLOEXEC) < 0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 0;
}

static void o_path_fd_loses_access_after_take(void **state)
{
    NEEDS_KIT(state, k)
    for (int listed = 0; listed < 2; listed++) {
        run(k, "rm -f disk; printf hello >disk", NULL);
        CLEANUP(close_fd) int kept = openat(k->fetch.folder, "disk", O_PATH | O_CLOEXEC);
        CLEANUP(close_fd) int fd = openat(k->fetch.folder, "disk", O_RDONLY | O_CLOEXEC);
        if (listed && !list_put(fd)) {
            print_message("skip: no lists of who may what on this file system\n");
            return;
        }
        assert_true(may_open(kept, O_RDWR));
        assert_int_equal(fetch_take(&k->fetch, "disk", 5, HELLO_SUM, k->to, listed ? "b" : "a"), 0);
        CLEANUP(close_fd) int taken = openat(k->to, listed ? "b" : "a", O_PATH | O_CLOEXEC);
        assert_false(may_open(kept, O_RDONLY));
        assert_false(may_open(taken, O_RDWR));
        assert_int_equal(fchmodat(k->to, listed ? "b" : "a", 0444, 0), 0); /* the mode of a virtual disk */
        assert_false(may_open(taken, O_RDWR));
    }
}

/* Keeps replacing the file through an open directory descriptor, whichever user owns the directory. */
_Noreturn static void race(int folder, int ready)
{
    CLEANUP(close_fd) int sub = openat(folder, "sub", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (sub < 0 || syscall(SYS_setgroups, 0, NULL) < 0 || syscall(SYS_setresgid, GID, GID, GID) < 0 ||
        syscall(SYS_setresuid, UID, UID, UID) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || write(ready, "", 1) != 1)
        _exit(1);
    for (unsigned i = 0;; i++) {
        int fd = openat(sub, "fresh", O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd >= 0) {
            if (write(fd, "hello", 5) == 5 && renameat(sub, "fresh", sub, "disk") == 0 && i % 2)
                (void)(pwrite(fd, "HELLO", 5, 0) == 5); /* also after it was taken */
            (void)close(fd);
        }
        (void)unlinkat(sub, "fresh", 0);
        if (i % 3 == 0 && symlinkat("/proc/self/environ", sub, "fresh") == 0)
            (void)renameat(sub, "fresh", sub, "disk");
    }
}

static void concurrent_replacement_cannot_change_taken_file(void **state)
{
    NEEDS_KIT(state, k)
    unsigned taken = 0;
    int ready[2];
    char byte;
    run(k, "mkdir sub", NULL);
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0)
        race(k->fetch.folder, ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    unsigned rounds = 0;
    for (; rounds < ROUNDS || (taken < 20 && rounds < 100 * ROUNDS); rounds++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u", taken);
        int rc = fetch_take(&k->fetch, "sub/disk", 5, HELLO_SUM, k->to, name);
        if (rc == 0) {
            assert_taken(k, name);
            taken++;
        } else if (faccessat(k->to, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
            fail_msg("round %u: %d, and something is there", rounds, rc);
        }
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    (void)close(ready[0]);
    (void)close(ready[1]);
    for (unsigned i = 0; i < taken; i++) { /* unchanged by all later writes */
        char name[16];
        (void)snprintf(name, sizeof name, "%u", i);
        assert_taken(k, name);
    }
    print_message("%u of %u taken\n", taken, rounds);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(fetch_user_has_no_privileges),
        TEST(unreachable_directory_is_reported),
        TEST(credentials_are_passed_in_memory),
        TEST(no_process_outlives_fetch),
        TEST(fetch_ends_with_agent),
        TEST(fetched_file_is_taken),
        TEST(foreign_and_special_files_are_rejected),
        TEST(open_writer_cannot_change_taken_file),
        TEST(o_path_fd_loses_access_after_take),
        TEST(concurrent_replacement_cannot_change_taken_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
