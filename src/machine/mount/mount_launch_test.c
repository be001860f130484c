/* mount_launch_test.c - mounts as seen by a process and by a container under a shim: content, changes while they run,
 * and hostile links in a volume.
 */
#include "machine/mount/mount.h"

#include "machine/image/image_kit_test.h"
#include "machine/launch/launch_kit_test.h"

#include <sched.h>
#include <sys/mount.h>

#include "machine/image/image.h"
#include "wire/text/document.h"

enum { UID = 61234, GID = 61235 };

static const struct instance_user someone = {.name = "ann", .uid = UID, .gid = GID};

static const char *secret_of(void *ctx, const char *secret, const char *key)
{
    (void)secret, (void)key;
    return ctx;
}

/* Builds a configuration with every kind of mount, at paths in the test's directory; `level` is a setting. */
static json_t *config_of(const struct kit *k, const char *image, int level)
{
    return json_of(
        "{\"workload\": \"web\", \"ordinal\": 0, %s \"settings\": {\"level\": %d}, \"mounts\": ["
        "{\"path\": \"%s/in/data\", \"volume\": \"maps\"}, {\"path\": \"%s/in/scratch\", \"tmpfs\": \"1Mi\"}, "
        "{\"path\": \"%s/in/given\", \"bind\": \"%s/given\", \"read_only\": true}], \"files\": ["
        "{\"path\": \"%s/in/conf/app\", \"text\": \"conf %d\\n\"}, "
        "{\"path\": \"%s/in/key/password\", \"secret\": \"db\", \"key\": \"password\"}]}",
        image, level, k->root, k->root, k->root, k->root, k->root, level, k->root);
}

/* Reads everything, tries to write to read-only mounts, and waits until its settings change. */
static const char script[] =
    "cd %s/in; cat $BERTH_SETTINGS conf/app key/password given/text; echo; touch data/mine scratch/mine && echo wrote; "
    "(echo x >conf/app) 2>/dev/null && echo BAD; (echo x >given/text) 2>/dev/null && echo BAD; "
    "(touch key/more) 2>/dev/null && echo BAD; (echo x >$BERTH_SETTINGS) 2>/dev/null && echo BAD; "
    "echo ready; n=0; while ! grep -q '4' $BERTH_SETTINGS && [ $n -lt 600 ]; do n=$((n+1)); sleep 0.1; done; "
    "cat $BERTH_SETTINGS conf/app key/password; echo; echo end";

static const char want[] =
    "{\n  \"level\": 3\n}\nconf 3\nhunter2given\nwrote\nready\n{\n  \"level\": 4\n}\nconf 4\nother\nend\n";

static void put_text(const struct kit *k, const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/%s", k->root, name);
    bytes_write(path, text, strlen(text));
    assert_int_equal(chmod(path, 0644), 0);
}

static void see(struct kit *k, struct launch *l, const char *image)
{
    struct berth_err err;
    struct arena arena;
    struct launch_mount *mounts = NULL;
    size_t mounts_len = 0;
    const char **env = NULL;
    CLEANUP(json) json_t *config = config_of(k, image, 3), *next = config_of(k, image, 4);
    char text[2048], bundle[STATE_PATH_MAX];

    arena_init(&arena);
    (void)snprintf(text, sizeof text, script, k->root);
    l->id = (uint64_t)getpid() * 1000 + k->next++;
    assert_int_equal(instance_dir_create(k->state_dir, l->id, "{}", &err), 0);
    if (mounts_make(k->state_dir, l->id, config, &someone, secret_of, (char[]){"hunter2"}, &arena, &mounts, &mounts_len,
                    &env, &err))
        fail_msg("%s", err.text);
    k->env[1] = env[0];
    k->env[2] = NULL;
    k->argv[2] = text;
    l->uid = UID;
    l->gid = GID;
    l->mounts = mounts;
    l->mounts_len = mounts_len;
    if (l->runtime) {
        (void)json_object_set_new(config, "command", json_pack("[s, s, s]", "/bin/sh", "-c", text));
        if (bundle_make(
                k->state_dir, l->id, config,
                &(struct bundle_options){.user = &someone, .mounts = mounts, .mounts_len = mounts_len, .env = env},
                &err))
            fail_msg("%s", err.text);
        assert_int_equal(instance_dir_path(k->state_dir, l->id, "bundle", bundle), 0);
        l->bundle = bundle;
    }
    struct launch_result run;
    if (launch_start(k->state_dir, l, &run, &err))
        fail_msg("%s", err.text);
    kit_expect(k, l->id, "ready\n");
    if (mounts_change(k->state_dir, l->id, next, &someone, secret_of, (char[]){"other"}, &err))
        fail_msg("%s", err.text);
    kit_wait(&run);
    CLEANUP(mem) char *log = kit_log(k, l->id);
    assert_string_equal(log, want);
    if (bundle_end(k->state_dir, l->id, &err) || mounts_end(k->state_dir, l->id, &err) ||
        instance_dir_remove(k->state_dir, l->id, &err))
        fail_msg("%s", err.text);
    assert_int_equal(mounts_below_count(k->root), 0);
    arena_done(&arena);
}

static void prepare(struct kit *k)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s/given", k->root);
    assert_int_equal(mkdir(path, 0755), 0);
    (void)snprintf(path, sizeof path, "%s/in", k->root);
    assert_int_equal(mkdir(path, 0755), 0);
    put_text(k, "given/text", "given");
}

static void process_sees_mounts(void **state)
{
    struct kit *k = *state;
    if (geteuid() != 0) {
        print_message("skip: not root\n");
        skip();
    }
    prepare(k);
    struct launch *l = kit_script(k, "");
    see(k, l, "");
    /* The next instance gets the volume again; its mounts are not visible on the node. */
    see(k, kit_script(k, ""), "");
    char path[256];
    struct stat st;
    (void)snprintf(path, sizeof path, "%s/volumes/maps/mine", k->root);
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_uid, UID);
    (void)snprintf(path, sizeof path, "%s/in/data/mine", k->root);
    assert_int_equal(access(path, F_OK), -1);
}

static void container_sees_mounts(void **state)
{
    struct kit *k = *state;
    static const char *const runtimes[] = {"crun", "runc"};
    struct str layer = {0};
    char digest[72], layout[128], image[256];
    NEEDS("umoci");
    if (!busybox_layer(&layer)) {
        print_message("skip: there is no busybox\n");
        skip();
    }
    prepare(k);
    (void)snprintf(layout, sizeof layout, "%s/layout", k->root);
    layout_put(layout, "1", &layer, 1, "\"Cmd\":[\"/bin/sh\"]", digest);
    str_done(&layer);
    (void)snprintf(image, sizeof image, "\"image\": \"oci:%s:1\",", layout);
    CLEANUP(json) json_t *config = json_of("{\"image\": \"oci:%s:1\"}", layout);
    struct berth_err err;
    if (image_ensure(k->state_dir, config, &err))
        fail_msg("%s", err.text);
    for (size_t i = 0; i < 2; i++) {
        char path[PATH_MAX];
        if (tool_find(runtimes[i], path) < 0) {
            print_message("skip: there is no %s\n", runtimes[i]);
            continue;
        }
        struct launch *l = kit_script(k, "");
        l->runtime = path;
        see(k, l, image);
    }
}

/* An app has put a link into its volume where the next start mounts a file: nothing is created at the link's target. */
static void links_in_volume_are_not_followed(void **state)
{
    struct kit *k = *state;
    char path[256], target[256];
    struct arena arena;
    struct berth_err err;
    struct launch_mount *mounts = NULL;
    size_t mounts_len = 0;
    const char **env = NULL;
    if (geteuid() != 0) {
        print_message("skip: not root\n");
        skip();
    }
    prepare(k);
    (void)snprintf(path, sizeof path, "%s/volumes/maps", k->root);
    assert_int_equal(mkdir(path, 0700), 0);
    (void)snprintf(target, sizeof target, "%s/planted", k->root);
    (void)snprintf(path, sizeof path, "%s/volumes/maps/conf", k->root);
    assert_int_equal(symlink(target, path), 0);
    CLEANUP(json)
    json_t *config = json_of("{\"mounts\": [{\"path\": \"%s/in/data\", \"volume\": \"maps\"}], \"files\": ["
                             "{\"path\": \"%s/in/data/conf\", \"text\": \"x\"}]}",
                             k->root, k->root);
    struct launch *l = kit_script(k, "echo ran");
    arena_init(&arena);
    assert_int_equal(instance_dir_create(k->state_dir, l->id, "{}", &err), 0);
    if (mounts_make(k->state_dir, l->id, config, &someone, NULL, NULL, &arena, &mounts, &mounts_len, &env, &err))
        fail_msg("%s", err.text);
    l->mounts = mounts;
    l->mounts_len = mounts_len;
    struct launch_result run;
    assert_true(launch_start(k->state_dir, l, &run, &err) < 0);
    print_message("%s\n", err.text);
    assert_int_equal(access(target, F_OK), -1);
    assert_int_equal(mounts_end(k->state_dir, l->id, &err), 0);
    arena_done(&arena);
}

/* Creates a mount namespace in which crun works (bundle_test.c) and /run is separate. */
static int surroundings(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return 0;
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("run", "/run", "tmpfs", 0, NULL) < 0)
        return -1;
    return access("/sys/fs/cgroup/unified/cgroup.controllers", F_OK) < 0
               ? 0
               : mount("hidden", "/sys/fs/cgroup/unified", "tmpfs", 0, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(process_sees_mounts, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(container_sees_mounts, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(links_in_volume_are_not_followed, kit_setup, kit_teardown),
    };
    return cmocka_run_group_tests(tests, surroundings, NULL);
}
