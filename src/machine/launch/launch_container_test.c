/* launch_container_test.c - containers with real runtimes, in a hand-made bundle with busybox. */
#include "machine/launch/launch_kit_test.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>

#define BUSYBOX "/bin/busybox"

static const char *const runtimes[] = {"/usr/bin/crun", "/usr/bin/runc"};

static void put(const char *path, const char *text, mode_t mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    assert_true(fd >= 0);
    assert_int_equal(fd_write(fd, text, strlen(text)), 0);
    close(fd);
}

static void copy(const char *from, const char *to)
{
    CLEANUP(mem) char *bytes = NULL;
    size_t len;
    int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);

    assert_int_equal(file_read(AT_FDCWD, from, &bytes, &len), 0);
    assert_int_equal(fd_write(fd, bytes, len), 0);
    close(fd);
}

/* Writes config.json with a shell script as its command. */
static void bundle_write(struct kit *k, const char *program, const char *script)
{
    CLEANUP(str) struct str text = {0};
    char path[160];

    str_add(&text,
            "{\"ociVersion\": \"1.0.0\", \"root\": {\"path\": \"rootfs\"}, \"process\": {\"cwd\": \"/\", \"args\": [");
    str_add_json(&text, program);
    str_add(&text, ", \"sh\", \"-c\", ");
    str_add_json(&text, script);
    str_add(
        &text,
        "], \"env\": [\"PATH=/bin\", \"A=1\"], \"user\": {\"uid\": 1000, \"gid\": 1000}, \"noNewPrivileges\": true},"
        "\"mounts\": [{\"destination\": \"/proc\", \"type\": \"proc\", \"source\": \"proc\"},"
        "{\"destination\": \"/dev\", \"type\": \"tmpfs\", \"source\": \"tmpfs\"},"
        "{\"destination\": \"/dev/pts\", \"type\": \"devpts\", \"source\": \"devpts\","
        "\"options\": [\"newinstance\", \"ptmxmode=0666\", \"mode=0620\"]}],"
        "\"linux\": {\"cgroupsPath\": \"/berth-test/");
    str_addf(&text, "%d", (int)getpid());
    str_add(
        &text,
        "\", \"namespaces\": [{\"type\": \"pid\"}, {\"type\": \"mount\"}, {\"type\": \"ipc\"}, {\"type\": \"uts\"}]}}");
    (void)snprintf(path, sizeof path, "%s/images/bundle/config.json", k->root);
    put(path, str_text(&text), 0644);
}

static struct launch *container(struct kit *k, const char *runtime, const char *script)
{
    static char bundle[128];
    struct launch *l = kit_script(k, "");
    char path[160];

    (void)snprintf(bundle, sizeof bundle, "%s/images/bundle", k->root);
    (void)mkdir(bundle, 0755);
    (void)snprintf(path, sizeof path, "%s/rootfs", bundle);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof path, "%s/rootfs/proc", bundle);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof path, "%s/rootfs/dev", bundle);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof path, "%s/rootfs/bin", bundle);
    (void)mkdir(path, 0755);
    (void)snprintf(path, sizeof path, "%s/rootfs/bin/busybox", bundle);
    if (access(path, X_OK))
        copy(BUSYBOX, path);
    bundle_write(k, "/bin/busybox", script);
    l->runtime = runtime;
    l->bundle = bundle;
    l->id += (uint64_t)getpid() * 1000;
    return l;
}

static bool able(const char *runtime)
{
    if (getuid() == 0 && access(runtime, X_OK) == 0 && access(BUSYBOX, X_OK) == 0)
        return true;
    print_message("skip: needs root, %s and busybox-static\n", runtime);
    return false;
}

static int cgroups_remove(void **state)
{
    static const char *const roots[] = {"",         "/cpu",     "/cpuacct",  "/cpuset",     "/memory",
                                        "/devices", "/freezer", "/blkio",    "/pids",       "/systemd",
                                        "/unified", "/net_cls", "/net_prio", "/perf_event", "/hugetlb"};

    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        char path[128];

        (void)snprintf(path, sizeof path, "/sys/fs/cgroup%s/berth-test", roots[i]);
        (void)rmdir(path); /* created by the runtime; the runtime removes the container's own */
    }
    return kit_teardown(state);
}

static void container_runs_and_ends(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        struct kit *k = *state;
        struct launch *l;
        char *log, want[160];
        const int sock = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct stat st;

        if (!able(runtimes[i]))
            skip();
        l = container(k, runtimes[i],
                      "echo $A $$; busybox id -u; busybox readlink /proc/self/fd/3; echo 50% there >&4;"
                      "busybox setsid busybox sleep 1000 & exit 7");
        assert_int_equal(fstat(sock, &st), 0);
        l->sockets = &sock;
        l->sockets_len = 1;
        assert_int_equal(kit_run(k, l), 7);
        close(sock);
        log = kit_log(k, l->id);
        (void)snprintf(want, sizeof want, "1 1\n1000\nsocket:[%ju]\n", (uintmax_t)st.st_ino);
        assert_string_equal(log, want);
        mem_free(log);
        log = kit_file(k, "instances/%" PRIu64 "/progress", l->id);
        assert_string_equal(log, "500 there\n");
        mem_free(log);
        (void)snprintf(want, sizeof want, "/run/%s/berth-%" PRIu64, i ? "runc" : "crun", l->id);
        assert_int_equal(access(want, F_OK), -1);
    }
}

/* runc turns off the line end conversion of its terminal some time after the program has started: until then there are
 * two CRs. */
static void crs_fold(struct str *s)
{
    for (char *at; s->at && (at = strstr(s->at, "\r\r"));) {
        memmove(at, at + 1, strlen(at));
        s->len--;
    }
}

static void exec_in_container(void **state)
{
    for (size_t i = 0; i < 4; i++) {
        struct kit *k = *state;
        bool terminal = i % 2;
        const char *const argv[] = {"busybox", "sh", "-c",
                                    "busybox tty -s && echo terminal; echo $A $B; busybox id -u; exit 9", NULL},
                          *const env[] = {"B=two words", NULL};
        CLEANUP(str) struct str out = {0};
        struct launch_result run;
        struct launch *l;
        struct exec_process b;
        struct berth_err err;
        siginfo_t info;
        char buf[512];
        ssize_t n;

        if (!able(runtimes[i / 2]))
            skip();
        l = container(k, runtimes[i / 2], "exec busybox sleep 1000");
        run = kit_start(k, l);
        if (exec_process_start(k->state_dir, l->id, argv, env, terminal ? EXEC_TERMINAL : EXEC_PIPES, 24, 80, &b, &err))
            fail_msg("%s", err.text);
        while ((n = read(b.out, buf, sizeof buf)) > 0)
            str_add_bytes(&out, buf, (size_t)n);
        while (!terminal && (n = read(b.err, buf, sizeof buf)) > 0)
            str_add_bytes(&out, buf, (size_t)n);
        crs_fold(&out);
        assert_string_equal(str_text(&out), terminal ? "terminal\r\n1 two words\r\n1000\r\n" : "1 two words\n1000\n");
        assert_int_equal(waitid(P_PIDFD, (id_t)b.pidfd, &info, WEXITED), 0);
        assert_int_equal(info.si_status, 9);
        exec_process_close(&b);
        assert_int_equal(kill(run.pid, SIGKILL), 0);
        kit_wait(&run);
    }
}

static void container_failures_are_reported(void **state)
{
    for (size_t i = 0; i < 2; i++) {
        struct kit *k = *state;
        struct launch_result run;
        struct berth_err err;
        char text[LAUNCH_TEXT_MAX];
        struct launch *l;

        if (!able(runtimes[i]))
            skip();
        l = container(k, runtimes[i], "exit 0");
        bundle_write(k, "/bin/none", "exit 0");
        assert_int_equal(instance_dir_create(k->state_dir, l->id, "{}", &err), 0);
        assert_true(launch_start(k->state_dir, l, &run, &err) < 0);
        print_message("%s\n", err.text);
        assert_non_null(strstr(err.text, "/bin/none"));
        assert_int_equal(kit_exit(k, l->id, text), -1);
        l = container(k, runtimes[i], "exit 0");
        l->bundle = "/no/such/bundle";
        assert_int_equal(instance_dir_create(k->state_dir, l->id, "{}", &err), 0);
        assert_true(launch_start(k->state_dir, l, &run, &err) < 0);
        print_message("%s\n", err.text);
    }
}

/* crun rejects mixed cgroup controllers; in this mount namespace only those of v1 are visible. */
static int only_one_version(void **state)
{
    (void)state;
    if (getuid() != 0 || access("/sys/fs/cgroup/unified/cgroup.controllers", F_OK))
        return 0;
    assert_int_equal(unshare(CLONE_NEWNS), 0);
    assert_int_equal(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
    assert_int_equal(umount2("/sys/fs/cgroup/unified", MNT_DETACH), 0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(container_runs_and_ends, kit_setup, cgroups_remove),
        cmocka_unit_test_setup_teardown(exec_in_container, kit_setup, cgroups_remove),
        cmocka_unit_test_setup_teardown(container_failures_are_reported, kit_setup, cgroups_remove),
    };

    return cmocka_run_group_tests(tests, only_one_version, NULL);
}
