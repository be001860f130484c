/* bundle_test.c - containers with real runtimes: program, user, limits, and complete removal. */
#include "machine/container/bundle_kit_test.h"

#include <linux/magic.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

#include "machine/container/bundle_config.h"
#include "wire/text/document.h"

enum { UID = 61234, GID = 61235 };

static struct instance_user someone(void)
{
    struct instance_user u = {.name = "ann", .uid = UID, .gid = GID, .groups_len = 1};
    u.groups[0] = 61236;
    return u;
}

/* ---- config.json ---- */

static void config_json_is_generated(void **state)
{
    (void)state;
    const struct instance_user user = someone();
    static const struct launch_mount mounts[] = {
        {.source = "/srv/a",    .target = "/data", .read_only = true            },
        { .source = "tmpfs", .target = "/scratch",   .type = "tmpfs", .data = "size=4096,mode=0700"},
    };
    static const struct launch_rlimit rlimits[] = {
        {.resource = RLIMIT_NOFILE, .soft = 64, .hard = 128}
    };
    static const char *const env[] = {"B=ours", "C=ours=3", "no name", NULL};
    const struct bundle_options options = {.cgroup_path = "/berth/7",
                                           .user = &user,
                                           .mounts = mounts,
                                           .mounts_len = 2,
                                           .env = env,
                                           .rlimits = rlimits,
                                           .rlimits_len = 1,
                                           .sockets_len = 2};
    CLEANUP(json) json_t *config = json_of("{\"workload\": \"web.Ann!\", \"ordinal\": 3}");
    CLEANUP(json)
    json_t *image = json_of("{\"config\": {\"Entrypoint\": [\"/e\"], \"Cmd\": [\"c\"], \"User\": \"0\", "
                            "\"Env\": [\"A=image\", \"B=image\", \"PATH=/x\"], \"WorkingDir\": \"/w\"}}");
    CLEANUP(json) json_t *made = NULL;
    const struct bundle_inputs words = {.config = config, .image = image, .options = &options, .hosts = true};
    struct berth_err err;
    if (bundle_config(&words, &made, &err) < 0)
        fail_msg("%s", err.text);
    CLEANUP(json)
    json_t *want = json_of(
        "{\"terminal\": false, \"user\": {\"uid\": %d, \"gid\": %d, \"additionalGids\": [61236]}, \"args\": [\"/e\", \"c\"], "
        "\"env\": [\"PATH=/x\", \"A=image\", \"B=ours\", \"C=ours=3\", \"LISTEN_FDS=2\", \"LISTEN_PID=1\", "
        "\"BERTH_PROGRESS_FD=5\"], \"cwd\": \"/w\", "
        "\"capabilities\": {\"bounding\": [], \"effective\": [], \"inheritable\": [], \"permitted\": [], \"ambient\": []}, "
        "\"rlimits\": [{\"type\": \"RLIMIT_NOFILE\", \"hard\": 128, \"soft\": 64}], \"noNewPrivileges\": true}",
        UID, GID);
    const json_t *process = json_object_get(made, "process");
    if (!json_equal(process, want))
        fail_msg("%s", json_dumps(process, 0));
    assert_string_equal(json_string_value(json_object_get(made, "hostname")), "web.Ann--3");
    const json_t *linux_part = json_object_get(made, "linux");
    assert_string_equal(json_string_value(json_object_get(linux_part, "cgroupsPath")), "/berth/7");
    assert_null(json_object_get(linux_part, "resources"));
    /* the network namespace is the node's */
    assert_int_equal(json_array_size(json_object_get(linux_part, "namespaces")), 5);
    const json_t *list = json_object_get(made, "mounts");
    CLEANUP(json)
    json_t *bind = json_of("{\"destination\": \"/data\", \"type\": \"bind\", \"source\": \"/srv/a\", "
                           "\"options\": [\"bind\", \"nosuid\", \"nodev\", \"private\", \"ro\"]}");
    CLEANUP(json)
    json_t *tmpfs = json_of("{\"destination\": \"/scratch\", \"type\": \"tmpfs\", \"source\": \"tmpfs\", "
                            "\"options\": [\"nosuid\", \"nodev\", \"rw\", \"size=4096\", \"mode=0700\"]}");
    assert_true(json_equal(json_array_get(list, json_array_size(list) - 2), bind));
    assert_true(json_equal(json_array_get(list, json_array_size(list) - 1), tmpfs));
}

static void devices_are_created_and_allowed(void **state)
{
    (void)state;
    static const struct nvml_file files[] = {
        {"/dev/nvidia1",   195, 1  },
        {"/dev/nvidiactl", 195, 255},
    };
    const struct instance_user user = someone();
    const struct bundle_options options = {.user = &user, .devices = files, .devices_len = ROWS(files)};
    CLEANUP(json) json_t *config = json_of("{\"command\": [\"a\"]}"), *image = json_of("{}"), *made = NULL;
    const struct bundle_inputs words = {.config = config, .image = image, .options = &options};
    assert_int_equal(bundle_config(&words, &made, NULL), 0);
    const json_t *linux_part = json_object_get(made, "linux");
    CLEANUP(json)
    json_t *want = json_of("{\"path\": \"/dev/nvidia1\", \"type\": \"c\", \"major\": 195, \"minor\": 1, "
                           "\"fileMode\": 438, \"uid\": 0, \"gid\": 0}");
    CLEANUP(json)
    json_t *rule = json_of("{\"allow\": true, \"type\": \"c\", \"major\": 195, \"minor\": 1, \"access\": \"rw\"}");
    assert_int_equal(json_array_size(json_object_get(linux_part, "devices")), 2);
    assert_true(json_equal(json_array_get(json_object_get(linux_part, "devices"), 0), want));
    const json_t *rules = json_object_get(json_object_get(linux_part, "resources"), "devices");
    assert_int_equal(json_array_size(rules), 3);
    assert_true(json_is_false(json_object_get(json_array_get(rules, 0), "allow"))); /* all other devices are denied */
    assert_true(json_equal(json_array_get(rules, 1), rule));
}

static void invalid_configurations_are_rejected(void **state)
{
    (void)state;
    static const struct {
        const char *config, *image, *env, *want;
    } rows[] = {
        {"{}",                        "{}",                          NULL,     "has no default command"},
        {"{\"command\": []}",         "{\"config\": {\"Cmd\": []}}", NULL,     "has no default command"},
        {"{\"command\": [\"\"]}",     "{}",                          NULL,     "is empty"              },
        {"{\"command\": [\"a\", 1]}", "{}",                          NULL,     "list of strings"       },
        {"{\"command\": [\"a\"]}",    "{}",                          "A=\xff", "must be UTF-8"         },
    };
    const struct instance_user user = someone();
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(json) json_t *config = json_of("%s", rows[i].config), *image = json_of("%s", rows[i].image);
        json_t *made = NULL;
        const char *const env[] = {rows[i].env, NULL};
        const struct bundle_options options = {.user = &user, .env = env};
        const struct bundle_inputs words = {.config = config, .image = image, .options = &options};
        struct berth_err err;
        assert_int_equal(bundle_config(&words, &made, &err), -EINVAL);
        assert_non_null(strstr(err.text, rows[i].want));
        assert_null(made);
    }
}

/* ---- with real runtimes ---- */

static int64_t steady_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void container_runs_as_owner_without_capabilities(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    image_make(k);
    const struct instance_user user = someone();
    static const char *const env[] = {"OURS=a b", NULL};
    static const struct launch_rlimit rlimits[] = {
        {.resource = RLIMIT_NOFILE, .soft = 99, .hard = 99}
    };
    folder_put(&k->folder, "shown/text", "seen");
    char shown[128];
    (void)snprintf(shown, sizeof shown, "%s/shown", k->folder.path);
    const struct launch_mount mounts[] = {
        {.source = shown,       .target = "/shown", .read_only = true                                 },
        { .source = "tmpfs", .target = "/scratch",    .type = "tmpfs", .data = "size=65536,mode=0700,uid=61234,gid=61235"},
    };
    const struct bundle_options options = {
        .user = &user, .env = env, .rlimits = rlimits, .rlimits_len = 1, .mounts = mounts, .mounts_len = 2};
    static const char script[] =
        "id -u; id -G; hostname; echo $FROM $OURS; ulimit -n; cat /shown/text; echo; (touch /shown/x) 2>/dev/null && echo BAD; "
        "touch /scratch/x && echo scratch; (touch /etc/x) 2>/dev/null && echo BAD; touch /tmp/x && echo tmp; echo $$; "
        "ls /proc | grep -c '^[0-9]' >/dev/null 2>&1; (cat /proc/kcore) 2>/dev/null | cat; "
        "(echo 1 >/proc/sys/kernel/panic) 2>/dev/null && echo BAD; cat /proc/self/status | while read a b; do case $a in "
        "CapEff:|CapBnd:|NoNewPrivs:) echo $a $b;; esac; done; ls /dev/shm /dev/mqueue /dev/pts >/dev/null && echo dev";
    static const char want[] =
        "61234\n61235 61236\nweb-2\nimage a b\n99\nseen\nscratch\ntmp\n1\nCapBnd: 0000000000000000\n"
        "CapEff: 0000000000000000\nNoNewPrivs: 1\ndev\n";
    for (size_t i = 0; i < ROWS(runtimes); i++) {
        char path[PATH_MAX];
        if (tool_find(runtimes[i], path) < 0) {
            print_message("skip: there is no %s\n", runtimes[i]);
            continue;
        }
        CLEANUP(str) struct str out = {0};
        uint64_t id = (uint64_t)getpid() * 100 + i;
        make(k, id, script, &options);
        if (run(k, runtimes[i], id, &out) < 0)
            fail_msg("%s: %s", runtimes[i], k->err.text);
        CLEANUP(str) struct str sorted = {0};
        /* The order of the Cap lines depends on the kernel. */
        const char *eff = strstr(str_text(&out), "CapEff:"), *bnd = strstr(str_text(&out), "CapBnd:");
        if (eff && bnd && eff < bnd) {
            str_add_bytes(&sorted, out.at, (size_t)(eff - out.at));
            str_addf(&sorted, "CapBnd: 0000000000000000\nCapEff: %.16s\n", eff + 8);
            str_add(&sorted, strchr(bnd, '\n') + 1);
            assert_memory_equal(bnd + 8, "0000000000000000", 16);
        } else {
            str_add(&sorted, str_text(&out));
        }
        assert_string_equal(str_text(&sorted), want);
        /* Its writes are in its own root, not in the image. */
        char written[128];
        (void)snprintf(written, sizeof written, "state/instances/%" PRIu64 "/bundle/rootfs/tmp/x", id);
        assert_int_equal(access(folder_at(&k->folder, written), F_OK), 0);
        end(k, id);
    }
    CLEANUP(close_fd) int root = -1;
    char digest[72];
    CLEANUP(json) json_t *config = config_of(k, NULL);
    assert_int_equal(image_open(k->state_dir, config, &root, NULL, digest, &k->err), 0);
    assert_int_equal(faccessat(root, "tmp/x", F_OK, 0), -1);
}

static void image_command_is_the_default(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    const char *runtime = oci_runtime_find();
    if (!runtime) {
        print_message("skip: there is neither crun nor runc\n");
        skip();
        return;
    }
    image_make(k);
    const struct instance_user user = someone();
    const struct bundle_options options = {.user = &user};
    CLEANUP(str) struct str out = {0};
    uint64_t id = (uint64_t)getpid() * 100;
    make(k, id, NULL, &options);
    if (run(k, runtime, id, &out) < 0)
        fail_msg("%s", k->err.text);
    assert_string_equal(str_text(&out), "from the image\n61234\n"); /* not root, although the image says so */
    end(k, id);
}

/* ---- limits set by the agent must hold during and after the container ------------------------------------------- */

static bool text_put(const char *path, const char *text)
{
    CLEANUP(close_fd) int fd = open(path, O_WRONLY | O_CLOEXEC);
    return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

/* In v1 hierarchies, or in the v2 hierarchy. */
static const struct {
    const char *folder, *file, *value;
} limits[] = {
    {"/sys/fs/cgroup/pids",   "pids.max",              "37"       },
    {"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "134217728"},
    {"/sys/fs/cgroup/cpu",    "cpu.shares",            "77"       },
    {"/sys/fs/cgroup",        "pids.max",              "37"       },
};

struct group {
    char name[64];
    bool made[ROWS(limits)];
};

/* Returns how many limits could be set. */
static size_t group_make(struct group *g, size_t turn)
{
    size_t count = 0;
    char at[256];
    (void)snprintf(g->name, sizeof g->name, "/berth-bundle-test-%d-%zu", (int)getpid(), turn);
    for (size_t i = 0; i < ROWS(limits); i++) {
        bool v2 = strcmp(limits[i].folder, "/sys/fs/cgroup") == 0;
        (void)snprintf(at, sizeof at, "%s%s", limits[i].folder, g->name);
        if ((v2 && access("/sys/fs/cgroup/cgroup.controllers", F_OK) < 0) || mkdir(at, 0755) < 0)
            continue;
        g->made[i] = true;
        (void)snprintf(at, sizeof at, "%s%s/%s", limits[i].folder, g->name, limits[i].file);
        count += text_put(at, limits[i].value);
    }
    return count;
}

/* Checks that every limit is unchanged and a process is in its cgroup. */
static void group_check(const struct group *g, const char *runtime)
{
    char at[256], is[64];
    for (size_t i = 0; i < ROWS(limits); i++) {
        if (!g->made[i])
            continue;
        (void)snprintf(at, sizeof at, "%s%s/%s", limits[i].folder, g->name, limits[i].file);
        text_get(at, is, sizeof is);
        if (strcmp(is, limits[i].value) != 0)
            fail_msg("%s: %s is %s, was %s", runtime, at, is, limits[i].value);
        (void)snprintf(at, sizeof at, "%s%s/cgroup.procs", limits[i].folder, g->name);
        text_get(at, is, sizeof is);
        if (!*is)
            fail_msg("%s: nobody is in %s", runtime, at);
    }
}

/* Checks that no cgroup of the container is left in any hierarchy. */
static void group_end(const struct group *g, const char *runtime)
{
    static const char *const hierarchies[] = {"",         "/pids",  "/memory",  "/cpu",     "/cpuacct", "/cpuset",
                                              "/devices", "/blkio", "/freezer", "/systemd", "/unified"};
    for (size_t i = 0; i < ROWS(hierarchies); i++) {
        struct statfs st;
        char at[256];
        (void)snprintf(at, sizeof at, "/sys/fs/cgroup%s%s", hierarchies[i], g->name);
        /* crun does not remove these cgroups. A killed process stays in them for a moment. */
        for (int turn = 0; turn < 1000 && rmdir(at) < 0 && errno == EBUSY; turn++)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        if (statfs(at, &st) == 0 && st.f_type != TMPFS_MAGIC) /* TMPFS_MAGIC: mounted by surroundings() */
            fail_msg("%s: %s is still there", runtime, at);
    }
}

/* Starts the container in the background, like the shim: crun runs inside the cgroups and does not change them. */
static void start_detached(struct image_kit *k, const char *runtime, uint64_t id, const struct group *g)
{
    char path[PATH_MAX], bundle[STATE_PATH_MAX], name[32];
    bool crun = strcmp(runtime, "crun") == 0;
    int status = -1;
    assert_int_equal(tool_find(runtime, path), 0);
    assert_int_equal(instance_dir_path(k->state_dir, id, "bundle", bundle), 0);
    (void)snprintf(name, sizeof name, "berth-%" PRIu64, id);
    const char *const as_crun[] = {path, "--cgroup-manager=disabled", "run", "--detach", "--bundle", bundle, name,
                                   NULL};
    const char *const as_runc[] = {path, "run", "--detach", "--bundle", bundle, name, NULL};
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_RDWR);
        (void)dup2(null, 0);
        (void)dup2(null, 1);
        for (size_t i = 0; crun && i < ROWS(limits); i++) {
            char at[256];
            (void)snprintf(at, sizeof at, "%s%s/cgroup.procs", limits[i].folder, g->name);
            if (g->made[i] && !text_put(at, "0"))
                _exit(126);
        }
        execv(path, (char *const *)(crun ? as_crun : as_runc));
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

static void cgroup_limits_hold_during_and_after_container(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    image_make(k);
    const struct instance_user user = someone();
    for (size_t r = 0; r < ROWS(runtimes); r++) {
        char path[PATH_MAX];
        struct group g = {0};
        if (tool_find(runtimes[r], path) < 0) {
            print_message("skip: there is no %s\n", runtimes[r]);
            continue;
        }
        if (group_make(&g, r) == 0) {
            print_message("skip: no limit can be set here\n");
            skip();
        }
        const struct bundle_options options = {.user = &user, .cgroup_path = g.name};
        uint64_t id = (uint64_t)getpid() * 100 + r;
        make(k, id, "sleep 30", &options);
        start_detached(k, runtimes[r], id, &g);
        group_check(&g, runtimes[r]);
        /* The runtime was not told to delete the container, as if the shim had been killed; bundle_end does it. */
        char kept[64];
        (void)snprintf(kept, sizeof kept, "/run/%s/berth-%" PRIu64, runtimes[r], id);
        assert_int_equal(access(kept, F_OK), 0);
        end(k, id);
        assert_int_equal(access(kept, F_OK), -1);
        group_end(&g, runtimes[r]);
    }
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

static void leftovers_of_crash_are_removed(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    image_make(k);
    const struct instance_user user = someone();
    const struct bundle_options options = {.user = &user};
    make(k, 1, "true", &options);
    /* Further mounts in the bundle, stacked and busy, and a link that leads out of it. */
    folder_put(&k->folder, "outside/kept", "kept");
    char tmp[160], outside[160], link_path[160];
    (void)snprintf(tmp, sizeof tmp, "%s/state/instances/1/bundle/rootfs/tmp", k->folder.path);
    (void)snprintf(outside, sizeof outside, "%s/outside", k->folder.path);
    (void)snprintf(link_path, sizeof link_path, "%s/state/instances/1/bundle/upper/link", k->folder.path);
    assert_int_equal(symlink(outside, link_path), 0);
    assert_int_equal(mount(outside, tmp, NULL, MS_BIND, NULL), 0);
    assert_int_equal(mount("tmpfs", tmp, "tmpfs", 0, NULL), 0);
    CLEANUP(close_fd) int busy = open(tmp, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(busy >= 0);
    CLEANUP(json) json_t *config = config_of(k, "true");
    if (bundle_make(k->state_dir, 1, config, &options, &k->err) < 0) /* the next bundle_make cleans up first */
        fail_msg("%s", k->err.text);
    assert_string_equal(folder_get(&k->folder, "outside/kept"), "kept");
    end(k, 1);
    assert_string_equal(folder_get(&k->folder, "outside/kept"), "kept");
}

static void failed_bundle_leaves_nothing(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    image_make(k);
    static const struct {
        const char *config, *want;
        bool as_root;
    } rows[] = {
        {"{\"image\": \"app:1\", \"command\": [\"x\"]}",            "must be pulled first",                      false},
        {"{\"image\": \"oci:%s/nothing:1\", \"command\": [\"x\"]}", "cannot open the layout",                    false},
        {"{\"rootfs\": \"%s/nothing\", \"command\": [\"x\"]}",      "cannot open it on this node",               false},
        {"{\"rootfs\": \"%s/layout\"}",                             "has no default command",                    false},
        {"{\"rootfs\": \"%s\", \"command\": [\"x\"]}",              "must not contain the agent's state folder", false},
        {"{\"image\": \"oci:%s/layout:1\"}",                        "never runs as root",                        true },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct instance_user user = someone();
        char text[512];
        const char *blank = strstr(rows[i].config, "%s");
        (void)snprintf(text, sizeof text, "%.*s%s%s", blank ? (int)(blank - rows[i].config) : 1000, rows[i].config,
                       blank ? k->folder.path : "", blank ? blank + 2 : "");
        if (rows[i].as_root)
            user.uid = 0;
        CLEANUP(json) json_t *config = json_of("%s", text);
        const struct bundle_options options = {.user = &user};
        assert_int_equal(instance_dir_create(k->state_dir, i + 1, "{}", &k->err), 0);
        int rc = bundle_make(k->state_dir, i + 1, config, &options, &k->err);
        if (rc >= 0 || !strstr(k->err.text, rows[i].want))
            fail_msg("%s: %s", text, k->err.text);
        assert_int_equal(mounts_below_count(k->folder.path), 0);
        (void)snprintf(text, sizeof text, "state/instances/%zu/bundle", i + 1);
        assert_int_equal(access(folder_at(&k->folder, text), F_OK), -1);
    }
}

/* Prints a duration for information; asserts nothing about it. */
static void bundle_duration_is_printed(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    image_make(k);
    const struct instance_user user = someone();
    const struct bundle_options options = {.user = &user};
    enum { TURNS = 10 };
    for (size_t r = 0; r < ROWS(runtimes); r++) {
        char path[PATH_MAX];
        if (tool_find(runtimes[r], path) < 0)
            continue;
        int64_t made = 0, ran = 0, ended = 0;
        for (size_t i = 0; i < TURNS; i++) {
            uint64_t id = (uint64_t)getpid() * 100 + r * TURNS + i;
            CLEANUP(json) json_t *config = config_of(k, "true");
            assert_int_equal(instance_dir_create(k->state_dir, id, "{}", &k->err), 0);
            int64_t t0 = steady_ns();
            assert_int_equal(image_ensure(k->state_dir, config, &k->err), 0);
            assert_int_equal(bundle_make(k->state_dir, id, config, &options, &k->err), 0);
            int64_t t1 = steady_ns();
            assert_int_equal(run(k, runtimes[r], id, NULL), 0);
            int64_t t2 = steady_ns();
            end(k, id);
            made += t1 - t0;
            ran += t2 - t1;
            ended += steady_ns() - t2;
        }
        print_message("%s: bundle %.1f ms, run of `true` to its end %.1f ms, clean-up %.1f ms\n", runtimes[r],
                      (double)made / TURNS / 1e6, (double)ran / TURNS / 1e6, (double)ended / TURNS / 1e6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(config_json_is_generated),
        cmocka_unit_test(devices_are_created_and_allowed),
        cmocka_unit_test(invalid_configurations_are_rejected),
        cmocka_unit_test_setup_teardown(container_runs_as_owner_without_capabilities, image_kit_setup,
                                        image_kit_teardown),
        cmocka_unit_test_setup_teardown(image_command_is_the_default, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(cgroup_limits_hold_during_and_after_container, image_kit_setup,
                                        image_kit_teardown),
        cmocka_unit_test_setup_teardown(leftovers_of_crash_are_removed, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(failed_bundle_leaves_nothing, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(bundle_duration_is_printed, image_kit_setup, image_kit_teardown),
    };
    return cmocka_run_group_tests(tests, surroundings, NULL);
}
