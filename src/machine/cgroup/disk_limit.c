#include "machine/cgroup/disk_limit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "machine/image/image.h"
#include "machine/image/image_name.h"
#include "machine/mount/mount_tree.h"
#include "wire/text/quantity.h"

int disk_limit_read(const json_t *config, struct disk_limit *ret, struct berth_err *err)
{
    const json_t *limit = json_object_get(json_object_get(config, "limits"), "storage");
    const json_t *request = json_object_get(json_object_get(config, "requests"), "storage");
    struct disk_limit l = {.wanted = limit || request,
                           .whole = json_object_get(config, "image") || json_object_get(config, "rootfs") ||
                                    image_is_vm(config)};
    if (limit && (quantity_parse("storage", json_object_get(limit, "amount"), &l.bytes, NULL) < 0 || l.bytes <= 0))
        return err_set(err, EINVAL, "limits: storage: expected a number of bytes such as 10Gi");
    *ret = l;
    return 0;
}

static int add(int folder, int64_t *sum)
{
    uint64_t bytes = 0;
    int rc = tree_bytes(folder, &bytes);
    *sum += bytes < INT64_MAX / 2 ? (int64_t)bytes : 0;
    return rc;
}

static int volume_add(const struct state_dir *p, const json_t *mount, int64_t *sum)
{
    const char *name = json_string_value(json_object_get(mount, "volume"));
    char path[STATE_PATH_MAX];
    if (!name || json_is_true(json_object_get(mount, "read_only")) || json_object_get(mount, "source"))
        return 0;
    if (state_dir_entry_path(p, "volumes", name, path) < 0)
        return 0;
    CLEANUP(close_fd) int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? -errno : add(fd, sum);
}

/* Adds what is in a subdirectory of the instance directory; 0 if it does not exist. */
static int part_add(int instance, const char *path, int64_t *sum)
{
    CLEANUP(close_fd) int fd = tree_open(instance, path, O_RDONLY | O_DIRECTORY, 0);
    return fd >= 0 ? add(fd, sum) : fd == -ENOENT ? 0 : fd;
}

/* Without an overlay the root is a copy: adds its growth since it was made. */
static int copy_add(int instance, int64_t *sum)
{
    CLEANUP(mem) char *text = NULL;
    CLEANUP(close_fd) int bundle = tree_open(instance, "bundle", O_RDONLY | O_DIRECTORY, 0);
    int64_t bytes = 0;
    int rc = bundle < 0 ? bundle : tree_read(bundle, BUNDLE_COPIED, 32, &text, NULL);
    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    rc = part_add(instance, "bundle/rootfs", &bytes);
    int64_t copied = strtoll(text, NULL, 10);
    *sum += bytes > copied ? bytes - copied : 0;
    return rc;
}

int disk_bytes(const struct state_dir *p, uint64_t id, const json_t *config, int64_t *ret)
{
    const json_t *mounts = json_object_get(config, "mounts");
    int64_t sum = 0;
    CLEANUP(close_fd) int instance = tree_open_instance(p, id);
    if (instance < 0)
        return instance;
    int rc = part_add(instance, image_is_vm(config) ? "bundle" : "bundle/upper", &sum);
    rc = rc < 0 ? rc : copy_add(instance, &sum);
    for (size_t i = 0; rc == 0 && i < json_array_size(mounts); i++)
        rc = volume_add(p, json_array_get(mounts, i), &sum);
    if (rc == 0)
        *ret = sum;
    return rc;
}
