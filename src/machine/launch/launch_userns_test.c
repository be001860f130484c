/* launch_userns_test.c - containers in user namespaces under a shim: users of their processes on the node, inherited
 * descriptors, programs beside them.
 */
#include "machine/container/bundle_kit_test.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "machine/container/bundle_gate.h"

enum { UID = 61234, GID = 61235 };

static struct instance_user someone(void)
{
    struct instance_user u = {.name = "ann", .uid = UID, .gid = GID};
    u.uids = u.gids = user_range_of_slot(6);
    return u;
}

static const char *shim_path(void)
{
    static char path[PATH_MAX];
    const char *build = getenv("BERTH_BUILD");
    (void)snprintf(path, sizeof path, "%s/src/shim/berth-shim", build ? build : "build/gcc");
    return path;
}

/* Makes an image with user 33. */
static void web_image(struct image_kit *k)
{
    struct str layer = {0};
    struct berth_err err;
    char digest[72];
    if (userns_check(&err) < 0) {
        print_message("skip: %s\n", err.text);
        skip();
    }
    if (!busybox_layer(&layer)) {
        print_message("skip: there is no busybox\n");
        skip();
    }
    layout_put(folder_at(&k->folder, "layout"), "1", &layer, 1, "\"User\":\"33:34\",\"Env\":[\"PATH=/bin\"]", digest);
    str_done(&layer);
    assert_int_equal(chmod(k->folder.path, 0711), 0); /* owners may pass */
    CLEANUP(json) json_t *config = json_of("{\"image\": \"oci:%s/layout:1\"}", k->folder.path);
    if (image_ensure(k->state_dir, config, &k->err) < 0)
        fail_msg("%s", k->err.text);
}

static struct launch_result start(struct image_kit *k, const char *runtime, uint64_t id, const char *command)
{
    static char bundle[STATE_PATH_MAX];
    static const char *const none[] = {NULL};
    const struct instance_user user = someone();
    const struct bundle_options options = {.user = &user, .user_namespace = true};
    struct launch_result run = {.pidfd = -1};
    make(k, id, command, &options);
    assert_int_equal(instance_dir_path(k->state_dir, id, "bundle", bundle), 0);
    const struct launch l = {.id = id,
                             .shim = shim_path(),
                             .argv = none,
                             .env = none,
                             .uid = UID,
                             .gid = GID,
                             .runtime = runtime,
                             .bundle = bundle};
    if (launch_start(k->state_dir, &l, &run, &k->err) < 0)
        fail_msg("%s: %s", runtime, k->err.text);
    bundle_started(k->state_dir, id);
    /* the gate is unmounted while the container runs */
    assert_int_equal(mounts_below_count(folder_at(&k->folder, "state/roots")), 0);
    return run;
}

static void wait_end(struct image_kit *k, struct launch_result *run, uint64_t id)
{
    struct pollfd gone = {.fd = run->pidfd, .events = POLLIN};
    assert_int_equal(poll(&gone, 1, 60 * 1000), 1);
    assert_int_equal(close(run->pidfd), 0);
    end(k, id);
    assert_int_equal(rmdir(folder_at(&k->folder, "state/roots")), 0); /* it is empty */
    assert_int_equal(mkdir(folder_at(&k->folder, "state/roots"), 0711), 0);
}

/* Waits until a file of the agent contains this text; fails after a minute. */
static void expect(struct image_kit *k, const char *format, uint64_t id, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof path, format, id);
    for (int i = 0; i < 12000; i++) {
        if (strstr(folder_get(&k->folder, path), text))
            return;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    fail_msg("no '%s' in %s: %s", text, path, folder_get(&k->folder, path));
}

/* Checks an id of a process as seen on the node: "Uid:\t61234\t..." */
static void status_has(pid_t pid, const char *name, unsigned id)
{
    char path[64], text[8192] = "", want[128];
    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    (void)fclose(f);
    (void)snprintf(want, sizeof want, "%s:\t%u\t%u\t%u\t%u\n", name, id, id, id, id);
    if (!strstr(text, want))
        fail_msg("no '%s' in:\n%s", want, text);
}

/* Runs a program beside the container and compares its output. */
static void beside(struct image_kit *k, uint64_t id, enum exec_stdio kind, const char *command, const char *want)
{
    const char *const argv[] = {"/bin/sh", "-c", command, NULL};
    CLEANUP(str) struct str out = {0};
    struct exec_process b;
    siginfo_t info;
    char buf[512];
    ssize_t n;
    if (exec_process_start(k->state_dir, id, argv, NULL, kind, 24, 80, &b, &k->err) < 0)
        fail_msg("%s", k->err.text);
    while ((n = read(b.out, buf, sizeof buf)) > 0)
        str_add_bytes(&out, buf, (size_t)n);
    while (kind == EXEC_PIPES && (n = read(b.err, buf, sizeof buf)) > 0)
        str_add_bytes(&out, buf, (size_t)n);
    assert_int_equal(waitid(P_PIDFD, (id_t)b.pidfd, &info, WEXITED), 0);
    exec_process_close(&b);
    if (!strstr(str_text(&out), want))
        fail_msg("no '%s' in '%s'", want, str_text(&out));
}

static void container_processes_have_owner_ids(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    web_image(k);
    uint32_t web = user_range_of_slot(6).first + 33 - 1;
    for (size_t i = 0; i < ROWS(runtimes); i++) {
        char runtime[PATH_MAX];
        uint64_t id = (uint64_t)getpid() * 100 + i;
        if (tool_find(runtimes[i], runtime) < 0) {
            print_message("skip: there is no %s\n", runtimes[i]);
            continue;
        }
        /* The container can open its output by name, as many images do for their logs. */
        struct launch_result run = start(k, runtime, id,
                                         "echo half >&$BERTH_PROGRESS_FD; echo by name >/dev/stdout; "
                                         "echo again >/proc/self/fd/2; id -u; exec sleep 1000");
        expect(k, "state/logs/%" PRIu64 "/log", id, "by name\nagain\n33\n");
        expect(k, "state/instances/%" PRIu64 "/progress", id, "half");
        status_has(run.pid, "Uid", web);
        status_has(run.pid, "Gid", web + 1);
        beside(
            k, id, EXEC_PIPES,
            "id -u; id -g; [ $(busybox readlink /proc/self/ns/user) = $(busybox readlink /proc/1/ns/user) ] && echo same",
            "33\n34\nsame\n");
        beside(k, id, EXEC_TERMINAL, "busybox tty -s && id -u", "33\r"); /* runc may double the CR */
        assert_int_equal(kill(run.pid, SIGKILL), 0);
        wait_end(k, &run, id);
    }
}

/* Users of a container have no rights on the node, and its root is the owner: neither can access the node's files or
 * another owner's. */
static void owners_cannot_access_each_other(void **state)
{
    (void)state;
    const struct instance_user ann = someone();
    struct instance_user bob = {.name = "bob", .uid = UID + 1, .gid = GID + 1};
    struct userns_maps a, b;
    bob.uids = bob.gids = user_range_of_slot(7);
    userns_maps_of(&ann, &a);
    userns_maps_of(&bob, &b);
    for (uint32_t inside = 0; inside < 65536; inside++) {
        uint32_t out, in;
        assert_true(id_map_out(&a.uids, inside, &out));
        assert_false(id_map_in(&b.uids, out, &in));
        assert_true(id_map_out(&a.gids, inside, &out));
        assert_false(id_map_in(&b.gids, out, &in));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(container_processes_have_owner_ids, image_kit_setup, image_kit_teardown),
        cmocka_unit_test(owners_cannot_access_each_other),
    };
    return cmocka_run_group_tests(tests, surroundings, NULL);
}
