/* vm.h - virtual machines: qemu as the program of an instance, its disk, and how it is asked to power down.
 *
 *   STATE/instances/ID/bundle/      of the instance's user; with a real root seen by qemu at /run/berth/vm, where it runs
 *       image                       the digest of the image, where it was fetched (machine/image/image.h keeps that meanwhile)
 *       disk.qcow2                  what the guest has written, over its image, which nobody writes
 *       environment                 NAME=VALUE, each with a NUL behind it: the guest finds it as opt/berth/environment
 *       qmp                         the socket by which qemu is told to power down
 *
 * qemu is an ordinary process of its instance: its shim, user, cgroup, log and end are those of any other (launch.h). It is
 * never asked to guess what a file is, runs in its own seccomp filter, and finds nothing but what it is told.
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
    uint16_t port, guest; /* of the node, and of the guest that it leads to */
};

struct vm_options {
    struct user *user;      /* gets the group of /dev/kvm where that is what it takes */
    const char *const *env; /* for the guest; ends with NULL */
    const struct vm_port *ports;
    size_t ports_len;
};

/* qemu for machines like this one: its path, a constant; NULL: there is none. */
const char *vm_program(void);

/* Its flavor is its limit: processors and memory that it asks for are all it has, qemu included. For cgroup_limits that were
 * read from the same object. */
void vm_limits(struct cgroup_limits *limits, const json_t *config);

/* Makes the bundle, and fills in what qemu is started with: argv, env, cwd and mounts, all of them the arena's. Its image
 * was brought here (image_ensure). On failure nothing is left. */
int vm_make(struct place *p, uint64_t id, const json_t *config, const struct vm_options *options, struct arena *arena,
            struct launch *ret, struct berth_err *err);

/* Presses the power button. May take two seconds: for a thread that may wait. -errno: it was not heard. */
int vm_power_down(const struct place *p, uint64_t id);

/* vm_disk.c: writes a new qcow2 file of at least `bytes` whose content is that of its image until it is written. `raw`: the
 * image's format; else qcow2. */
int vm_disk_write(int fd, uint64_t bytes, const char *image, bool raw);
/* How large the disk in an image is, and of which format. -EINVAL: a qcow2 that is encrypted, needs
 * another file, or makes no sense. -EFBIG. */
int vm_disk_look(int fd, uint64_t *ret_bytes, bool *ret_raw);
