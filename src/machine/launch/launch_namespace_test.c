/* launch_namespace_test.c - instances of a job in a shared PID namespace, with real processes; needs root. */
#include "machine/launch/launch_kit_test.h"

#include <pthread.h>
#include <sys/pidfd.h>

#include "machine/launch/pid_namespace.h"

static const uid_t user = 210003;

static int setup(void **state)
{
    int rc = kit_setup(state), check = geteuid() == 0 ? pid_namespace_check() : -EPERM;

    if (check)
        print_message("skip: no PID namespace can be made here: %s\n", strerror(-check));
    ((struct kit *)*state)->can = check == 0;
    return rc;
}

/* Prepares an instance of a job that runs a script. */
static struct launch *of_job(struct kit *k, const char *job, const char *script)
{
    static char file[STATE_PATH_MAX];
    struct launch *l;

    if (!k->can)
        skip();
    l = kit_script(k, script);
    l->uid = l->gid = user;
    l->hide_processes = true;
    assert_int_equal(state_dir_entry_path(k->state_dir, "pid-namespaces", job, file), 0);
    l->pid_namespace = file;
    return l;
}

static struct launch_result sleeper(struct kit *k, const char *job)
{
    struct launch_result run = kit_start(k, of_job(k, job, "echo up; exec sleep 1000"));

    kit_expect(k, k->l.id, "up");
    return run;
}

static ino_t namespace_of(pid_t pid)
{
    char path[64];
    struct stat st;

    (void)snprintf(path, sizeof path, "/proc/%d/ns/pid", (int)pid);
    assert_int_equal(stat(path, &st), 0);
    return st.st_ino;
}

/* Returns the pid of a process in its own namespace. */
static int inner(pid_t pid)
{
    CLEANUP(mem) char *text = NULL;
    char path[64];
    const char *at;
    int outer, in;

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    assert_int_equal(file_read(AT_FDCWD, path, &text, NULL), 0);
    at = strstr(text, "NSpid:");
    assert_non_null(at);
    assert_int_equal(sscanf(at, "NSpid: %d %d", &outer, &in), 2);
    return in;
}

/* Returns the first process of the job's namespace; 0: the namespace has no file. */
static pid_t first_of(struct kit *k, const char *job)
{
    char path[64], *text;
    pid_t pid;

    (void)snprintf(path, sizeof path, "pid-namespaces/%s", job);
    text = kit_file(k, path, 0);
    pid = (pid_t)strtol(text, NULL, 10);
    mem_free(text);
    return pid;
}

static void gone(struct kit *k, const char *job, pid_t first)
{
    struct pollfd ended = {.fd = pidfd_open(first, 0), .events = POLLIN}; /* init may be slow to reap it */

    if (ended.fd >= 0) {
        assert_int_equal(poll(&ended, 1, 60 * 1000), 1);
        close(ended.fd);
    }
    assert_int_equal(first_of(k, job), 0);
}

static void end(struct launch_result *run)
{
    assert_int_equal(kill(run->pid, SIGKILL), 0);
    kit_wait(run);
}

/* Tasks of one job can signal each other by pid; another job of the same user has no pids for them. */
static void tasks_of_a_job_share_pid_namespace(void **state)
{
    struct kit *k = *state;
    struct launch_result one = sleeper(k, "a"), two = sleeper(k, "a");
    char script[256];
    struct launch *l;

    (void)snprintf(script, sizeof script,
                   "kill -0 %d && kill -0 %d && echo reached; cat /proc/%d/comm; ls /proc | grep -c '^[0-9]'",
                   inner(one.pid), inner(two.pid), inner(one.pid));
    l = of_job(k, "a", script);
    assert_int_equal(kit_run(k, l), 0);
    kit_expect(k, l->id, "reached\nsleep\n5\n"); /* two sleepers, the shell, ls and grep */
    l = of_job(k, "b", "kill -9 -1; ls /proc | grep -c '^[0-9]'; echo $$; exit 7");
    assert_int_equal(kit_run(k, l), 7);
    kit_expect(k, l->id, "3\n2\n");
    assert_true(kit_lives(one.pid) && kit_lives(two.pid));
    end(&one);
    end(&two);
}

/* All instances of a job share one namespace, whichever started first and has ended since; after the last one it is
 * removed. */
static void namespace_lives_while_one_instance_lives(void **state)
{
    struct kit *k = *state;
    struct launch_result one = sleeper(k, "a"), two = sleeper(k, "a"), three;
    ino_t ns = namespace_of(one.pid);
    pid_t first = first_of(k, "a");

    assert_int_equal(namespace_of(two.pid), ns);
    end(&one);
    three = sleeper(k, "a");
    assert_int_equal(namespace_of(three.pid), ns);
    end(&two);
    assert_int_equal(first_of(k, "a"), first);
    end(&three);
    gone(k, "a", first);
    one = sleeper(k, "a");
    first = first_of(k, "a");
    end(&one);
    gone(k, "a", first);
}

enum { AT_ONCE = 12 };

struct starting {
    struct kit *k;
    struct launch l;
    struct launch_result run;
    int rc;
    struct berth_err err;
};

static void *start_one(void *ctx)
{
    struct starting *s = ctx;

    s->rc = launch_start(s->k->state_dir, &s->l, &s->run, &s->err);
    return NULL;
}

static void concurrent_joins_and_exits(void **state)
{
    struct kit *k = *state;
    struct starting all[AT_ONCE];
    pthread_t threads[AT_ONCE];
    struct berth_err err;
    pid_t first = 0;

    for (int round = 0; round < 5; round++) {
        for (int i = 0; i < AT_ONCE; i++) {
            all[i] = (struct starting){.k = k, .l = *of_job(k, "a", "exec sleep 1000")};
            assert_int_equal(instance_dir_create(k->state_dir, all[i].l.id, "{}", &err), 0);
        }
        for (int i = 0; i < AT_ONCE; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, start_one, &all[i]), 0);
        for (int i = 0; i < AT_ONCE; i++) {
            assert_int_equal(pthread_join(threads[i], NULL), 0);
            if (all[i].rc)
                fail_msg("%s", all[i].err.text);
            assert_int_equal(namespace_of(all[i].run.pid), namespace_of(all[0].run.pid));
        }
        first = first_of(k, "a");
        for (int i = 0; i < AT_ONCE; i++)
            assert_int_equal(kill(all[i].run.pid, SIGKILL), 0);
        for (int i = 0; i < AT_ONCE; i++)
            kit_wait(&all[i].run);
        /* The next round starts while this namespace is being removed. */
    }
    gone(k, "a", first);
}

/* If the first process is killed, by an administrator or a crash, the next instance creates another namespace. */
static void killed_first_process_is_replaced(void **state)
{
    struct kit *k = *state;
    struct launch_result one = sleeper(k, "a");
    uint64_t id = k->l.id;
    pid_t first = first_of(k, "a");
    char text[LAUNCH_TEXT_MAX];

    assert_int_equal(kill(first, SIGKILL), 0);
    kit_wait(&one);
    assert_int_equal(kit_exit(k, id, text), 128 + SIGKILL);
    assert_int_equal(kit_run(k, of_job(k, "a", "exit 3")), 3);
}

/* Without its shim an instance ends, and the namespace ends with the last instance. */
static void killed_shim_ends_its_instance(void **state)
{
    struct kit *k = *state;
    struct launch_result one = sleeper(k, "a");
    struct launch_result two = kit_start(k, of_job(k, "a", "setsid sleep 1000 & echo up; wait"));
    pid_t first = first_of(k, "a");

    kit_expect(k, k->l.id, "up");
    assert_int_equal(kill(one.shim, SIGKILL), 0);
    kit_wait(&one);
    for (int i = 0; kit_lives(one.pid) && i < 12000; i++)
        kit_nap();
    assert_false(kit_lives(one.pid));
    assert_true(kit_lives(two.pid));
    assert_int_equal(kill(two.shim, SIGKILL), 0);
    kit_wait(&two);
    gone(k, "a", first); /* the kernel kills all processes in the namespace */
}

static void exit_status_is_reported_in_namespace(void **state)
{
    static const struct {
        const char *script;
        int code;
    } rows[] = {
        {"exit 0",                                              0            },
        {"exit 9",                                              9            },
        {"kill -9 $$",                                          128 + SIGKILL},
        {"kill -15 $$",                                         128 + SIGTERM},
        {"(setsid sh -c 'exec sleep 1000' &) ; exit 5",         5            },
        {"trap 'exit 4' TERM; kill -15 $$; sleep 1000; exit 1", 4            },
    };
    struct kit *k = *state;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(kit_run(k, of_job(k, "a", rows[i].script)), rows[i].code);
}

static int beside(struct kit *k, uint64_t id, const char *script)
{
    const char *const argv[] = {"/bin/sh", "-c", script, NULL}, *const none[] = {NULL};
    struct exec_process b;
    struct berth_err err;
    siginfo_t info = {0};

    if (exec_process_start(k->state_dir, id, argv, none, EXEC_SILENT, 0, 0, &b, &err))
        fail_msg("%s", err.text);
    assert_int_equal(waitid(P_PIDFD, (id_t)b.pidfd, &info, WEXITED), 0);
    if (exec_process_error(&b, &err))
        fail_msg("%s", err.text);
    exec_process_close(&b);
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

/* A program beside an instance is in its namespace, passes on its exit status, and ends with the process that started
 * it. */
static void exec_joins_pid_namespace(void **state)
{
    static const char *const argv[] = {"/bin/sh", "-c", "exec sleep 1000", NULL}, *const none[] = {NULL};
    struct kit *k = *state;
    struct launch_result one = sleeper(k, "a");
    uint64_t id = k->l.id;
    char script[128];
    struct exec_process b;
    struct berth_err err;
    siginfo_t info = {0};
    struct launch *l;

    (void)snprintf(script, sizeof script, "kill -0 %d && [ $(id -u) = %u ] && exit 9", inner(one.pid), (unsigned)user);
    assert_int_equal(beside(k, id, script), 9);
    assert_int_equal(beside(k, id, "kill -TERM $$"), 128 + SIGTERM);
    assert_int_equal(beside(k, id, "kill -SEGV $$"), 128 + SIGSEGV);
    assert_int_equal(exec_process_start(k->state_dir, id, argv, none, EXEC_SILENT, 0, 0, &b, &err), 0);
    l = of_job(k, "a", "until [ $(cat /proc/[0-9]*/comm | grep -c sleep) = 2 ]; do :; done");
    assert_int_equal(kit_run(k, l), 0);
    assert_int_equal(pidfd_send_signal(b.pidfd, SIGKILL, NULL, 0), 0);
    assert_int_equal(waitid(P_PIDFD, (id_t)b.pidfd, &info, WEXITED), 0);
    exec_process_close(&b);
    l = of_job(k, "a", "until [ $(cat /proc/[0-9]*/comm | grep -c sleep) = 1 ]; do :; done");
    assert_int_equal(kit_run(k, l), 0);
    end(&one);
}

/* The file of a job that ran when the machine crashed. */
static void unused_namespace_files_are_removed(void **state)
{
    struct kit *k = *state;
    struct launch_result one = sleeper(k, "a");
    char folder[128], stale[160];
    int fd;

    (void)snprintf(folder, sizeof folder, "%s/pid-namespaces", k->root);
    (void)snprintf(stale, sizeof stale, "%s/b", folder);
    fd = open(stale, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(fd_write(fd, "1\n", 2), 0);
    close(fd);
    assert_int_equal(kit_run(k, of_job(k, "b", "echo $$; exit 6")), 6);
    kit_expect(k, k->l.id, "2\n");
    fd = open(stale, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    close(fd);
    pid_namespaces_trim(folder);
    assert_int_equal(access(stale, F_OK), -1);
    assert_true(first_of(k, "a") > 0);
    end(&one);
    pid_namespaces_trim("/nowhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tasks_of_a_job_share_pid_namespace, setup, kit_teardown),
        cmocka_unit_test_setup_teardown(namespace_lives_while_one_instance_lives, setup, kit_teardown),
        cmocka_unit_test_setup_teardown(concurrent_joins_and_exits, setup, kit_teardown),
        cmocka_unit_test_setup_teardown(killed_first_process_is_replaced, setup, kit_teardown),
        cmocka_unit_test_setup_teardown(killed_shim_ends_its_instance, setup, kit_teardown),
        cmocka_unit_test_setup_teardown(exit_status_is_reported_in_namespace, setup, kit_teardown),
        cmocka_unit_test_setup_teardown(exec_joins_pid_namespace, setup, kit_teardown),
        cmocka_unit_test_setup_teardown(unused_namespace_files_are_removed, setup, kit_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
