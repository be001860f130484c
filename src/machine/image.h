/* image.h - images of containers: a folder, an OCI layout, or a name that skopeo pulls; unpacked once, kept, bounded.
 *
 * And bundles: a root of its own for each instance (overlay where the kernel has it, else a copy), and config.json for an
 * OCI runtime (runc or crun).
 */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "machine/launch.h"
#include "machine/user.h"

/* "crun" or "runc" on the path, crun first; NULL: none. */
const char *oci_runtime_find(void);

/* May take minutes: for a thread of its own. Makes sure that the image of an instance's object (`image`: NAME:TAG,
 * "oci:/path/to/layout[:tag]"; or `rootfs`: a folder) is unpacked here. Pulling twice at once is one pull. */
int image_ensure(struct place *p, const json_t *config, struct berth_err *err);
/* Makes STATE/instances/ID/bundle: root file system and config.json: command (the image's own, if none is given),
 * environment, user, mounts, rlimits, cgroup path, no new privileges, namespaces. */
struct bundle_options {
    const char *cgroup_path;
    const struct user *user;
    const struct launch_mount *mounts;
    size_t mounts_len;
    const char *const *env; /* ends with NULL: goes over the image's own */
    const struct launch_rlimit *rlimits;
    size_t rlimits_len;
    size_t sockets_len;
};
int bundle_make(struct place *p, uint64_t id, const json_t *config, const struct bundle_options *options,
                struct berth_err *err);
/* Unmounts and removes it, and what the runtime keeps of the container; also after a crash in the middle. */
int bundle_end(struct place *p, uint64_t id, struct berth_err *err);
/* Removes images that no instance uses, oldest first, beyond a bound. */
void images_trim(struct place *p, uint64_t bytes_max);
