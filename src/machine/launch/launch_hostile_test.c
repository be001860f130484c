/* launch_hostile_test.c - instances that try to escape, to fill the log, or to stay alive. */
#include "machine/launch/launch_kit_test.h"

#include <dirent.h>

#include "machine/launch/pid_namespace.h"
#include "machine/launch/proc_view.h"

/* A cgroup that counts processes, and a v2 cgroup if the kernel has both. */
struct test_cgroups {
    char dirs[2][96], procs_paths[2][128];
    const char *at[2];
    size_t len;
};

static void cage_add(struct test_cgroups *c, const char *parent, const char *pids_max)
{
    char *dir = c->dirs[c->len], path[128];
    int fd;

    (void)snprintf(dir, sizeof c->dirs[0], "%s/berth-hostile-%d", parent, (int)getpid());
    if (mkdir(dir, 0755))
        return;
    (void)snprintf(path, sizeof path, "%s/pids.max", dir);
    fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd >= 0) {
        assert_int_equal(fd_write(fd, pids_max, strlen(pids_max)), 0);
        close(fd);
    }
    (void)snprintf(c->procs_paths[c->len], sizeof c->procs_paths[0], "%s/berth-hostile-%d/cgroup.procs", parent,
                   (int)getpid());
    c->at[c->len] = c->procs_paths[c->len];
    c->len++;
}

static bool test_cgroups_make(struct test_cgroups *c, struct launch *l)
{
    static const char *const second[] = {"/sys/fs/cgroup/cgroup.subtree_control",
                                         "/sys/fs/cgroup/unified/cgroup.procs"};

    *c = (struct test_cgroups){0};
    if (access("/sys/fs/cgroup/pids/cgroup.procs", W_OK) == 0)
        cage_add(c, "/sys/fs/cgroup/pids", "40");
    if (access(second[0], W_OK) == 0)
        cage_add(c, "/sys/fs/cgroup", "40");
    else if (access(second[1], W_OK) == 0)
        cage_add(c, "/sys/fs/cgroup/unified", "40");
    l->procs_paths = c->at;
    l->procs_paths_len = c->len;
    return c->len > 0;
}

static size_t test_cgroups_count(const struct test_cgroups *c)
{
    size_t count = 0;

    for (size_t i = 0; i < c->len; i++) {
        CLEANUP(mem) char *text = NULL;

        assert_int_equal(file_read(AT_FDCWD, c->procs_paths[i], &text, NULL), 0);
        for (const char *at = text; (at = strchr(at, '\n')); at++)
            count++;
    }
    return count;
}

static void test_cgroups_remove(struct test_cgroups *c)
{
    for (size_t i = 0; i < c->len; i++) {
        int rc = -1;

        for (int tries = 0; rc && tries < 12000; tries++) {
            rc = rmdir(c->dirs[i]);
            if (rc)
                kit_nap();
        }
        assert_int_equal(rc, 0);
    }
}

/* Returns how many processes of the machine have this word in their arguments. */
static int named_count(const char *word)
{
    DIR *proc = opendir("/proc");
    const struct dirent *e;
    int count = 0;

    assert_non_null(proc);
    while ((e = readdir(proc))) {
        char path[300], text[512];
        ssize_t n;
        int fd;

        (void)snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        fd = *e->d_name >= '0' && *e->d_name <= '9' ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (fd < 0)
            continue;
        n = read(fd, text, sizeof text);
        close(fd);
        count += n > 0 && memmem(text, (size_t)n, word, strlen(word));
    }
    closedir(proc);
    return count;
}

enum { WITHOUT_CGROUPS, WITH_CGROUPS, WITH_NAMESPACE };

/* After its first process has ended, no process of an instance is left, with cgroups and without; also, with cgroups,
 * in a PID namespace that another instance keeps alive. */
static void no_process_survives_instance(void **state)
{
    static const struct {
        const char *label, *script;
        int test_cgroups;
    } rows[] = {
        {"children in the background", "sleep $W & sleep $W & exit 7",                                                         WITH_CGROUPS   },
        {"children, no cgroup",        "sleep $W & sleep $W & exit 7",                                                         WITHOUT_CGROUPS},
        {"double fork and setsid",     "(setsid sh -c '(setsid sleep $W &) & sleep $W' &); sleep 0.2; exit 7",
         WITH_CGROUPS                                                                                                                         },
        {"double fork, no cgroup",     "(setsid sh -c '(setsid sleep $W &) & sleep $W' &); sleep 0.2; exit 7",
         WITHOUT_CGROUPS                                                                                                                      },
        {"ignores all it can",         "trap '' TERM HUP INT; sh -c 'trap \"\" TERM; sleep $W; sleep $W' & sleep 0.2; exit 7",
         WITH_CGROUPS                                                                                                                         },
        {"stops itself",               "sh -c 'kill -STOP $$; sleep $W; sleep $W' & sleep 0.2; exit 7",                        WITH_CGROUPS   },
        {"closes all descriptors",     "exec 0<&- 1>&- 2>&- 3>&-; sleep $W & sleep $W & exit 7",                               WITH_CGROUPS   },
        {"holds on to the log",        "(while :; do echo $W $W; done) & sleep 0.2; exit 7",                                   WITH_CGROUPS   },
        {"children, namespace",        "sleep $W & sleep $W & exit 7",                                                         WITH_NAMESPACE },
        {"double fork, namespace",     "(setsid sh -c '(setsid sleep $W &) & sleep $W' &); sleep 0.2; exit 7",
         WITH_NAMESPACE                                                                                                                       },
        {"stops itself, namespace",    "sh -c 'kill -STOP $$; sleep $W; sleep $W' & sleep 0.2; exit 7",                        WITH_NAMESPACE },
    };
    bool namespaces = geteuid() == 0 && pid_namespace_check() == 0;

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct kit *k = *state;
        struct test_cgroups test_cgroups = {0};
        struct launch_result other = {.pidfd = -1};
        char word[32], file[STATE_PATH_MAX];
        struct launch *l;

        if (rows[i].test_cgroups == WITH_NAMESPACE && !namespaces)
            continue;
        assert_int_equal(state_dir_entry_path(k->state_dir, "pid-namespaces", "a", file), 0);
        if (rows[i].test_cgroups == WITH_NAMESPACE) {
            l = kit_script(k, "exec sleep 2000");
            l->hide_processes = true;
            l->pid_namespace = file;
            other = kit_start(k, l);
        }
        l = kit_script(k, rows[i].script);
        if (rows[i].test_cgroups == WITH_NAMESPACE) {
            l->hide_processes = true;
            l->pid_namespace = file;
        }
        (void)snprintf(word, sizeof word, "W=1000.%d", (int)getpid());
        k->env[1] = word;
        k->env[2] = NULL;
        if (rows[i].test_cgroups)
            (void)test_cgroups_make(&test_cgroups, l);
        assert_int_equal(kit_run(k, l), 7);
        assert_int_equal(named_count(word + 2), 0);
        assert_int_equal(test_cgroups_count(&test_cgroups), 0);
        test_cgroups_remove(&test_cgroups);
        if (other.pidfd >= 0) {
            assert_int_equal(kill(other.pid, SIGKILL), 0);
            kit_wait(&other);
        }
    }
}

static void fork_bomb_is_killed(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "bomb() { bomb & bomb & }; bomb 2>/dev/null; sleep 0.3; exit 7");
    struct test_cgroups test_cgroups;
    struct launch_result run;
    char text[LAUNCH_TEXT_MAX];

    if (!test_cgroups_make(&test_cgroups, l) || access("/sys/fs/cgroup/pids/cgroup.procs", W_OK)) {
        test_cgroups_remove(&test_cgroups);
        print_message("skip: there is no pids cgroup to hold a fork bomb\n");
        skip();
    }
    run = kit_start(k, l);
    kit_wait(&run);
    (void)kit_exit(k, l->id, text);
    assert_string_equal(text, "");
    assert_int_equal(test_cgroups_count(&test_cgroups), 0);
    test_cgroups_remove(&test_cgroups);
}

/* If the shim is killed, too, processes that the kernel did not kill are in the cgroup, where the agent kills them. */
static void processes_of_killed_shim_are_killed(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "sleep 1000 & echo up; wait");
    struct test_cgroups test_cgroups;
    struct launch_result run;
    CLEANUP(mem) char *pids = NULL;
    char text[LAUNCH_TEXT_MAX];
    int code;

    if (!test_cgroups_make(&test_cgroups, l)) {
        print_message("skip: there are no cgroups\n");
        skip();
    }
    run = kit_start(k, l);
    kit_expect(k, l->id, "up\n");
    assert_int_equal(kill(run.shim, SIGKILL), 0);
    kit_wait(&run);
    for (int i = 0; kit_lives(run.pid) && i < 12000; i++)
        kit_nap();
    assert_false(kit_lives(run.pid));
    assert_int_equal(test_cgroups_count(&test_cgroups), test_cgroups.len); /* the sleep is left, in the cgroup */
    assert_int_equal(file_read(AT_FDCWD, test_cgroups.procs_paths[0], &pids, NULL), 0);
    assert_int_equal(kill((pid_t)strtol(pids, NULL, 10), SIGKILL), 0);
    assert_int_equal(launch_exit(k->state_dir, l->id, &code, text), -ENOENT);
    test_cgroups_remove(&test_cgroups);
}

/* A program beside the instance is not a descendant of the shim, but in its cgroups, and ends with the instance. */
static void exec_ends_with_instance(void **state)
{
    static const char *const argv[] = {"sh", "-c", "echo up; exec sleep 1000", NULL}, *const env[] = {NULL};
    struct kit *k = *state;
    struct launch *l = kit_script(k, "exec sleep 1000");
    struct test_cgroups test_cgroups;
    char up[2];
    struct launch_result run;
    struct exec_process b;
    struct berth_err err;
    siginfo_t info;

    if (!test_cgroups_make(&test_cgroups, l)) {
        print_message("skip: there are no cgroups\n");
        skip();
    }
    run = kit_start(k, l);
    assert_int_equal(exec_process_start(k->state_dir, l->id, argv, env, EXEC_TERMINAL, 0, 0, &b, &err), 0);
    assert_int_equal(read(b.out, up, sizeof up), sizeof up);
    assert_int_equal(kill(run.pid, SIGKILL), 0);
    kit_wait(&run);
    assert_int_equal(waitid(P_PIDFD, (id_t)b.pidfd, &info, WEXITED | WNOHANG), 0);
    assert_int_equal(info.si_pid, b.pid);
    assert_int_equal(info.si_status, SIGKILL);
    exec_process_close(&b);
    test_cgroups_remove(&test_cgroups);
}

static void log_flood_stays_bounded(void **state)
{
    struct kit *k = *state;
    struct launch *l =
        kit_script(k, "yes 0123456789012345678901234567890123456789 | head -c 3000000; echo; echo last words");
    struct stat st;
    char path[128];
    char *log;

    l->log_bytes = 100000;
    l->log_files = 3;
    assert_int_equal(kit_run(k, l), 0);
    log = kit_log(k, l->id);
    assert_non_null(strstr(log, "\nlast words\n"));
    mem_free(log);
    for (int i = 0; i < 4; i++) {
        (void)snprintf(path, sizeof path, i ? "%s/logs/%" PRIu64 "/log.%d" : "%s/logs/%" PRIu64 "/log", k->root, l->id,
                       i);
        if (i == 3) {
            assert_int_equal(stat(path, &st), -1);
            continue;
        }
        assert_int_equal(stat(path, &st), 0);
        assert_true(st.st_size <= 100000);
        assert_true(i == 0 || st.st_size > 99900);
    }
}

static void long_lines_are_split_over_files(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "head -c 10000 /dev/zero | tr '\\0' x; echo; echo end");
    char *log;

    l->log_bytes = 1024;
    l->log_files = 1;
    assert_int_equal(kit_run(k, l), 0);
    log = kit_log(k, l->id);
    assert_true(strlen(log) <= 1024);
    assert_non_null(strstr(log, "x\nend\n"));
    mem_free(log);
}

static void missing_log_directory_is_tolerated(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "head -c 1000000 /dev/zero; exit 5");
    char path[128];

    (void)snprintf(path, sizeof path, "%s/logs", k->root);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(kit_run(k, l), 5);
    assert_int_equal(mkdir(path, 0700), 0);
}

enum { ONE = 199345, OTHER = 199346 };

static struct launch *kit_script_as(struct kit *k, const char *script, uid_t uid)
{
    struct launch *l = kit_script(k, script);

    l->uid = l->gid = uid;
    return l;
}

/* /proc of an instance shows only processes of its user; processes of one user can access each other as before. */
static void processes_of_other_users_are_hidden(void **state)
{
    struct kit *k = *state;
    char script[256];
    int view = proc_view_make();

    if (getuid() != 0 || view < 0) {
        print_message("skip: no /proc of one's own can be made here\n");
        skip();
    }
    close(view);
    struct launch_result other = kit_start(k, kit_script_as(k, "echo up; exec sleep 1000", OTHER));
    struct launch_result same = kit_start(k, kit_script_as(k, "echo up; exec sleep 1000", ONE));
    (void)snprintf(script, sizeof script,
                   "for p in $$ %d %d %d 1; do [ -e /proc/$p/cmdline ] && printf 'yes ' || printf 'no '; done; "
                   "kill -0 %d && echo reached",
                   (int)same.pid, (int)other.pid, (int)getpid(), (int)same.pid);
    struct launch *l = kit_script_as(k, script, ONE);
    assert_int_equal(kit_run(k, l), 0); /* without hide_processes */
    kit_expect(k, l->id, "yes yes yes yes yes reached");
    l = kit_script_as(k, script, ONE);
    l->hide_processes = true;
    assert_int_equal(kit_run(k, l), 0);
    kit_expect(k, l->id, "yes yes no no no reached");
    l = kit_script_as(k, script, ONE); /* the node's own /proc is unchanged */
    assert_int_equal(kit_run(k, l), 0);
    kit_expect(k, l->id, "yes yes yes yes yes reached");

    /* A program beside it sees the same processes. */
    static const char *const argv[] = {"/bin/sh", "-c", "[ -e /proc/1/cmdline ] && exit 3; [ -e /proc/self/cmdline ]",
                                       NULL};
    static const char *const none[] = {NULL};
    struct exec_process beside;
    struct berth_err err;
    siginfo_t ended = {0};
    l = kit_script_as(k, "echo up; exec sleep 1000", ONE);
    l->hide_processes = true;
    struct launch_result run = kit_start(k, l);
    assert_int_equal(exec_process_start(k->state_dir, l->id, argv, none, EXEC_SILENT, 0, 0, &beside, &err), 0);
    assert_int_equal(waitid(P_PIDFD, (id_t)beside.pidfd, &ended, WEXITED), 0);
    assert_int_equal(ended.si_status, 0);
    exec_process_close(&beside);
    struct launch_result *all[] = {&other, &same, &run};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(kill(all[i]->pid, SIGKILL), 0);
        kit_wait(all[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(no_process_survives_instance, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(fork_bomb_is_killed, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(processes_of_killed_shim_are_killed, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(exec_ends_with_instance, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(log_flood_stays_bounded, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(long_lines_are_split_over_files, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(processes_of_other_users_are_hidden, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(missing_log_directory_is_tolerated, kit_setup, kit_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
