/* bundle_userns_test.c - containers in user namespaces with real runtimes: ids inside and outside, and access rights.
 */
#include "machine/container/bundle_kit_test.h"

#include <grp.h>
#include <sys/wait.h>
#include <time.h>

#include "machine/container/bundle_gate.h"

enum { UID = 61234, GID = 61235, GROUP = 61236, STRANGER = 61299 };

static struct instance_user someone(void)
{
    struct instance_user u = {.name = "ann", .uid = UID, .gid = GID, .groups_len = 1};
    u.groups[0] = GROUP;
    u.uids = u.gids = user_range_of_slot(5);
    return u;
}

/* Maps a uid of the container to the node's. */
static uint32_t outside(uint32_t inside)
{
    return user_range_of_slot(5).first + inside - 1;
}

/* Makes the image `name` with the configured user `user`. */
static void image_of(struct image_kit *k, const char *name, const char *user)
{
    struct berth_err err;
    struct str layers[2] = {{0}, {0}};
    char digest[72], words[128];
    if (userns_check(&err) < 0) {
        print_message("skip: %s\n", err.text);
        skip();
    }
    if (!busybox_layer(&layers[0])) {
        print_message("skip: there is no busybox\n");
        skip();
    }
    static const struct entry entries[] = {
        {.type = '0', .name = "etc/passwd", .mode = 0644, .data = "root:x:0:0::/:/bin/sh\nweb:x:33:34::/:/bin/sh\n"},
        {.type = '0', .name = "etc/group",  .mode = 0644, .data = "root:x:0:\nweb:x:34:\nmore:x:40:a,web\n"        },
        {.type = '5', .name = "srv/",       .mode = 0700, .uid = 33,                                                 .gid = 34},
        {.type = '0',           .name = "srv/own",                     .mode = 0600,      .data = "web's",                               .uid = 33, .gid = 34},
        {.type = '0',  .name = "etc/hidden",             .mode = 0600,                         .data = "root's"                                         },
    };
    for (size_t i = 0; i < ROWS(entries); i++)
        tar_add(&layers[1], &entries[i]);
    tar_end(&layers[1]);
    (void)snprintf(words, sizeof words, "\"Cmd\":[\"/bin/sh\"],\"User\":\"%s\"", user);
    layout_put(folder_at(&k->folder, name), "1", layers, 2, words, digest);
    str_done(&layers[0]);
    str_done(&layers[1]);
    assert_int_equal(chmod(k->folder.path, 0711), 0); /* owners may pass */
    CLEANUP(json) json_t *config = json_of("{\"image\": \"oci:%s/%s:1\"}", k->folder.path, name);
    if (image_ensure(k->state_dir, config, &k->err) < 0)
        fail_msg("%s", k->err.text);
}

struct said {
    char why[512];
};

static void plain_note(void *ctx, const char *why)
{
    struct said *said = ctx;
    (void)snprintf(said->why, sizeof said->why, "%s", why);
}

static int make_of(struct image_kit *k, const char *name, uint64_t id, const char *command,
                   const struct bundle_options *options)
{
    CLEANUP(json)
    json_t *config =
        json_of("{\"image\": \"oci:%s/%s:1\", \"workload\": \"web\", \"ordinal\": 2}", k->folder.path, name);
    (void)json_object_set_new(config, "command", json_pack("[s, s, s]", "/bin/sh", "-c", command));
    assert_int_equal(instance_dir_create(k->state_dir, id, "{}", &k->err), 0);
    return bundle_make(k->state_dir, id, config, options, &k->err);
}

/* With each runtime: makes the container, runs it, and compares the output. `look` (may be NULL) is called before its
 * removal. */
static void each_runtime(struct image_kit *k, const char *name, const char *command,
                         const struct bundle_options *options, const char *want,
                         void (*look)(struct image_kit *k, uint64_t id))
{
    for (size_t i = 0; i < ROWS(runtimes); i++) {
        CLEANUP(str) struct str out = {0};
        struct said said = {""};
        struct bundle_options o = *options;
        uint64_t id = (uint64_t)getpid() * 100 + i;
        char path[PATH_MAX];
        o.user_namespace = true;
        o.plain = plain_note;
        o.ctx = &said;
        if (tool_find(runtimes[i], path) < 0) {
            print_message("skip: there is no %s\n", runtimes[i]);
            continue;
        }
        if (make_of(k, name, id, command, &o) < 0)
            fail_msg("%s", k->err.text);
        if (*said.why)
            fail_msg("no user namespace: %s", said.why);
        if (run(k, runtimes[i], id, &out) < 0)
            fail_msg("%s: %s\n%s", runtimes[i], k->err.text, str_text(&out));
        if (strcmp(str_text(&out), want) != 0)
            fail_msg("%s says:\n%s\nnot:\n%s", runtimes[i], str_text(&out), want);
        if (look)
            look(k, id);
        end(k, id);
        (void)snprintf(path, sizeof path, "state/roots/%" PRIu64, id);
        assert_int_equal(access(folder_at(&k->folder, path), F_OK), -1);
    }
}

static void owner_is(struct image_kit *k, uint64_t id, const char *name, uint32_t uid, uint32_t gid)
{
    char path[256];
    struct stat st;
    (void)snprintf(path, sizeof path, "state/instances/%" PRIu64 "/bundle/upper/%s", id, name);
    assert_int_equal(lstat(folder_at(&k->folder, path), &st), 0);
    assert_int_equal(st.st_uid, uid);
    assert_int_equal(st.st_gid, gid);
}

/* ---- users and groups ------------------------------------------------------------------------------------------- */

static void look_at_files(struct image_kit *k, uint64_t id)
{
    owner_is(k, id, "etc/x", UID, GID);
    owner_is(k, id, "tmp/x", outside(33), outside(44));
    owner_is(k, id, "tmp/y", outside(33), outside(34));
    owner_is(k, id, "srv/own", outside(33), outside(34)); /* copied up by the overlay, still owned by web */
}

static void container_root_is_mapped_to_owner(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    image_of(k, "layout", "");
    const struct instance_user user = someone();
    const struct bundle_options options = {.user = &user};
    static const char script[] =
        "PATH=/bin; busybox id -u; busybox id -G; touch /etc/x && echo etc; touch /tmp/x && busybox chown 33:44 /tmp/x && "
        "busybox stat -c '%u:%g' /tmp/x /srv/own /etc/hidden; cat /srv/own /etc/hidden; echo; echo more >>/srv/own; "
        "busybox su -s /bin/sh web -c 'id -u; id -G; touch /tmp/y; cat /srv/own; cat /etc/hidden' 2>/dev/null; "
        "busybox grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status; "
        "(mount -t tmpfs x /tmp) 2>/dev/null && echo BAD; (busybox unshare -U true) 2>/dev/null && echo BAD; "
        "(busybox mknod /tmp/null c 1 3) 2>/dev/null && echo BAD; (echo 1 >/proc/sys/kernel/panic) 2>/dev/null && echo BAD; "
        "(touch /sys/x) 2>/dev/null && echo BAD; ls /sys/class >/dev/null && echo sys; echo x >/dev/null && echo null; "
        "(busybox chown 70000 /tmp/x) 2>/dev/null && echo BAD; ls /dev/pts /dev/mqueue /dev/shm >/dev/null && echo dev";
    static const char want[] = "0\n0 65536\netc\n33:44\n33:34\n0:0\nweb'sroot's\n"
                               "33\n34 40\nweb'smore\n"
                               "CapInh:\t0000000000000000\nCapPrm:\t00000000000001fb\nCapEff:\t00000000000001fb\n"
                               "CapBnd:\t00000000000001fb\nCapAmb:\t0000000000000000\nNoNewPrivs:\t1\nSeccomp:\t2\n"
                               "sys\nnull\ndev\n";
    each_runtime(k, "layout", script, &options, want, look_at_files);
}

static void container_runs_as_image_user(void **state)
{
    struct image_kit *k = *state;
    static const struct {
        const char *user, *says;
    } rows[] = {
        {"web",    "33\n34\n34 40 65536\n"},
        {"33:40",  "33\n40\n40 65536\n"   },
        {"1000",   "1000\n0\n0 65536\n"   },
        {"0:more", "0\n40\n40 65536\n"    },
    };
    NEEDS("umoci");
    const struct instance_user user = someone();
    const struct bundle_options options = {.user = &user};
    for (size_t i = 0; i < ROWS(rows); i++) {
        char name[32], want[160];
        (void)snprintf(name, sizeof name, "layout%zu", i);
        image_of(k, name, rows[i].user);
        /* A user other than root has no capabilities. */
        (void)snprintf(want, sizeof want, "%sCapEff:\t%s\n", rows[i].says,
                       strncmp(rows[i].user, "0", 1) == 0 ? "00000000000001fb" : "0000000000000000");
        each_runtime(k, name,
                     /* sorted, because the kernel sorts groups by their ids on the node */
                     "PATH=/bin; id -u; id -g; id -G | busybox xargs -n 1 | busybox sort -n | busybox xargs; "
                     "busybox grep CapEff: /proc/self/status",
                     &options, want, NULL);
    }
}

static void unknown_image_user_is_an_error(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    image_of(k, "layout", "nobody-here");
    const struct instance_user user = someone();
    const struct bundle_options options = {.user = &user, .user_namespace = true};
    assert_int_equal(make_of(k, "layout", 1, "true", &options), -EINVAL);
    assert_non_null(strstr(k->err.text, "'nobody-here', which is not in its /etc/passwd"));
    assert_int_equal(mounts_below_count(k->folder.path), 0);
    assert_int_equal(access(folder_at(&k->folder, "state/roots/1"), F_OK), -1);
}

/* ---- mounts and devices ----------------------------------------------------------------------------------------- */

static void folder_give(struct image_kit *k, const char *name, mode_t mode, uid_t uid, gid_t gid)
{
    assert_int_equal(chmod(folder_at(&k->folder, name), mode), 0);
    assert_int_equal(chown(folder_at(&k->folder, name), uid, gid), 0);
}

static void look_at_volume(struct image_kit *k, uint64_t id)
{
    struct stat st;
    (void)id;
    /* Whatever user the container runs as, its files belong to its owner on the node. */
    assert_int_equal(stat(folder_at(&k->folder, "volume/mine"), &st), 0);
    assert_int_equal(st.st_uid, UID);
    assert_int_equal(st.st_gid, GID);
    assert_int_equal(unlink(folder_at(&k->folder, "volume/mine")), 0);
}

static void mounts_belong_to_container_user(void **state)
{
    struct image_kit *k = *state;
    static const char *const users[] = {"", "web"};
    NEEDS("umoci");
    folder_put(&k->folder, "volume/kept", "kept");
    folder_put(&k->folder, "secret", "pst");
    folder_put(&k->folder, "node/closed", "root's");
    folder_put(&k->folder, "node/open", "all's");
    folder_give(k, "volume", 0700, UID, GID);
    folder_give(k, "volume/kept", 0600, UID, GID);
    folder_give(k, "secret", 0400, UID, GID);
    folder_give(k, "node/closed", 0600, 0, 0);
    folder_put(&k->folder, "node/group", "group's");
    folder_give(k, "node/group", 0640, 0, GROUP);
    const struct instance_user user = someone();
    char volume[128], secret[128], node[128];
    (void)snprintf(volume, sizeof volume, "%s/volume", k->folder.path);
    (void)snprintf(secret, sizeof secret, "%s/secret", k->folder.path);
    (void)snprintf(node, sizeof node, "%s/node", k->folder.path);
    const struct launch_mount mounts[] = {
        {volume,  "/volume",     NULL,    NULL,                                       false},
        {secret,  "/run/secret", NULL,    NULL,                                       true },
        {node,    "/node",       NULL,    NULL,                                       false},
        {"tmpfs", "/scratch",    "tmpfs", "size=65536,mode=0700,uid=61234,gid=61235", false},
    };
    const struct bundle_options options = {.user = &user, .mounts = mounts, .mounts_len = ROWS(mounts)};
    static const char script[] =
        "PATH=/bin; cat /volume/kept /run/secret; echo; echo x >/volume/mine && echo wrote; echo x >/scratch/x && echo scratch; "
        "busybox stat -c '%a' /volume /scratch; cat /node/open /node/group; echo; (cat /node/closed) 2>/dev/null && echo BAD; "
        "(echo x >/node/open) 2>/dev/null && echo BAD; (touch /node/new) 2>/dev/null && echo BAD; "
        "(busybox chown 0 /node/closed) 2>/dev/null && echo BAD; (busybox chmod 777 /node) 2>/dev/null && echo BAD; "
        "(echo x >/run/secret) 2>/dev/null && echo BAD; busybox grep -E ' /(volume|node) ' /proc/mounts | "
        "busybox grep -c nosuid,nodev";
    for (size_t i = 0; i < ROWS(users); i++) {
        image_of(k, i ? "layout1" : "layout0", users[i]);
        each_runtime(k, i ? "layout1" : "layout0", script, &options,
                     "keptpst\nwrote\nscratch\n700\n700\nall'sgroup's\n2\n", look_at_volume);
    }
}

static void devices_and_huge_pages_work_in_userns(void **state)
{
    struct image_kit *k = *state;
    static const char *const users[] = {"", "web"};
    static const struct nvml_file files[] = {
        {"/dev/acme0", 1, 3},
    };
    char text[4096] = "";
    NEEDS("umoci");
    FILE *f = fopen("/proc/filesystems", "re");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    (void)fclose(f);
    bool pages = strstr(text, "hugetlbfs");
    if (!pages)
        print_message("skip: the kernel has no hugetlbfs\n");
    const struct instance_user user = someone();
    const struct launch_mount mount = {.source = "hugetlbfs",
                                       .target = "/mnt/pages",
                                       .type = "hugetlbfs",
                                       .data = "pagesize=2097152,size=4194304,mode=0700,uid=61234,gid=61235"};
    char group[64];
    (void)snprintf(group, sizeof group, "/berth-userns-test-%d", (int)getpid());
    const struct bundle_options options = {.user = &user,
                                           .cgroup_path = group,
                                           .mounts = &mount,
                                           .mounts_len = pages,
                                           .devices = files,
                                           .devices_len = ROWS(files)};
    static const char script[] =
        "PATH=/bin; echo x >/dev/acme0 && echo device; busybox stat -c '%a %t:%T' /dev/acme0; echo x >/dev/null && echo null; "
        "[ ! -d /mnt/pages ] && exit; touch /mnt/pages/x && echo pages; busybox stat -c '%a' /mnt/pages";
    for (size_t i = 0; i < ROWS(users); i++) {
        image_of(k, i ? "layout1" : "layout0", users[i]);
        each_runtime(k, i ? "layout1" : "layout0", script, &options,
                     pages ? "device\n666 1:3\nnull\npages\n700\n" : "device\n666 1:3\nnull\n", NULL);
    }
}

/* ---- access through the gate ------------------------------------------------------------------------------------ */

enum { PASSES = 1, LISTS = 2, WRITES = 4 };

/* Returns what a user of the node can do with the directory. */
static int rights(const char *gate, const char *below, uid_t uid, gid_t gid)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        char path[600];
        struct stat st;
        int may = 0;
        if (setgroups(0, NULL) || setresgid(gid, gid, gid) || setresuid(uid, uid, uid))
            _exit(99);
        (void)snprintf(path, sizeof path, "%s/%s", gate, below);
        may |= stat(path, &st) == 0 ? PASSES : 0;
        may |= open(gate, O_RDONLY | O_DIRECTORY | O_CLOEXEC) >= 0 ? LISTS : 0;
        (void)snprintf(path, sizeof path, "%s/new", gate);
        may |= mkdir(path, 0700) == 0 || chmod(gate, 0777) == 0 ? WRITES : 0;
        _exit(may);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static void gate_is_closed_to_other_users(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    image_of(k, "layout", "");
    const struct instance_user user = someone();
    const struct bundle_options options = {.user = &user, .user_namespace = true};
    if (make_of(k, "layout", 7, "true", &options) < 0)
        fail_msg("%s", k->err.text);
    const char *gate = folder_at(&k->folder, "state/roots/7");
    assert_int_equal(rights(gate, "rootfs/bin/busybox", UID, GID), PASSES);
    assert_int_equal(rights(gate, "rootfs/bin/busybox", STRANGER, STRANGER), 0);
    assert_int_equal(rights(gate, "rootfs/bin/busybox", STRANGER, GID), 0);
    assert_int_equal(rights(gate, "rootfs/bin/busybox", outside(33), outside(34)), 0);
    assert_int_equal(rights(folder_at(&k->folder, "state/instances/7/bundle"), "rootfs", UID, GID), 0);
    /* After a crash of the agent here, the next one creates the bundle again. */
    CLEANUP(json) json_t *config = json_of("{\"image\": \"oci:%s/layout:1\"}", k->folder.path);
    if (bundle_make(k->state_dir, 7, config, &options, &k->err) < 0)
        fail_msg("%s", k->err.text);
    end(k, 7);
}

/* ---- without user namespaces ------------------------------------------------------------------------------------ */

/* Runs the container as its owner, as without user namespaces, and checks the reported reason. */
static void runs_plain(struct image_kit *k, const char *name, const struct instance_user *user, const char *want_why)
{
    CLEANUP(str) struct str out = {0};
    struct said said = {""};
    const char *runtime = oci_runtime_find();
    const struct bundle_options options = {.user = user, .user_namespace = true, .plain = plain_note, .ctx = &said};
    uint64_t id = (uint64_t)getpid() * 100;
    if (!runtime) {
        print_message("skip: there is neither crun nor runc\n");
        skip();
        return;
    }
    if (make_of(k, name, id, "id -u; busybox grep CapEff: /proc/self/status; touch /tmp/x && echo tmp", &options) < 0)
        fail_msg("%s", k->err.text);
    if (!strstr(said.why, want_why))
        fail_msg("'%s' is not '%s'", said.why, want_why);
    if (run(k, runtime, id, &out) < 0)
        fail_msg("%s", k->err.text);
    assert_string_equal(str_text(&out), "61234\nCapEff:\t0000000000000000\ntmp\n");
    end(k, id);
}

static void without_userns_container_runs_as_owner(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    image_of(k, "root", "");
    image_of(k, "web", "web");
    image_of(k, "far", "100000");
    struct instance_user user = someone();
    runs_plain(k, "far", &user, "user 100000:0 is not in the UID range");
    /* An account without ranges in /etc/subuid has a namespace with one user. */
    user.uids = user.gids = (struct user_range){0};
    runs_plain(k, "web", &user, "user 33:34 is not in the UID range");
    const struct bundle_options options = {.user = &user};
    each_runtime(k, "root",
                 "id -u; id -G; touch /etc/x && echo etc; (busybox chown 1 /etc/x) 2>/dev/null && echo BAD; "
                 "busybox stat -c %u /srv",
                 &options, "0\n0 65536\netc\n65534\n", NULL);
    user = someone();
    user.gid = 0;
    runs_plain(k, "root", &user, "is root's");
    user = someone();
    assert_int_equal(chmod(k->folder.path, 0700), 0);
    runs_plain(k, "root", &user, "is not accessible to others");
    assert_int_equal(chmod(k->folder.path, 0711), 0);
    user.uids.first = UID; /* the kernel rejects such a map */
    runs_plain(k, "root", &user, "cannot create a user namespace");
}

/* Images are on an overlay, a file system without support for mapped ids. */
static void unsupported_file_system_disables_userns(void **state)
{
    struct image_kit *k = *state;
    char options[512];
    NEEDS("umoci");
    folder_make(&k->folder, "lower");
    folder_make(&k->folder, "upper");
    folder_make(&k->folder, "work");
    (void)snprintf(options, sizeof options, "lowerdir=%s/lower,upperdir=%s/upper,workdir=%s/work", k->folder.path,
                   k->folder.path, k->folder.path);
    if (mount("berth-test", folder_at(&k->folder, "state/images"), "overlay", 0, options) < 0) {
        print_message("skip: there is no overlay here\n");
        skip();
    }
    image_of(k, "layout", "web");
    const struct instance_user user = someone();
    CLEANUP(str) struct str out = {0};
    struct said said = {""};
    const struct bundle_options plain = {.user = &user, .user_namespace = true, .plain = plain_note, .ctx = &said};
    const char *runtime = oci_runtime_find();
    if (!runtime) {
        print_message("skip: there is neither crun nor runc\n");
        skip();
        return;
    }
    uint64_t id = (uint64_t)getpid() * 100;
    if (make_of(k, "layout", id, "id -u", &plain) < 0)
        fail_msg("%s", k->err.text);
    if (!*said.why) /* a kernel that supports it */
        print_message("skip: this kernel sees an overlay through a namespace\n");
    else
        assert_non_null(strstr(said.why, "does not support ID-mapped mounts"));
    if (run(k, runtime, id, &out) < 0)
        fail_msg("%s", k->err.text);
    assert_string_equal(str_text(&out), *said.why ? "61234\n" : "33\n");
    assert_int_equal(bundle_end(k->state_dir, id, &k->err), 0);
    assert_int_equal(mounts_below_count(folder_at(&k->folder, "state/instances")), 0);
    assert_int_equal(mounts_below_count(folder_at(&k->folder, "state/roots")), 0);
}

/* For a container from a directory of the node, files of root stay root's. */
static void rootfs_directory_gets_no_userns(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    image_of(k, "layout", "");
    const struct instance_user user = someone();
    const struct bundle_options options = {.user = &user, .user_namespace = true};
    folder_make(&k->folder, "root/etc");
    CLEANUP(json) json_t *config = json_of("{\"rootfs\": \"%s/root\", \"command\": [\"/bin/x\"]}", k->folder.path);
    assert_int_equal(instance_dir_create(k->state_dir, 9, "{}", &k->err), 0);
    if (bundle_make(k->state_dir, 9, config, &options, &k->err) < 0)
        fail_msg("%s", k->err.text);
    CLEANUP(json)
    json_t *made = json_load_file(folder_at(&k->folder, "state/instances/9/bundle/config.json"), 0, NULL);
    assert_int_equal(
        json_integer_value(json_object_get(json_object_get(json_object_get(made, "process"), "user"), "uid")), UID);
    assert_null(json_object_get(json_object_get(made, "linux"), "uidMappings"));
    assert_int_equal(access(folder_at(&k->folder, "state/roots/9"), F_OK), -1);
    end(k, 9);
}

static int64_t steady_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

/* Prints durations for information; asserts nothing about them. */
static void userns_duration_is_printed(void **state)
{
    struct image_kit *k = *state;
    enum { TURNS = 10, WAYS = 3 };
    static const char *const ways[WAYS] = {"none", "as root", "as another user"};
    NEEDS("umoci");
    image_of(k, "root", "");
    image_of(k, "web", "web");
    const struct instance_user user = someone();
    for (size_t r = 0; r < ROWS(runtimes) * WAYS; r++) {
        const struct bundle_options options = {.user = &user, .user_namespace = r % WAYS != 0};
        int64_t made = 0, ran = 0, ended = 0;
        char path[PATH_MAX];
        if (tool_find(runtimes[r / WAYS], path) < 0)
            continue;
        for (size_t i = 0; i < TURNS; i++) {
            uint64_t id = (uint64_t)getpid() * 100 + r * TURNS + i;
            int64_t t0 = steady_ns();
            assert_int_equal(make_of(k, r % WAYS == 2 ? "web" : "root", id, "true", &options), 0);
            int64_t t1 = steady_ns();
            assert_int_equal(run(k, runtimes[r / WAYS], id, NULL), 0);
            int64_t t2 = steady_ns();
            end(k, id);
            made += t1 - t0;
            ran += t2 - t1;
            ended += steady_ns() - t2;
        }
        print_message("%s, namespace %s: bundle %.1f ms, run of `true` to its end %.1f ms, clean-up %.1f ms\n",
                      runtimes[r / WAYS], ways[r % WAYS], (double)made / TURNS / 1e6, (double)ran / TURNS / 1e6,
                      (double)ended / TURNS / 1e6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(container_root_is_mapped_to_owner, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(container_runs_as_image_user, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(unknown_image_user_is_an_error, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(mounts_belong_to_container_user, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(devices_and_huge_pages_work_in_userns, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(gate_is_closed_to_other_users, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(without_userns_container_runs_as_owner, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(unsupported_file_system_disables_userns, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(rootfs_directory_gets_no_userns, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(userns_duration_is_printed, image_kit_setup, image_kit_teardown),
    };
    return cmocka_run_group_tests(tests, surroundings, NULL);
}
