/* exec_test.c - programs beside running instances. */
#include "machine/launch/launch_kit_test.h"

#include <sys/ioctl.h>

static const char *const no_env[] = {NULL};

/* Reads until end of file, reaps the program, and returns its exit code. */
static int finish(struct exec_process *b, struct str *out, struct str *err)
{
    siginfo_t info;
    char buf[4096];
    ssize_t n;

    if (b->err >= 0)
        close(take_fd(&b->in));
    while (b->out >= 0 && (n = read(b->out, buf, sizeof buf)) > 0)
        str_add_bytes(out, buf, (size_t)n);
    while (b->err >= 0 && (n = read(b->err, buf, sizeof buf)) > 0)
        str_add_bytes(err, buf, (size_t)n);
    assert_int_equal(waitid(P_PIDFD, (id_t)b->pidfd, &info, WEXITED), 0);
    exec_process_close(b);
    return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

static int beside(struct kit *k, uint64_t id, const char *script, const char *const *env, struct str *out)
{
    CLEANUP(str) struct str complaints = {0};
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct exec_process b;
    struct berth_err err;
    int code;

    if (exec_process_start(k->state_dir, id, argv, env, EXEC_PIPES, 0, 0, &b, &err))
        fail_msg("%s", err.text);
    code = finish(&b, out, &complaints);
    assert_string_equal(str_text(&complaints), "");
    return code;
}

static void program_has_user_cgroup_and_environment(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "exec sleep 1000");
    const struct launch_rlimit limit = {.resource = RLIMIT_NOFILE, .soft = 77, .hard = 99};
    const gid_t groups[] = {210001};
    const char *const more[] = {"B=new", "C=3", NULL};
    CLEANUP(str) struct str out = {0};
    struct launch_result run;

    l->rlimits = &limit;
    l->rlimits_len = 1;
    l->cwd = "/usr";
    k->env[1] = "A=1";
    k->env[2] = "B=2";
    k->env[3] = NULL;
    if (getuid() == 0) {
        l->uid = l->gid = 210000;
        l->groups = groups;
        l->groups_len = 1;
    }
    run = kit_start(k, l);
    assert_int_equal(beside(k, l->id,
                            "echo $A $B $C $BERTH_PROGRESS_FD; pwd; ulimit -n; ls /proc/self/fd | wc -l;"
                            "grep NoNewPrivs /proc/self/status; exit 9",
                            more, &out),
                     9);
    assert_string_equal(str_text(&out), "1 new 3\n/usr\n77\n4\nNoNewPrivs:\t1\n");
    str_clear(&out);
    assert_int_equal(beside(k, l->id, "id -u; id -G", no_env, &out), 0);
    if (getuid() == 0)
        assert_string_equal(str_text(&out), "210000\n210000 210001\n");
    assert_int_equal(kill(run.pid, SIGKILL), 0);
    kit_wait(&run);
}

static void stdin_stdout_and_stderr_work(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "exec sleep 1000");
    struct launch_result run = kit_start(k, l);
    const char *const argv[] = {"sh", "-c", "cat; echo wrong >&2; kill -9 $$", NULL};
    CLEANUP(str) struct str out = {0};
    CLEANUP(str) struct str complaints = {0};
    struct exec_process b;
    struct berth_err err;

    assert_int_equal(exec_process_start(k->state_dir, l->id, argv, no_env, EXEC_PIPES, 0, 0, &b, &err), 0);
    assert_int_equal(fd_write(b.in, "to be said", 10), 0);
    assert_int_equal(finish(&b, &out, &complaints), 128 + SIGKILL);
    assert_string_equal(str_text(&out), "to be said");
    assert_string_equal(str_text(&complaints), "wrong\n");
    assert_int_equal(kill(run.pid, SIGKILL), 0);
    kit_wait(&run);
}

static void terminal_works(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "exec sleep 1000");
    struct launch_result run = kit_start(k, l);
    const char *const argv[] = {
        "sh", "-c", "tty -s && echo terminal; stty size; read x; stty size; echo x=$x; exec 3</dev/tty && echo mine",
        NULL};
    CLEANUP(str) struct str out = {0};
    struct exec_process b;
    struct berth_err err;
    char buf[256];

    assert_int_equal(exec_process_start(k->state_dir, l->id, argv, no_env, EXEC_TERMINAL, 33, 99, &b, &err), 0);
    assert_int_equal(b.err, -1);
    assert_int_equal(b.in, b.out);
    while (!strstr(str_text(&out), "33 99\r\n")) {
        ssize_t n = read(b.out, buf, sizeof buf);

        assert_true(n > 0);
        str_add_bytes(&out, buf, (size_t)n);
    }
    exec_process_resize(&b, 44, 111);
    assert_int_equal(fd_write(b.in, "yes\n", 4), 0);
    assert_int_equal(finish(&b, &out, NULL), 0);
    assert_string_equal(str_text(&out), "terminal\r\n33 99\r\nyes\r\n44 111\r\nx=yes\r\nmine\r\n");
    assert_int_equal(kill(run.pid, SIGKILL), 0);
    kit_wait(&run);
}

/* Starts a program that ends without being executed; returns the error. */
static int never_run(struct kit *k, uint64_t id, const char *program, enum exec_stdio kind, struct berth_err *err)
{
    const char *const argv[] = {program, NULL};
    struct exec_process b;
    siginfo_t info;
    int rc;

    assert_int_equal(exec_process_start(k->state_dir, id, argv, no_env, kind, 0, 0, &b, err), 0);
    assert_int_equal(waitid(P_PIDFD, (id_t)b.pidfd, &info, WEXITED), 0);
    rc = exec_process_error(&b, err);
    exec_process_close(&b);
    return rc;
}

static void start_failures_are_reported(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "exec sleep 1000");
    struct launch_result run = kit_start(k, l);
    const char *const some[] = {"true", NULL}, *const none[] = {NULL};
    struct exec_process b;
    struct berth_err err;

    assert_int_equal(never_run(k, l->id, "no-such-program", EXEC_PIPES, &err), -ENOENT);
    assert_string_equal(err.text, "no program 'no-such-program' in PATH");
    assert_int_equal(never_run(k, l->id, "true", EXEC_PIPES, &err), 0);
    assert_int_equal(exec_process_start(k->state_dir, l->id, none, no_env, EXEC_PIPES, 0, 0, &b, &err), -EINVAL);
    assert_int_equal(exec_process_start(k->state_dir, 12345, some, no_env, EXEC_PIPES, 0, 0, &b, &err), -ESRCH);
    assert_int_equal(kill(run.pid, SIGKILL), 0);
    kit_wait(&run);
    assert_int_equal(never_run(k, l->id, "true", EXEC_TERMINAL, &err), -ESRCH);
    assert_string_equal(err.text, "the instance is not running");
}

/* Output of a silent program is discarded without blocking it. */
static void silent_output_does_not_block(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "exec sleep 1000");
    struct launch_result run = kit_start(k, l);
    const char *const argv[] = {"sh", "-c", "head -c 1000000 /dev/zero && echo wrong >&2 && ! read x", NULL};
    struct exec_process b;
    struct berth_err err;

    assert_int_equal(exec_process_start(k->state_dir, l->id, argv, no_env, EXEC_SILENT, 0, 0, &b, &err), 0);
    assert_true(b.in < 0 && b.out < 0 && b.err < 0);
    assert_int_equal(finish(&b, NULL, NULL), 0);
    assert_int_equal(kill(run.pid, SIGKILL), 0);
    kit_wait(&run);
}

/* ---- mounts ---- */

static void put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(fd_write(fd, text, strlen(text)), 0);
    close(fd);
}

static void program_sees_mounts_of_instance(void **state)
{
    struct kit *k = *state;
    struct launch *l =
        kit_script(k, "cat $R/file $R/dir/in; echo x >$R/dir/new; echo x 2>/dev/null >$R/ro/new || echo read only;"
                      "stat -f -c %T $R/tmp/deep; stat -c %a $R/tmp/deep; echo up; exec sleep 1000");
    char root[128], source[128], file[160], in[200], r[130], targets[4][160];
    struct launch_mount mounts[] = {
        {.source = source,      .target = targets[0]        },
        { .source = file, .target = targets[1],            .read_only = true},
        { .source = source, .target = targets[2],            .read_only = true},
        { .target = targets[3],      .type = "tmpfs", .data = "size=64k,mode=0750"},
    };
    CLEANUP(str) struct str out = {0};
    struct launch_result run;
    char *log;

    if (getuid() != 0) {
        print_message("skip: only root can mount\n");
        skip();
    }
    (void)snprintf(root, sizeof root, "%s/volumes/root", k->root);
    (void)snprintf(source, sizeof source, "%s/volumes/source", k->root);
    (void)snprintf(file, sizeof file, "%s/volumes/file", k->root);
    (void)snprintf(in, sizeof in, "%s/in", source);
    (void)snprintf(r, sizeof r, "R=%s", root);
    assert_int_equal(mkdir(root, 0755), 0);
    assert_int_equal(mkdir(source, 0755), 0);
    put(file, "a file\n");
    put(in, "in a folder\n");
    (void)snprintf(targets[0], sizeof targets[0], "%s/dir", root);
    (void)snprintf(targets[1], sizeof targets[1], "%s/file", root);
    (void)snprintf(targets[2], sizeof targets[2], "%s/ro", root);
    (void)snprintf(targets[3], sizeof targets[3], "%s/tmp//deep/", root);
    k->env[1] = r;
    k->env[2] = NULL;
    l->mounts = mounts;
    l->mounts_len = sizeof mounts / sizeof *mounts;
    run = kit_start(k, l);
    kit_expect(k, l->id, "up\n");
    log = kit_log(k, l->id);
    assert_string_equal(log, "a file\nin a folder\nread only\ntmpfs\n750\nup\n");
    mem_free(log);
    /* Written to the source, visible to the program beside it, and nowhere else. */
    (void)snprintf(in, sizeof in, "%s/new", source);
    assert_int_equal(access(in, F_OK), 0);
    (void)snprintf(in, sizeof in, "%s/new", targets[0]);
    assert_int_equal(access(in, F_OK), -1);
    assert_int_equal(beside(k, l->id, "cat $R/dir/in", no_env, &out), 0);
    assert_string_equal(str_text(&out), "in a folder\n");
    assert_int_equal(kill(run.pid, SIGKILL), 0);
    kit_wait(&run);
}

/* A missing target is created for the instance only. Existing entries stay visible and writable. */
static void missing_targets_are_private(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(k, "cd $R; echo *; cat a l made; echo through >d/new;"
                                     "echo x 2>/dev/null >more || echo no more; stat -f -c %T deep/er");
    char root[] = "/tmp/berth-node-XXXXXX", r[64], a[64], d[64], link[64], targets[2][64], path[80];
    const struct launch_mount mounts[] = {
        {.source = a, .target = targets[0], .read_only = true},
        {.target = targets[1],           .type = "tmpfs"           },
    };
    char *log;

    if (getuid() != 0) {
        print_message("skip: only root can mount\n");
        skip();
    }
    assert_non_null(mkdtemp(root));
    assert_int_equal(chmod(root, 0755), 0);
    (void)snprintf(r, sizeof r, "R=%s", root);
    (void)snprintf(a, sizeof a, "%s/a", root);
    (void)snprintf(d, sizeof d, "%s/d", root);
    (void)snprintf(link, sizeof link, "%s/l", root);
    (void)snprintf(targets[0], sizeof targets[0], "%s/made", root);
    (void)snprintf(targets[1], sizeof targets[1], "%s/deep/er", root);
    put(a, "a\n");
    assert_int_equal(symlink("a", link), 0);
    assert_int_equal(mkdir(d, 0755), 0);
    assert_int_equal(chmod(d, 0777), 0);
    k->env[1] = r;
    k->env[2] = NULL;
    l->uid = l->gid = 65534;
    l->mounts = mounts;
    l->mounts_len = sizeof mounts / sizeof *mounts;
    assert_int_equal(kit_run(k, l), 0);
    log = kit_log(k, l->id);
    assert_string_equal(log, "a d deep l made\na\na\na\nno more\ntmpfs\n");
    mem_free(log);
    (void)snprintf(path, sizeof path, "%s/deep", root);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(access(targets[0], F_OK), -1);
    (void)snprintf(path, sizeof path, "%s/new", d);
    assert_int_equal(access(path, F_OK), 0);
    kit_remove(root);
}

/* A workload may own a part of the path to a target: nothing is created or mounted by root through its links. */
static void links_in_targets_are_rejected(void **state)
{
    struct kit *k = *state;
    char target[160], victim[128], link[128];
    const struct {
        const char *tail;
        int code;
    } rows[] = {
        {"link/made", ELOOP  },
        {"link",      ELOOP  },
        {"../x",      EINVAL },
        {"file/x",    ENOTDIR},
    };

    if (getuid() != 0) {
        print_message("skip: only root can mount\n");
        skip();
    }
    (void)snprintf(victim, sizeof victim, "%s/volumes/victim", k->root);
    (void)snprintf(link, sizeof link, "%s/homes/link", k->root);
    assert_int_equal(mkdir(victim, 0755), 0);
    assert_int_equal(symlink(victim, link), 0);
    (void)snprintf(link, sizeof link, "%s/homes/file", k->root);
    put(link, "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct launch *l = kit_script(k, "exit 0");
        const struct launch_mount mount = {.target = target, .type = "tmpfs"};
        struct launch_result run;
        struct berth_err err;
        char made[160];

        (void)snprintf(target, sizeof target, "%s/homes/%s", k->root, rows[i].tail);
        l->mounts = &mount;
        l->mounts_len = 1;
        assert_int_equal(instance_dir_create(k->state_dir, l->id, "{}", &err), 0);
        assert_int_equal(launch_start(k->state_dir, l, &run, &err), -rows[i].code);
        (void)snprintf(made, sizeof made, "%s/made", victim);
        assert_int_equal(access(made, F_OK), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(program_has_user_cgroup_and_environment, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(stdin_stdout_and_stderr_work, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(terminal_works, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(start_failures_are_reported, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(silent_output_does_not_block, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(program_sees_mounts_of_instance, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(missing_targets_are_private, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(links_in_targets_are_rejected, kit_setup, kit_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
