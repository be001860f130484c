/* launch_test.c - instances as real processes under real shims. */
#include "machine/launch/launch_kit_test.h"

#include <sys/prctl.h>
#include <sys/socket.h>

#include <sys/file.h>

#include "machine/launch/launch_spec.h"

static void exit_codes(void **state)
{
    static const struct {
        const char *script;
        int code;
    } rows[] = {
        {"exit 0",        0       },
        {"exit 3",        3       },
        {"exit 255",      255     },
        {"kill -TERM $$", 128 + 15},
        {"kill -KILL $$", 128 + 9 },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(kit_run(*state, kit_script(*state, rows[i].script)), rows[i].code);
}

static void arguments_byte_for_byte(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "printf '%s|' \"$@\"; printf '%s' \"$V\"");
    char longest[4097];
    CLEANUP(str) struct str want = {0};
    char *log;

    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    k->argv[3] = "sh";
    k->argv[4] = "a\nb \"c\" 'd' $(e) `f` \\ ; | & * \x01\xff";
    k->argv[5] = "";
    k->argv[6] = longest;
    k->argv[7] = NULL;
    k->env[1] = "V=1\n2='3'=\xfe";
    k->env[2] = NULL;
    assert_int_equal(kit_run(k, l), 0);
    log = kit_log(k, l->id);
    str_addf(&want, "%s||%s|1\n2='3'=\xfe", k->argv[4], longest);
    assert_string_equal(log, str_text(&want));
    mem_free(log);
}

static void process_inherits_nothing_from_agent(void **state)
{
    struct kit *k = *state;
    struct launch *l =
        kit_script(k, "cat /proc/$$/environ | tr '\\0' '\\n' | sort; umask; pwd; ls /proc/self/fd | wc -l;"
                      "grep -E 'SigBlk|SigIgn|NoNewPrivs' /proc/self/status;"
                      "cat /proc/self/oom_score_adj; [ $(cut -d' ' -f6 /proc/$$/stat) = $$ ] && echo session;"
                      "ulimit -n");
    const struct launch_rlimit limit = {.resource = RLIMIT_NOFILE, .soft = 77, .hard = 99};
    char *log;

    l->rlimits = &limit;
    l->rlimits_len = 1;
    l->cwd = "/usr";
    k->env[1] = "LISTEN_FDS=9";
    k->env[2] = NULL;
    (void)signal(SIGUSR1, SIG_IGN);
    assert_int_equal(kit_run(k, l), 0);
    (void)signal(SIGUSR1, SIG_DFL);
    log = kit_log(k, l->id);
    /* 5 descriptors: 0, 1, 2, progress, and that of ls itself. */
    assert_string_equal(log, "BERTH_PROGRESS_FD=3\nPATH=/usr/bin:/bin\n0022\n/usr\n5\n"
                             "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nNoNewPrivs:\t1\n0\nsession\n77\n");
    mem_free(log);
}

static void program_runs_with_user_and_groups(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "id -u; id -g; id -G; touch /root/x 2>/dev/null && echo written; exit 0");
    const gid_t groups[] = {210001, 210002};
    char *log;

    if (getuid() != 0) {
        print_message("skip: only root can become another user\n");
        skip();
    }
    l->uid = 210000;
    l->gid = 210000;
    l->groups = groups;
    l->groups_len = 2;
    assert_int_equal(kit_run(k, l), 0);
    log = kit_log(k, l->id);
    assert_string_equal(log, "210000\n210000\n210000 210001 210002\n");
    mem_free(log);
}

static void sockets_are_handed_over(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "[ $LISTEN_PID = $$ ] && echo $LISTEN_FDS $LISTEN_FDNAMES $BERTH_PROGRESS_FD;"
                                     "readlink /proc/$$/fd/3 /proc/$$/fd/4; [ -e /proc/$$/fd/6 ] || echo no more");
    const char *const names[] = {"web", "admin"};
    const int sockets[] = {socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                           socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    char want[256], *log;
    struct stat st[2];

    assert_int_equal(fstat(sockets[0], &st[0]), 0);
    assert_int_equal(fstat(sockets[1], &st[1]), 0);
    l->sockets = sockets;
    l->socket_names = names;
    l->sockets_len = 2;
    assert_int_equal(kit_run(k, l), 0);
    (void)snprintf(want, sizeof want, "2 web:admin 5\nsocket:[%ju]\nsocket:[%ju]\nno more\n", (uintmax_t)st[0].st_ino,
                   (uintmax_t)st[1].st_ino);
    log = kit_log(k, l->id);
    assert_string_equal(log, want);
    mem_free(log);
    close(sockets[0]);
    close(sockets[1]);
}

static void start_failures_are_reported(void **state)
{
    static const struct {
        const char *program, *cwd;
        int code;
        const char *text;
    } rows[] = {
        {"no-such-program",  "/",       ENOENT, "no program 'no-such-program' in PATH"                        },
        {"/no/such/program", "/",       ENOENT, "cannot run '/no/such/program': No such file or directory"    },
        {"/etc/passwd",      "/",       EACCES, "cannot run '/etc/passwd': Permission denied"                 },
        {"/bin/sh",          "/no/cwd", ENOENT, "cannot enter the folder '/no/cwd': No such file or directory"},
        {"no\nsuch",         "/",       ENOENT, "no program 'no such' in PATH"                                },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kit *k = *state;
        struct launch *l = kit_script(k, "exit 0");
        struct launch_result run;
        struct berth_err err;
        char text[LAUNCH_TEXT_MAX];

        k->argv[0] = rows[i].program;
        l->cwd = rows[i].cwd;
        assert_int_equal(instance_dir_create(k->state_dir, l->id, "{}", &err), 0);
        assert_int_equal(launch_start(k->state_dir, l, &run, &err), -rows[i].code);
        if (!strchr(rows[i].program, '\n'))
            assert_string_equal(err.text, rows[i].text);
        assert_int_equal(kit_exit(k, l->id, text), -1);
        assert_string_equal(text, err.text);
        assert_int_equal(launch_adopt(k->state_dir, l->id, &run, &err), -ESRCH);
    }
}

static void never_started_twice(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "sleep 1000");
    struct launch_result run = kit_start(k, l), again;
    struct berth_err err;

    assert_int_equal(instance_dir_create(k->state_dir, l->id, "{}", &err), -EEXIST);
    assert_int_equal(launch_start(k->state_dir, l, &again, &err), -EEXIST);
    assert_int_equal(kill(run.pid, SIGKILL), 0);
    kit_wait(&run);
    assert_int_equal(launch_start(k->state_dir, l, &again, &err), -EEXIST);
    assert_string_equal(err.text, "the instance was already started");
}

static void instance_is_adopted(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "sleep 1000");
    struct launch_result run = kit_start(k, l), found;
    struct berth_err err;
    char text[LAUNCH_TEXT_MAX];

    assert_int_equal(launch_adopt(k->state_dir, l->id, &found, &err), 0);
    assert_int_equal(found.pid, run.pid);
    assert_int_equal(found.shim, run.shim);
    assert_int_equal(kill(run.pid, SIGTERM), 0);
    kit_wait(&found);
    kit_wait(&run);
    assert_int_equal(launch_adopt(k->state_dir, l->id, &found, &err), -ESRCH);
    assert_int_equal(kit_exit(k, l->id, text), 128 + SIGTERM);
}

/* A mark with reused pids is rejected: no process holds the lock, and the start times differ. */
static void reused_pid_is_not_adopted(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "true");
    struct shim_mark m = {.shim = getpid(), .pid = getpid()};
    struct launch_result found;
    struct berth_err err;
    char text[SHIM_MARK_MAX], why[LAUNCH_TEXT_MAX];

    assert_int_equal(boot_id(m.boot), 0);
    assert_int_equal(process_start(getpid(), &m.shim_start), 0);
    shim_mark_text(&m, text);
    assert_int_equal(instance_dir_create(k->state_dir, l->id, "{}", &err), 0);
    assert_int_equal(instance_dir_write(k->state_dir, l->id, "shim", text, &err), 0);
    assert_int_equal(launch_adopt(k->state_dir, l->id, &found, &err), -ESRCH);
    /* A shim that starts afterwards finds the exit file and ends. */
    assert_int_equal(instance_dir_write(k->state_dir, l->id, "shim", "", &err), 0);
    assert_int_equal(launch_start(k->state_dir, l, &found, &err), -EEXIST);
    assert_int_equal(kit_exit(k, l->id, why), -1);
}

static void instance_survives_agent(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "while :; do sleep 0.05; echo on; done");
    struct launch_result run;
    struct berth_err err;
    pid_t pid = fork();
    int status;

    if (pid == 0) {
        setsid();
        (void)kit_start(k, l);
        kill(0, SIGHUP);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(launch_adopt(k->state_dir, l->id, &run, &err), 0);
    kit_expect(k, l->id, "on\non\non\n");
    assert_int_equal(kill(run.pid, SIGKILL), 0);
    kit_wait(&run);
}

/* The start of the instance blocks on a FIFO, used as cgroup.procs file, until a reader opens it. */
static void starting_instance_is_adopted(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "exec sleep 1000");
    struct launch_result run;
    struct berth_err err;
    char path[128];
    const char *const procs_files[] = {path};
    CLEANUP(mem) char *mark = NULL;
    pid_t pid;
    int fifo;

    (void)snprintf(path, sizeof path, "%s/door", k->root);
    assert_int_equal(mkfifo(path, 0600), 0);
    l->procs_paths = procs_files;
    l->procs_paths_len = 1;
    assert_int_equal(instance_dir_create(k->state_dir, l->id, "{}", &err), 0);
    pid = fork();
    if (pid == 0)
        _exit(launch_start(k->state_dir, l, &run, &err) == 0);
    for (int i = 0; (!mark || !*mark) && i < 12000; i++) {
        mem_free(take_ptr(&mark));
        (void)instance_dir_read(k->state_dir, l->id, "shim", &mark, NULL);
        kit_nap();
    }
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_int_equal(launch_find(k->state_dir, l->id, &run, &err), -EAGAIN);
    fifo = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fifo >= 0);
    assert_int_equal(launch_adopt(k->state_dir, l->id, &run, &err), 0);
    assert_int_equal(unlink(path), 0); /* the shim would read it to find processes to kill */
    close(fifo);
    assert_int_equal(kill(run.pid, SIGKILL), 0);
    kit_wait(&run);
}

/* The exit file is written, but the shim has not exited yet: launch_adopt waits for it and does not report a hanging
 * start. */
static void adopt_waits_for_ending_shim(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "true");
    struct shim_mark m = {.shim = getpid()};
    struct launch_result run;
    struct berth_err err;
    char text[SHIM_MARK_MAX], path[160];
    int lock;

    assert_int_equal(boot_id(m.boot), 0);
    assert_int_equal(process_start(getpid(), &m.shim_start), 0);
    shim_mark_text(&m, text);
    assert_int_equal(instance_dir_create(k->state_dir, l->id, "{}", &err), 0);
    assert_int_equal(instance_dir_write(k->state_dir, l->id, "shim", text, &err), 0);
    (void)snprintf(path, sizeof path, "%s/instances/%" PRIu64 "/shim", k->root, l->id);
    lock = open(path, O_RDWR | O_CLOEXEC);
    assert_true(lock >= 0);
    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(instance_dir_write(k->state_dir, l->id, "exit", "error it cannot be\n", &err), 0);
    assert_int_equal(launch_find(k->state_dir, l->id, &run, &err), -EAGAIN);
    assert_int_equal(launch_adopt(k->state_dir, l->id, &run, &err), -ESRCH);
    close(lock);
    assert_int_equal(launch_find(k->state_dir, l->id, &run, &err), -ESRCH);
}

static void process_is_killed_with_its_shim(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "exec sleep 1000");
    struct launch_result run = kit_start(k, l), found;
    struct berth_err err;
    char text[LAUNCH_TEXT_MAX];
    int code;

    assert_int_equal(kill(run.shim, SIGTERM), 0); /* ignored: signals are meant for the instance */
    assert_int_equal(launch_adopt(k->state_dir, l->id, &found, &err), 0);
    close(found.pidfd);
    assert_int_equal(kill(run.shim, SIGKILL), 0);
    kit_wait(&run);
    for (int i = 0; kit_lives(run.pid) && i < 12000; i++)
        kit_nap();
    assert_false(kit_lives(run.pid));
    assert_int_equal(launch_exit(k->state_dir, l->id, &code, text), -ENOENT);
}

static void first_process_is_verified_by_start_time(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "exec sleep 1000");
    struct launch_result run = kit_start(k, l), anothers = run;
    int fd = launch_first_process(&run);

    assert_true(fd >= 0);
    close(fd);
    anothers.pid = getpid(); /* the pid was reused */
    assert_int_equal(launch_first_process(&anothers), -ESRCH);
    assert_int_equal(kill(run.pid, SIGKILL), 0);
    kit_wait(&run);
    assert_int_equal(launch_first_process(&run), -ESRCH);
}

static void prevented_instance_never_starts(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "exec sleep 1000");
    struct launch_result run = {.pidfd = -1};
    struct berth_err err;
    char text[LAUNCH_TEXT_MAX];

    /* Refused before the shim is started: the start fails. */
    assert_int_equal(instance_dir_create(k->state_dir, l->id, "{}", &err), 0);
    launch_prevent(k->state_dir, l->id);
    assert_int_equal(launch_start(k->state_dir, l, &run, &err), -EEXIST);
    assert_int_equal(kit_exit(k, l->id, text), -1);
    /* Refused while it runs: it is killed. */
    l = kit_script(k, "exec sleep 1000");
    run = kit_start(k, l);
    launch_prevent(k->state_dir, l->id);
    kit_wait(&run);
    for (int i = 0; kit_lives(run.pid) && i < 12000; i++)
        kit_nap();
    assert_false(kit_lives(run.pid));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(exit_codes, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(arguments_byte_for_byte, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(process_inherits_nothing_from_agent, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(program_runs_with_user_and_groups, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(sockets_are_handed_over, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(start_failures_are_reported, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(never_started_twice, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(instance_is_adopted, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(reused_pid_is_not_adopted, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(instance_survives_agent, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(starting_instance_is_adopted, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(adopt_waits_for_ending_shim, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(process_is_killed_with_its_shim, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(first_process_is_verified_by_start_time, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(prevented_instance_never_starts, kit_setup, kit_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
