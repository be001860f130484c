/* vm.h - virtual machines: qemu as the program of an instance, its disk, and power-down.
 *
 *     STATE/instances/ID/bundle/      owned by the instance's user; qemu's working directory, which a root agent mounts
 *                                     at /run/berth/vm
 *         image                       digest of a fetched image (machine/image/image.h keeps the image meanwhile)
 *         disk.qcow2                  the guest's writes, on top of the image, which is never written
 *         environment                 NAME=VALUE, each NUL-terminated; in the guest as fw_cfg opt/berth/environment
 *         qmp                         control socket of qemu, for power-down
 *
 * qemu is an ordinary process of its instance, with shim, user, cgroup, log and end like any other (launch.h). It never
 * probes file formats, runs in its own seccomp filter, and uses no default devices or configuration.
 */
#pragma once

#include <jansson.h>

#include "base/arena.h"
#include "machine/cgroup/cgroup.h"
#include "machine/container/user.h"
#include "machine/launch/launch.h"

enum { VM_PORTS_MAX = 16 };

struct vm_port {
    bool udp;
    uint16_t port, guest; /* port of the node, and port of the guest to which it is forwarded */
};

struct vm_options {
    struct instance_user *user; /* gets the group of /dev/kvm if needed */
    const char *const *env;     /* for the guest; NULL-terminated */
    const struct vm_port *ports;
    size_t ports_len;
};

/* Returns the constant path of qemu for this architecture; NULL: not installed. */
const char *vm_program(void);

/* Makes the requests the limits: CPU and memory of its flavor are all that it has, including qemu itself. For limits
 * that cgroup_limits_read has read from the same object. */
void vm_limits(struct cgroup_limits *limits, const json_t *config);

/* Creates the bundle and fills in argv, env, cwd and mounts for qemu, allocated from the arena. image_ensure must have
 * been called. On failure nothing is left. */
int vm_make(struct state_dir *p, uint64_t id, const json_t *config, const struct vm_options *options,
            struct arena *arena, struct launch *ret, struct berth_err *err);

/* Sends an ACPI power-down by qemu. May take two seconds, so it needs a thread that may wait. -errno: qemu did not
 * accept it. */
int vm_power_down(const struct state_dir *p, uint64_t id);

/* vm_disk.c: writes a new qcow2 file of at least `bytes`, whose content is initially that of its image. `raw`: the
 * image is raw; else qcow2. */
int vm_disk_write(int fd, uint64_t bytes, const char *image, bool raw);
/* Reads the disk size and format of an image. -EINVAL: a qcow2 file that is encrypted, needs another file, or is
 * invalid. -EFBIG: too large. */
int vm_disk_inspect(int fd, uint64_t *ret_bytes, bool *ret_raw);
