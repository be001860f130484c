/* bundle_kit_test.h - for tests of containers with real runtimes: an image with busybox, its bundles, and running them.
 */
#pragma once

#include "machine/image/image_kit_test.h"

#include <sched.h>
#include <sys/mount.h>

#include "wire/text/document.h"

static const char *const runtimes[] = {"crun", "runc"};

static inline void image_make(struct image_kit *k)
{
    struct str layer = {0};
    char digest[72];
    if (!busybox_layer(&layer)) {
        print_message("skip: there is no busybox\n");
        skip();
    }
    layout_put(
        folder_at(&k->folder, "layout"), "1", &layer, 1,
        "\"Entrypoint\":[\"/bin/sh\",\"-c\"],\"Cmd\":[\"echo from the image; id -u\"],\"Env\":[\"FROM=image\"],\"User\":\"0\"",
        digest);
    str_done(&layer);
    CLEANUP(json) json_t *config = json_of("{\"image\": \"oci:%s/layout:1\"}", k->folder.path);
    if (image_ensure(k->state_dir, config, &k->err) < 0)
        fail_msg("%s", k->err.text);
}

/* `command`: for sh -c; NULL: the image's default. */
static inline json_t *config_of(struct image_kit *k, const char *command)
{
    json_t *config = json_of("{\"image\": \"oci:%s/layout:1\", \"workload\": \"web\", \"ordinal\": 2}", k->folder.path);
    if (command)
        (void)json_object_set_new(config, "command", json_pack("[s, s, s]", "/bin/sh", "-c", command));
    return config;
}

static inline void make(struct image_kit *k, uint64_t id, const char *command, const struct bundle_options *options)
{
    CLEANUP(json) json_t *config = config_of(k, command);
    if (instance_dir_create(k->state_dir, id, "{}", &k->err) < 0 ||
        bundle_make(k->state_dir, id, config, options, &k->err) < 0)
        fail_msg("%s", k->err.text);
}

/* Runs the container like the shim, but in one step; `out` gets its output. */
static inline int run(struct image_kit *k, const char *runtime, uint64_t id, struct str *out)
{
    char bundle[STATE_PATH_MAX], name[32];
    assert_int_equal(instance_dir_path(k->state_dir, id, "bundle", bundle), 0);
    (void)snprintf(name, sizeof name, "berth-%" PRIu64, id);
    const char *crun[] = {runtime, "--cgroup-manager=disabled", "run", "--bundle", bundle, name, NULL};
    const char *runc[] = {runtime, "run", "--bundle", bundle, name, NULL};
    const struct tool t = {
        .argv = strstr(runtime, "crun") ? crun : runc, .dir = -1, .timeout_ns = INT64_C(60000000000), .what = "run"};
    return tool_run(&t, out, &k->err);
}

static inline void end(struct image_kit *k, uint64_t id)
{
    if (bundle_end(k->state_dir, id, &k->err) < 0)
        fail_msg("%s", k->err.text);
    assert_int_equal(bundle_end(k->state_dir, id, &k->err), 0); /* a repeated call has no effect */
    char path[STATE_PATH_MAX];
    assert_int_equal(instance_dir_path(k->state_dir, id, "bundle", path), 0);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(mounts_below_count(k->folder.path), 0);
    assert_int_equal(instance_dir_remove(k->state_dir, id, &k->err), 0);
}

static inline void text_get(const char *path, char *buf, size_t size)
{
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, buf, size - 1);
    buf[n > 0 ? n : 0] = '\0';
    buf[strcspn(buf, "\n")] = '\0';
}

/* Creates a mount namespace. With mixed cgroup controllers, which crun rejects, only those of v1 are visible in it. */
static inline int surroundings(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return 0;
    const char *before = oci_runtime_find();
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return -1;
    char text[64];
    text_get("/sys/fs/cgroup/unified/cgroup.controllers", text, sizeof text);
    if (!*text)
        return 0;
    assert_true(!before || !strstr(before, "/crun"));
    return mount("hidden", "/sys/fs/cgroup/unified", "tmpfs", 0, NULL);
}
