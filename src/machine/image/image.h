/* image.h - images of containers: a directory, an OCI layout, or a name that skopeo pulls; unpacked once, kept, bounded
 * in size.
 *
 * Also bundles: a root file system for each instance (overlay if the kernel supports it, else a copy), and config.json
 * for an OCI runtime (runc or crun).
 *
 *     STATE/images/refs/NAME              digest to which a registry name was resolved ('/' is '+')
 *     STATE/images/unpacked/sha256-HEX/   rootfs/, config.json (the image's), bytes, used (mtime: last use)
 *     STATE/images/tmp-EPOCH-*            in progress; of an earlier epoch: left by a crash
 *     STATE/registries.json               optional credentials, as `skopeo login --authfile` writes them
 *     STATE/instances/ID/bundle/          config.json, rootfs/ (upper/ and work/ of an overlay), image (its digest),
 *                                         copied (if rootfs/ is a copy: its initial size in bytes)
 *     STATE/roots/ID/                     with a user namespace: the same root, accessible to its owner (bundle_gate.h)
 *
 * The shim runs it as the container "berth-ID" (launch.h). Resource limits are those of the agent's cgroups (cgroup.h):
 * crun must be told not to touch them (--cgroup-manager=disabled; in cgroup v1 it would reset the memory limit), runc
 * leaves them unchanged.
 */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "machine/container/user.h"
#include "machine/gpu/nvml_file.h"
#include "machine/launch/launch.h"

/* Returns the constant path of crun or, failing that, runc in the usual directories; NULL: none that works here. crun
 * does not support a mix of cgroup v1 and v2 controllers. */
const char *oci_runtime_find(void);

/* Ensures that the image of an instance's configuration is unpacked (`image`: NAME:TAG, "oci:/path/to/layout[:tag]"; or
 * `rootfs`: a directory). May take minutes, so it needs its own thread. A name is resolved once, unless `pull` is
 * `always`. Concurrent pulls of one name are one pull. On failure no partial image is left. */
int image_ensure(struct state_dir *p, const json_t *config, struct berth_err *err);
/* Opens the image's root, read-only, with a shared lock that keeps images_trim from removing it while it is open.
 * `ret_config` (may be NULL): the image's configuration, a new reference. -ENOENT: call image_ensure first. */
int image_open(struct state_dir *p, const json_t *config, int *ret_root, json_t **ret_config,
               char ret_digest[static 72], struct berth_err *err);

/* Creates STATE/instances/ID/bundle: root file system and config.json with command (default: the image's), environment,
 * user, mounts, rlimits, cgroup path, no_new_privs, namespaces. On failure nothing is left mounted.
 *
 * With a user namespace the container runs as the user of the image, by default root, mapped to one of `user`'s numbers
 * on the node. Without one, and from a directory of the node, it runs as `user` without any capability, whatever the
 * image says.
 */
struct bundle_options {
    const char *cgroup_path;
    int64_t memory_bytes; /* limit of the cgroup, 0: none; crun resets it in cgroup v1, so it must know it */
    const struct instance_user *user;
    const struct launch_mount *mounts;
    size_t mounts_len;
    const char *const *env; /* NULL-terminated; overrides the image's variables */
    const struct launch_rlimit *rlimits;
    size_t rlimits_len;
    bool all_syscalls;               /* no seccomp filter */
    const struct nvml_file *devices; /* additional devices: GPUs */
    size_t devices_len;
    /* use one if possible and it is an image; else `plain` gets the reason */
    bool user_namespace;
    void (*plain)(void *ctx, const char *why); /* may be NULL */
    void *ctx;
    size_t sockets_len; /* passed from descriptor 3, followed by progress (launch.h); set in the environment */
};
int bundle_make(struct state_dir *p, uint64_t id, const json_t *config, const struct bundle_options *options,
                struct berth_err *err);
#define BUNDLE_COPIED "copied"
/* Called when the container's program runs: removes what only the runtime needed (the gate). A failure is retried by
 * bundle_end. */
void bundle_started(struct state_dir *p, uint64_t id);
/* Unmounts and removes the bundle, and the runtime's state of the container; also after a crash in between. No process
 * of it may run any more. */
int bundle_end(struct state_dir *p, uint64_t id, struct berth_err *err);
/* Removes images that no instance uses, least recently used first, until the rest is within the bound; also removes
 * what crashes have left. */
void images_trim(struct state_dir *p, uint64_t bytes_max);
