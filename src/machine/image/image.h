/* image.h - images of containers: a folder, an OCI layout, or a name that skopeo pulls; unpacked once, kept, bounded.
 *
 * And bundles: a root of its own for each instance (overlay where the kernel has it, else a copy), and config.json for an
 * OCI runtime (runc or crun).
 *
 *   STATE/images/refs/NAME              the digest that a name of a registry meant when it was pulled ('/' is '+')
 *   STATE/images/unpacked/sha256-HEX/   rootfs/, config.json (the image's), bytes, used (its time: when it was last used)
 *   STATE/images/tmp-EPOCH-*            under way; of an earlier epoch: left by a crash
 *   STATE/registries.json               credentials, as `skopeo login --authfile` writes them; if there
 *   STATE/instances/ID/bundle/          config.json, rootfs/ (upper/ and work/ of an overlay), image (the digest it is of),
 *                                       copied (where rootfs/ is a copy: the bytes that it took at first)
 *   STATE/roots/ID/                     of a container in a user namespace: the same root, for its owner (bundle_gate.h)
 *
 * The shim runs it as the container "berth-ID" (launch.h). Limits are the agent's own groups' (cgroup.h): crun must be told
 * to leave them alone (--cgroup-manager=disabled; in cgroup v1 it would reset memory), runc leaves them as they are.
 */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "machine/container/user.h"
#include "machine/gpu/nvml_file.h"
#include "machine/launch/launch.h"

/* crun or runc in the usual folders of programs, crun first: its path, a constant; NULL: none that works here. crun refuses
 * to work where controllers of cgroup v1 and v2 are mixed. */
const char *oci_runtime_find(void);

/* May take minutes: for a thread of its own. Makes sure that the image of an instance's object (`image`: NAME:TAG,
 * "oci:/path/to/layout[:tag]"; or `rootfs`: a folder) is unpacked here. A name is resolved once, unless `pull` is `always`.
 * Pulling twice at once is one pull. On failure nothing is left that could be used. */
int image_ensure(struct place *p, const json_t *config, struct berth_err *err);
/* Opens the root of that image, read-only, with a shared lock that keeps images_trim away while it is open. `ret_config` (may
 * be NULL): what the image says of itself, an object; a new reference. -ENOENT: ensure it first. */
int image_open(struct place *p, const json_t *config, int *ret_root, json_t **ret_config, char ret_digest[static 72],
               struct berth_err *err);

/* Makes STATE/instances/ID/bundle: root file system and config.json: command (the image's own, if none is given),
 * environment, user, mounts, rlimits, cgroup path, no new privileges, namespaces. On failure nothing is left mounted.
 *
 * In a user namespace it runs as the user that the image names, root if it names none: out here that is one of `user`'s numbers. Where that
 * is not wished or cannot be, and from a folder of the node, it runs as `user`, whatever the image says, without any capability. */
struct bundle_options {
    const char *cgroup_path;
    int64_t
        memory_bytes; /* the group's limit, 0: none. crun resets it in cgroup v1 and so must be told; other limits stay */
    const struct user *user;
    const struct launch_mount *mounts;
    size_t mounts_len;
    const char *const *env; /* ends with NULL: goes over the image's own */
    const struct launch_rlimit *rlimits;
    size_t rlimits_len;
    bool all_syscalls;               /* it may ask anything of the kernel */
    const struct nvml_file *devices; /* beside the usual ones: GPUs */
    size_t devices_len;
    bool user_namespace;                       /* where it can be, for an image; `plain` is told why not */
    void (*plain)(void *ctx, const char *why); /* NULL: nobody */
    void *ctx;
    size_t sockets_len; /* handed over from descriptor 3, and progress after them (launch.h): the environment says so */
};
int bundle_make(struct place *p, uint64_t id, const json_t *config, const struct bundle_options *options,
                struct berth_err *err);
#define BUNDLE_COPIED "copied"
/* Its program runs: what only the runtime had to reach goes, so that nothing but the container has it. What cannot go yet goes with the rest. */
void bundle_started(struct place *p, uint64_t id);
/* Unmounts and removes it, and what the runtime keeps of the container; also after a crash in the middle. Nothing of it may
 * run any more. */
int bundle_end(struct place *p, uint64_t id, struct berth_err *err);
/* Removes images that no instance uses, oldest first, beyond a bound; and what crashes have left. */
void images_trim(struct place *p, uint64_t bytes_max);
