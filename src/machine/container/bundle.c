/* bundle.c - creates and removes the root file system and config.json of a container. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "machine/container/bundle_config.h"
#include "machine/image/image_name.h"
#include "machine/image/oci_tool.h"
#include "machine/mount/mount_tree.h"
#include "wire/text/document.h"

enum { STATE_MAX = 4 << 20 };
#define DELETE_NS (20 * INT64_C(1000000000))

/* ---- root file system ------------------------------------------------------------------------------------------- */

/* Mounts the overlay. Uses descriptors instead of paths: no commas or colons to escape, no length limit, nothing can be
 * swapped in between. nodev and nosuid disable devices and set-user-id files of images. */
static int overlay_mount(int lower, int upper, int work, int at)
{
    char options[128], target[32];
    /* volatile (Linux 5.10): no syncs to disk, because the root ends with its instance. */
    int plain =
        snprintf(options, sizeof options,
                 "lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d", lower, upper, work);
    (void)snprintf(options + plain, sizeof options - (size_t)plain, ",volatile");
    (void)snprintf(target, sizeof target, "/proc/self/fd/%d", at);
    if (mount("berth", target, "overlay", MS_NODEV | MS_NOSUID, options) == 0)
        return 0;
    options[plain] = '\0';
    return mount("berth", target, "overlay", MS_NODEV | MS_NOSUID, options) < 0 ? -errno : 0;
}

/* Copies owner and mode of `model`: those of the upper directory become those of the root. */
static int owner_and_mode_copy(int fd, int model)
{
    struct stat st;
    if (fstat(model, &st) < 0 || fchown(fd, st.st_uid, st.st_gid) < 0 || fchmod(fd, st.st_mode & 0777) < 0)
        return -errno;
    return 0;
}

/* Records the initial size of a copied root (disk_limit.h). */
static int copied_size_write(int bundle, int root)
{
    char text[24];
    uint64_t bytes = 0;
    int rc = tree_bytes(root, &bytes);
    if (rc < 0)
        return rc;
    str_u64(bytes, text);
    return tree_write(bundle, BUNDLE_COPIED, text, strlen(text), geteuid(), getegid(), 0600);
}

/* Mounts the image with the ids of the container's user namespace; overlayfs accepts only an attached mount as lower
 * layer. The overlay keeps its own copy of the mount. */
static int lower_mount(int bundle, int image, int ns)
{
    CLEANUP(close_fd) int tree = userns_tree(image, "", ns);
    CLEANUP(close_fd) int point = tree < 0 ? tree : tree_folder(bundle, "lower", 0700);
    if (tree < 0 || point < 0)
        return tree < 0 ? tree : point;
    return move_mount(tree, "", bundle, "lower", MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : take_fd(&tree);
}

static void lower_end(int bundle, int lower)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", lower);
    (void)umount2(path, MNT_DETACH); /* after a failure it is removed with the bundle */
    (void)unlinkat(bundle, "lower", AT_REMOVEDIR);
}

static int root_make(int bundle, int image, struct berth_err *err)
{
    CLEANUP(close_fd) int upper = tree_folder(bundle, "upper", 0700);
    CLEANUP(close_fd) int work = tree_folder(bundle, "work", 0700);
    CLEANUP(close_fd) int root = tree_folder(bundle, "rootfs", 0700);
    if (upper < 0 || work < 0 || root < 0)
        return err_set(err, EIO, "cannot create the folders of a container's root");
    int rc = owner_and_mode_copy(upper, image);
    if (rc < 0)
        return err_set(err, -rc, "cannot create the folders of a container's root: %s", strerror(-rc));
    rc = overlay_mount(image, upper, work, root);
    if (rc == 0)
        return 0;
    /* Copies the image: the kernel or the file system does not support overlayfs here, or this is an overlay itself. */
    rc = tree_copy(image, root);
    rc = rc < 0 ? rc : copied_size_write(bundle, root);
    return rc < 0 ? err_set(err, -rc, "cannot copy the image for a container's root: %s", strerror(-rc)) : 0;
}

static int config_write(int bundle, const struct bundle_inputs *words, struct berth_err *err)
{
    CLEANUP(json) json_t *config = NULL;
    int rc = bundle_config(words, &config, err);
    if (rc < 0)
        return rc;
    char *text = json_dumps(config, JSON_COMPACT);
    if (!text)
        return err_set(err, EINVAL, "cannot write config.json");
    rc = tree_write(bundle, "config.json", text, strlen(text), geteuid(), getegid(), 0600);
    free(text);
    return rc < 0 ? err_set(err, -rc, "cannot write config.json: %s", strerror(-rc)) : 0;
}

/* ---- with a user namespace -------------------------------------------------------------------------------------- */

/* Finds the user of the image and the id maps. -EOPNOTSUPP: the user is not mapped to a number of this node. */
static int container_ids_find(const struct bundle_inputs *w, int image, struct container_ids *ret,
                              struct berth_err *err)
{
    const char *user_text = json_string_value(json_object_get(json_object_get(w->image, "config"), "User"));
    const struct instance_user *owner = w->options->user;
    uint32_t number;
    userns_maps_of(owner, &ret->maps);
    int rc = image_user_find(image, user_text, &ret->user, err);
    if (rc < 0)
        return rc;
    if (owner->gid == 0)
        return err_set(err, EOPNOTSUPP, "the primary group of '%s' is root's", owner->name);
    if (!id_map_out(&ret->maps.uids, ret->user.uid, &number) || !id_map_out(&ret->maps.gids, ret->user.gid, &number))
        return err_set(err, EOPNOTSUPP,
                       "the image's user %" PRIu32 ":%" PRIu32 " is not in the UID range of '%s' on this node",
                       ret->user.uid, ret->user.gid, owner->name);
    return 0;
}

/* Like root_make, with the ids of the namespace; supports only overlays. */
static int userns_root_make(int bundle, int image, int ns)
{
    CLEANUP(close_fd) int upper = tree_folder(bundle, "upper", 0700);
    CLEANUP(close_fd) int work = tree_folder(bundle, "work", 0700);
    CLEANUP(close_fd) int root = tree_folder(bundle, "rootfs", 0700);
    CLEANUP(close_fd) int lower = lower_mount(bundle, image, ns);
    if (upper < 0 || work < 0 || root < 0 || lower < 0)
        return upper < 0 ? upper : work < 0 ? work : root < 0 ? root : lower;
    int rc = owner_and_mode_copy(upper, lower);
    rc = rc < 0 ? rc : overlay_mount(lower, upper, work, root);
    lower_end(bundle, lower);
    return rc;
}

static void userns_bundle_undo(struct state_dir *p, uint64_t id, int bundle, const char *path)
{
    static const char *const parts[] = {"lower", "rootfs", "upper", "work"};
    (void)gate_end(p, id, NULL);
    (void)mounts_below_end(path, NULL);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        (void)tree_remove(bundle, parts[i]); /* what cannot be removed is found again by the next attempt */
}

static void arena_cleanup(struct arena *a)
{
    arena_done(a);
}

/* Creates the bundle with a user namespace. -EOPNOTSUPP with a reason: not supported on this node or for this instance;
 * everything was removed again. */
static int userns_bundle_fill(struct state_dir *p, uint64_t id, int bundle, int image, struct bundle_inputs *words,
                              struct berth_err *err)
{
    char path[STATE_PATH_MAX];
    CLEANUP(arena) struct arena arena;
    struct container_ids inside;
    struct bundle_gate *gate;
    arena_init(&arena);
    gate = ARENA_ARRAY(&arena, struct bundle_gate, 1);
    int rc = container_ids_find(words, image, &inside, err);
    if (rc < 0)
        return rc;
    if (instance_dir_path(p, id, "bundle", path) < 0)
        return err_set(err, ENAMETOOLONG, "the path of the bundle is too long");
    CLEANUP(close_fd) int ns = userns_open(&inside.maps);
    if (ns < 0)
        return err_set(err, userns_code(ns), "cannot create a user namespace for '%s': %s", words->options->user->name,
                       strerror(-ns));
    rc = userns_root_make(bundle, image, ns);
    if (rc < 0)
        rc = err_set(err, userns_code(rc), "the file system of the images does not support ID-mapped mounts: %s",
                     strerror(-rc));
    rc = rc < 0 ? rc : gate_make(p, id, bundle, &inside, words->options, &arena, gate, err);
    words->inside = &inside;
    words->gate = gate;
    rc = rc < 0 ? rc : config_write(bundle, words, err);
    words->inside = NULL;
    words->gate = NULL;
    if (rc < 0)
        userns_bundle_undo(p, id, bundle, path);
    return rc;
}

/* ---- creation --------------------------------------------------------------------------------------------------- */

static int fill(struct state_dir *p, uint64_t id, int bundle, const json_t *config,
                const struct bundle_options *options, struct berth_err *err)
{
    CLEANUP(close_fd) int image = -1;
    CLEANUP(json) json_t *says = NULL;
    char digest[IMAGE_DIGEST_MAX];
    int rc = image_open(p, config, &image, &says, digest, err);
    if (rc < 0)
        return rc;
    rc = tree_write(bundle, "image", digest, strlen(digest), geteuid(), getegid(), 0600);
    if (rc < 0)
        return err_set(err, -rc, "cannot write to the bundle: %s", strerror(-rc));
    struct bundle_inputs words = {
        .config = config,
        .image = says,
        .options = options,
        .resolver = access("/etc/resolv.conf", R_OK) == 0,
        .hosts = access("/etc/hosts", R_OK) == 0,
    };
    /* A `rootfs` directory of the node gets no user namespace: files of the node's root must not belong to the owner
     * inside. */
    if (options->user_namespace && !json_object_get(config, "rootfs")) {
        struct berth_err why = {0};
        rc = userns_bundle_fill(p, id, bundle, image, &words, &why);
        if (rc != -EOPNOTSUPP)
            return rc < 0 ? err_set(err, why.code, "%s", why.text) : 0;
        if (options->plain)
            options->plain(options->ctx, why.text);
    }
    rc = config_write(bundle, &words, err);
    return rc < 0 ? rc : root_make(bundle, image, err);
}

int bundle_make(struct state_dir *p, uint64_t id, const json_t *config, const struct bundle_options *options,
                struct berth_err *err)
{
    char path[STATE_PATH_MAX];
    if (geteuid() != 0)
        return err_set(err, EPERM, "containers need an agent that runs as root");
    if (!options->user || options->user->uid == 0)
        return err_set(err, EPERM, "a container never runs as root");
    int rc = instance_dir_path(p, id, "bundle", path);
    if (rc < 0)
        return err_set(err, -rc, "the path of the bundle is too long");
    rc = bundle_end(p, id, err); /* left by a crash */
    if (rc < 0)
        return rc;
    CLEANUP(close_fd) int folder = tree_open_instance(p, id);
    CLEANUP(close_fd) int bundle = folder < 0 ? folder : tree_folder(folder, "bundle", 0700);
    if (bundle < 0)
        return err_set(err, -bundle, "cannot create %s: %s", path, strerror(-bundle));
    rc = fill(p, id, bundle, config, options, err);
    if (rc < 0)
        (void)bundle_end(p, id, NULL);
    return rc;
}

void bundle_started(struct state_dir *p, uint64_t id)
{
    gate_close(p, id);
}

/* ---- removal ---------------------------------------------------------------------------------------------------- */

/* Where each runtime keeps the state of containers, and how it records the bundle of one. */
static const struct runtime_state {
    const char *name, *option, *folder, *file, *before;
} runtime_states[] = {
    {"crun", "--cgroup-manager=disabled", "/run/crun", "status",     "\"bundle\": \""},
    {"runc", "--log-format=text",         "/run/runc", "state.json", "\"bundle="     },
};

/* Tells whether the state refers to this bundle, and not to a container of another agent with the same id. */
static bool is_of_bundle(const struct runtime_state *r, int state, const char *bundle)
{
    CLEANUP(mem) char *text = NULL;
    if (tree_read(state, r->file, STATE_MAX, &text, NULL) < 0)
        return false;
    const char *at = strstr(text, r->before);
    size_t len = strlen(bundle);
    return at && strncmp(at + strlen(r->before), bundle, len) == 0 && at[strlen(r->before) + len] == '"';
}

/* Deletes the runtime's state of a container whose shim was killed. */
static void runtimes_forget(uint64_t id, const char *bundle)
{
    char name[32];
    (void)snprintf(name, sizeof name, "berth-%" PRIu64, id);
    for (size_t i = 0; i < sizeof runtime_states / sizeof *runtime_states; i++) {
        const struct runtime_state *r = &runtime_states[i];
        CLEANUP(close_fd) int all = open(r->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CLEANUP(close_fd) int state = all < 0 ? -1 : tree_open(all, name, O_RDONLY | O_DIRECTORY, 0);
        if (state < 0 || !is_of_bundle(r, state, bundle))
            continue;
        const char *const argv[] = {r->name, r->option, "delete", "--force", name, NULL};
        const struct tool t = {.argv = argv, .dir = -1, .timeout_ns = DELETE_NS, .what = "cannot delete a container"};
        if (tool_run(&t, NULL, NULL) < 0)
            (void)tree_remove(all, name); /* no process is left, only the state directory */
    }
}

int bundle_end(struct state_dir *p, uint64_t id, struct berth_err *err)
{
    char path[STATE_PATH_MAX];
    int rc = instance_dir_path(p, id, "bundle", path);
    if (rc < 0)
        return err_set(err, -rc, "the path of the bundle is too long");
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    runtimes_forget(id, path);
    rc = gate_end(p, id, err); /* before the bundle is removed: without a bundle, nothing would look for the gate */
    rc = rc < 0 ? rc : mounts_below_end(path, err);
    if (rc < 0)
        return rc;
    CLEANUP(close_fd) int folder = tree_open_instance(p, id);
    if (folder == -ENOENT)
        return 0;
    rc = folder < 0 ? folder : tree_remove(folder, "bundle");
    return rc < 0 ? err_set(err, -rc, "cannot remove %s: %s", path, strerror(-rc)) : 0;
}
