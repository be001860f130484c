/* vm.c - builds qemu's command line and the bundle of a virtual machine. */
#include "machine/vm/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/vec.h"
#include "machine/image/image_parts.h"
#include "machine/mount/mount_tree.h"
#include "wire/text/document.h"
#include "wire/text/quantity.h"

#define MIB (INT64_C(1) << 20)
#define OWN_BYTES (96 * MIB) /* memory of qemu itself, plus a part of the total for tables */
#define OWN_PART 64
#define GUEST_BYTES_MIN (32 * MIB)
enum { PROCESSORS_MAX = 64, FILES = 4 };

/* Directory of qemu's files in its mount namespace. An agent that is not root uses the paths of the node instead. */
#define SEEN_AT "/run/berth/"

struct vm_launch {
    struct state_dir *state_dir;
    uint64_t id;
    const json_t *config, *vm;
    const struct vm_options *options;
    struct arena *arena;
    struct berth_err *err;
    int bundle;
    struct cgroup_limits limits;
    VEC(const char *) argv;
    struct launch_mount *mounts;
    size_t mounts_len;
};

const char *vm_program(void)
{
#ifdef __x86_64__
    static const char *const places[] = {"/usr/local/bin/qemu-system-x86_64", "/usr/bin/qemu-system-x86_64"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (access(places[i], X_OK) == 0)
            return places[i];
#endif
    return NULL;
}

void vm_limits(struct cgroup_limits *limits, const json_t *config)
{
    const json_t *memory = json_object_get(json_object_get(config, "requests"), "memory");
    if (!limits->cpu_milli)
        limits->cpu_milli = limits->cpu_request;
    if (!limits->memory_bytes && memory)
        (void)quantity_parse("memory", memory, &limits->memory_bytes, NULL);
}

static const char *vm_text(const struct vm_launch *m, const char *key)
{
    return json_string_value(json_object_get(m->vm, key));
}

static void vm_arg_add(struct vm_launch *m, const char *option, const char *value)
{
    vec_push(&m->argv, option);
    if (value)
        vec_push(&m->argv, value);
}

/* ---- files of the node ------------------------------------------------------------------------------------------ */

static bool may_read(const struct stat *st, const struct instance_user *u)
{
    if (st->st_uid == u->uid)
        return st->st_mode & 0400;
    for (size_t i = 0; i <= u->groups_len; i++)
        if (st->st_gid == (i < u->groups_len ? u->groups[i] : u->gid))
            return st->st_mode & 0040;
    return st->st_mode & 0004;
}

/* Mounts a file of the node as NAME for qemu, read-only. `*ret`: its path there. */
static int file_show(struct vm_launch *m, const char *path, const char *name, const char *what, const char **ret,
                     int *ret_fd)
{
    struct stat st;
    CLEANUP(close_fd) int fd = -1;
    int rc = file_open(path, what, &fd, m->err);
    if (rc < 0)
        return rc;
    if (fstat(fd, &st) < 0 || !may_read(&st, m->options->user))
        return err_set(m->err, EACCES, "%s %.180s: not readable for its user on this node; make it readable for all",
                       what, path);
    *ret = path;
    if (geteuid() == 0) {
        *ret = arena_fmt(m->arena, SEEN_AT "%s", name);
        m->mounts[m->mounts_len++] =
            (struct launch_mount){.source = arena_strdup(m->arena, path), .target = *ret, .read_only = true};
    }
    if (ret_fd)
        *ret_fd = take_fd(&fd);
    return 0;
}

/* ---- disk ------------------------------------------------------------------------------------------------------- */

static int disk_make(struct vm_launch *m, int image, const char *seen, bool *ret_raw)
{
    uint64_t bytes = 0, requested_bytes = (uint64_t)json_integer_value(json_object_get(m->vm, "disk"));
    int rc = vm_disk_inspect(image, &bytes, ret_raw);
    if (rc < 0)
        return err_set(m->err, -rc, "image: must be readable, unencrypted and without a backing file (%s)",
                       strerror(-rc));
    if (requested_bytes && requested_bytes < bytes)
        return err_set(m->err, EINVAL, "vm: disk: the image has %" PRIu64 " bytes, and the disk must not be smaller",
                       bytes);
    CLEANUP(close_fd)
    int fd = openat(m->bundle, "disk.qcow2", O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    rc = fd < 0 ? -errno : vm_disk_write(fd, requested_bytes ? requested_bytes : bytes, seen, *ret_raw);
    if (rc == 0 && fchown(fd, m->options->user->uid, m->options->user->gid) < 0)
        rc = -errno;
    return rc < 0 ? err_set(m->err, -rc, "cannot create the disk: %s", strerror(-rc)) : 0;
}

/* The format and file of every layer are given explicitly, so that qemu does not probe data that a guest has
 * written. */
static int disk_add(struct vm_launch *m, const char *seen, bool raw)
{
    json_t *image = json_pack("{s:s, s:b, s:{s:s, s:s, s:b}}", "driver", raw ? "raw" : "qcow2", "read-only", 1, "file",
                              "driver", "file", "filename", seen, "read-only", 1);
    if (image && !raw)
        (void)json_object_set_new(image, "backing", json_null());
    CLEANUP(json)
    json_t *disk = json_pack("{s:s, s:s, s:s, s:{s:s, s:s}, s:o}", "driver", "qcow2", "node-name", "disk", "discard",
                             "unmap", "file", "driver", "file", "filename", "disk.qcow2", "backing", image);
    char *text = disk ? json_dumps(disk, JSON_COMPACT) : NULL;
    if (!text)
        return err_set(m->err, EINVAL, "image: its path is not valid UTF-8");
    vm_arg_add(m, "-blockdev", arena_strdup(m->arena, text));
    free(text);
    vm_arg_add(m, "-device", "virtio-blk-pci,drive=disk,bootindex=1");
    return 0;
}

static int image_path(struct vm_launch *m, const struct image_name *n, const char **ret, int *ret_lock)
{
    char digest[IMAGE_DIGEST_MAX];
    if (n->kind == IMAGE_FILE) {
        *ret = arena_strdup(m->arena, n->path);
        return 0;
    }
    int rc = image_open(m->state_dir, m->config, ret_lock, NULL, digest, m->err);
    if (rc < 0)
        return rc;
    rc = tree_write(m->bundle, "image", digest, strlen(digest), geteuid(), getegid(), 0600);
    if (rc < 0)
        return err_set(m->err, -rc, "cannot write to the bundle: %s", strerror(-rc));
    *ret = arena_fmt(m->arena, "%s/images/unpacked/sha256-%s/rootfs/disk", state_dir_path(m->state_dir),
                     digest + strlen("sha256:"));
    return 0;
}

static int disk(struct vm_launch *m)
{
    CLEANUP(close_fd) int lock = -1, image = -1;
    struct image_name *n = ARENA_NEW(m->arena, struct image_name);
    const char *path = NULL, *seen = NULL;
    bool raw = false;
    int rc = image_name_read(m->config, n, m->err);
    if (rc < 0 || n->kind == IMAGE_NONE)
        return rc;
    rc = image_path(m, n, &path, &lock);
    if (rc == 0)
        rc = file_show(m, path, "image", "image", &seen, &image);
    if (rc == 0)
        rc = disk_make(m, image, seen, &raw);
    return rc == 0 ? disk_add(m, seen, raw) : rc;
}

/* ---- other devices ---------------------------------------------------------------------------------------------- */

static int kernel(struct vm_launch *m)
{
    const char *path = vm_text(m, "kernel"), *initrd = vm_text(m, "initrd"), *append = vm_text(m, "append");
    const char *seen = NULL;
    int rc = path ? file_show(m, path, "kernel", "vm: kernel", &seen, NULL) : 0;
    if (rc < 0 || !path)
        return rc;
    vm_arg_add(m, "-kernel", seen);
    vm_arg_add(m, "-append", append ? append : "console=ttyS0");
    rc = initrd ? file_show(m, initrd, "initrd", "vm: initrd", &seen, NULL) : 0;
    if (rc == 0 && initrd)
        vm_arg_add(m, "-initrd", seen);
    return rc;
}

/* Tells whether the user can open /dev/kvm, adding the device's group to the user's groups if that is needed. */
static bool kvm_usable(struct instance_user *u)
{
    struct stat st;
    if (geteuid() != 0)
        return access("/dev/kvm", R_OK | W_OK) == 0;
    if (stat("/dev/kvm", &st) < 0 || !S_ISCHR(st.st_mode))
        return false;
    if ((st.st_mode & 0006) == 0006)
        return true;
    if ((st.st_mode & 0060) != 0060 || st.st_gid == 0 || u->groups_len == USER_GROUPS_MAX)
        return false;
    u->groups[u->groups_len++] = st.st_gid;
    return true;
}

static int processor(struct vm_launch *m)
{
    const char *accel = vm_text(m, "accel");
    bool must = accel && strcmp(accel, "kvm") == 0, emulated = accel && strcmp(accel, "tcg") == 0;
    bool kvm = !emulated && kvm_usable(m->options->user);
    if (must && !kvm)
        return err_set(m->err, ENOTSUP, "vm: accel: its user cannot access /dev/kvm on this node");
    int64_t count = (m->limits.cpu_milli + 999) / 1000;
    count = count < 1 ? 1 : count > PROCESSORS_MAX ? PROCESSORS_MAX : count;
    vm_arg_add(m, "-machine", "q35,usb=off");
    vm_arg_add(m, "-accel", kvm ? "kvm" : "tcg,tb-size=32");
    vm_arg_add(m, "-cpu", kvm ? "host" : "max");
    vm_arg_add(m, "-smp", arena_fmt(m->arena, "%" PRId64, count));
    return 0;
}

static int memory(struct vm_launch *m)
{
    int64_t guest = m->limits.memory_bytes - OWN_BYTES - m->limits.memory_bytes / OWN_PART;
    if (guest < GUEST_BYTES_MIN)
        return err_set(m->err, EINVAL,
                       "a virtual machine needs memory: %" PRId64 "Mi are for qemu itself, and at least "
                       "%" PRId64 "Mi for the guest",
                       OWN_BYTES / MIB, GUEST_BYTES_MIN / MIB);
    vm_arg_add(m, "-m", arena_fmt(m->arena, "%" PRId64 "M", guest / MIB));
    return 0;
}

static void network(struct vm_launch *m)
{
    CLEANUP(str) struct str net = {0};
    str_add(&net, "user,id=net");
    for (size_t i = 0; i < m->options->ports_len; i++) {
        const struct vm_port *p = &m->options->ports[i];
        str_addf(&net, ",hostfwd=%s::%u-:%u", p->udp ? "udp" : "tcp", p->port, p->guest);
    }
    vm_arg_add(m, "-netdev", arena_strdup(m->arena, net.at));
    vm_arg_add(m, "-device", "virtio-net-pci,netdev=net,romfile=");
}

static int environment(struct vm_launch *m)
{
    CLEANUP(str) struct str text = {0};
    const struct instance_user *u = m->options->user;
    for (size_t i = 0; m->options->env && m->options->env[i]; i++)
        str_add_bytes(&text, m->options->env[i], strlen(m->options->env[i]) + 1);
    if (text.len == 0)
        return 0;
    int rc = tree_write(m->bundle, "environment", text.at, text.len, u->uid, u->gid, 0400);
    if (rc < 0)
        return err_set(m->err, -rc, "cannot write the environment: %s", strerror(-rc));
    vm_arg_add(m, "-fw_cfg", "name=opt/berth/environment,file=environment");
    return 0;
}

static int parts(struct vm_launch *m)
{
    char other[CGROUP_LIST_MAX];
    int rc = cgroup_limits_read(m->config, &m->limits, other, m->err);
    if (rc < 0)
        return rc;
    vm_limits(&m->limits, m->config);
    vm_arg_add(m, vm_program(), NULL);
    vm_arg_add(m, "-nodefaults", NULL);
    vm_arg_add(m, "-no-user-config", NULL);
    vm_arg_add(m, "-name", arena_fmt(m->arena, "berth-%" PRIu64, m->id));
    vm_arg_add(m, "-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
    vm_arg_add(m, "-display", "none");
    vm_arg_add(m, "-chardev", "stdio,id=console,signal=off");
    vm_arg_add(m, "-serial", "chardev:console");
    vm_arg_add(m, "-qmp", "unix:qmp,server=on,wait=off");
    vm_arg_add(m, "-device", "virtio-rng-pci");
    rc = processor(m);
    rc = rc ? rc : memory(m);
    rc = rc ? rc : disk(m);
    rc = rc ? rc : kernel(m);
    rc = rc ? rc : environment(m);
    if (rc == 0)
        network(m);
    return rc;
}

static int bundle_open(const struct vm_launch *m)
{
    CLEANUP(close_fd) int folder = tree_open_instance(m->state_dir, m->id);
    CLEANUP(close_fd) int bundle = folder < 0 ? folder : tree_folder(folder, "bundle", 0700);
    if (bundle >= 0 && fchown(bundle, m->options->user->uid, m->options->user->gid) < 0)
        return -errno;
    return bundle < 0 ? bundle : take_fd(&bundle);
}

static int launch_fill(struct vm_launch *m, struct launch *ret)
{
    static const char *const env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "HOME=/", NULL};
    char path[STATE_PATH_MAX];
    int rc = instance_dir_path(m->state_dir, m->id, "bundle", path);
    if (rc < 0)
        return err_set(m->err, -rc, "the path of the bundle is too long");
    ret->cwd = arena_strdup(m->arena, path);
    if (geteuid() == 0) {
        m->mounts[m->mounts_len++] = (struct launch_mount){.source = ret->cwd, .target = SEEN_AT "vm"};
        ret->cwd = SEEN_AT "vm";
    }
    vec_push(&m->argv, NULL);
    ret->argv = arena_dup(m->arena, m->argv.at, m->argv.len * sizeof *m->argv.at);
    ret->env = env;
    ret->mounts = m->mounts;
    ret->mounts_len = m->mounts_len;
    return 0;
}

int vm_make(struct state_dir *p, uint64_t id, const json_t *config, const struct vm_options *options,
            struct arena *arena, struct launch *ret, struct berth_err *err)
{
    struct vm_launch m = {.state_dir = p, .id = id, .config = config, .options = options, .arena = arena, .err = err};
    if (!vm_program())
        return err_set(err, ENOTSUP,
                       "this node cannot run virtual machines: qemu for its architecture is not installed");
    int rc = bundle_end(p, id, err); /* left by a crash */
    if (rc < 0)
        return rc;
    m.vm = json_object_get(config, "vm");
    m.mounts = ARENA_ARRAY(arena, struct launch_mount, FILES);
    m.bundle = bundle_open(&m);
    rc = m.bundle < 0 ? err_set(err, -m.bundle, "cannot create the folder of its disk: %s", strerror(-m.bundle)) : 0;
    rc = rc ? rc : parts(&m);
    rc = rc ? rc : launch_fill(&m, ret);
    close_fd_cleanup(&m.bundle);
    vec_done(&m.argv);
    if (rc < 0)
        (void)bundle_end(p, id, NULL);
    return rc;
}
