/* vm_doc.c - keys of virtual machines: disk, kernel, acceleration. */
#include <errno.h>
#include <string.h>

#include "wire/doc/objects.h"
#include "wire/text/words.h"

#define DISK_BYTES_MIN (INT64_C(1) << 20)
#define DISK_BYTES_MAX (INT64_C(4) << 40)
enum { APPEND_BYTES_MAX = 2048, SHA256_DIGITS = 64 };

static const struct enum_word accel_words[] = {
    {"auto", ACCEL_AUTO},
    {"kvm",  ACCEL_KVM },
    {"tcg",  ACCEL_TCG },
    {NULL,   0         },
};

const char *vm_accel_name(enum vm_accel accel)
{
    return accel_words[accel].name;
}

static int disk_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int64_t bytes = 0;
    int rc = amount_of(r, "storage", value, &bytes);
    if (rc == 0 && (bytes < DISK_BYTES_MIN || bytes > DISK_BYTES_MAX))
        return expected(r, "a size from 1Mi to 4Ti", value);
    if (rc == 0)
        *(int64_t *)key_field(key, object) = bytes;
    return rc;
}

static int sha256_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const char *text = NULL;
    int rc = text_of(r, value, &text);
    if (rc < 0)
        return rc;
    if (strlen(text) != SHA256_DIGITS || strspn(text, "0123456789abcdef") != SHA256_DIGITS)
        return expected(r, "64 lower-case hexadecimal digits, as sha256sum prints them", value);
    *(const char **)key_field(key, object) = text;
    return 0;
}

static int append_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const char *text = NULL;
    int rc = text_of(r, value, &text);
    if (rc < 0)
        return rc;
    if (strlen(text) > APPEND_BYTES_MAX || strpbrk(text, "\r\n"))
        return expected(r, "one line of at most 2048 bytes", value);
    *(const char **)key_field(key, object) = text;
    return 0;
}

#define AT(field) offsetof(struct vm_terms, field)
static const struct key vm_rows[] = {
    KEY("disk", "amount", "size of the disk, at least that of the image; default: the size of the image", disk_read,
        .at = AT(disk_bytes)),
    KEY("sha256", "64 digits", "SHA-256 of the image; required if the image is a URL", sha256_read, .at = AT(sha256)),
    KEY("kernel", "path", "kernel file on the node, booted instead of the disk; needs `nodes: all`", absolute_read,
        .at = AT(kernel)),
    KEY("initrd", "path", "initrd file on the node, used with a kernel; needs `nodes: all`", absolute_read,
        .at = AT(initrd)),
    KEY("append", "text", "kernel command line; default: `console=ttyS0`", append_read, .at = AT(append)),
    KEY("accel", "`auto`, `kvm` or `tcg`", "hardware virtualization or emulation; default: what the node supports",
        word_read, .at = AT(accel), .arg = accel_words),
};
#undef AT
KEY_TABLE(vm_keys, "vm", vm_rows);

int vm_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    struct vm_terms vm = {.given = true};
    int rc = table_read(r, value, &vm_keys, &vm);
    if (rc == 0)
        *(struct vm_terms *)key_field(key, object) = vm;
    return rc;
}

/* ---- the whole document ----------------------------------------------------------------------------------------- */

/* Rejects keys of processes, which have no effect in a virtual machine or would affect the node. */
static int foreign_keys(const struct work_doc *d, struct berth_err *err)
{
    const struct {
        const char *key, *instead;
        bool given;
    } rows[] = {
        {"command",    "set the kernel command line with vm.append", d->command_len > 0               },
        {"workdir",    "it has a disk of its own",                   d->workdir != NULL               },
        {"rootfs",     "use an image",                               d->run.rootfs != NULL            },
        {"run_as",     "it has users of its own",                    d->run.run_as != RUN_AS_DEFAULT  },
        {"mounts",     "add the files to its image",                 d->run.mounts_len > 0            },
        {"files",      "add the files to its image, or use `env`",   d->run.files_len > 0             },
        {"settings",   "use `env`",                                  d->settings || d->settings_schema},
        {"checkpoint", "it takes no signals",                        d->job.checkpoint.signal != NULL },
        {"health",     "use http or tcp with an endpoint",           d->run.health.how == HEALTH_EXEC },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].given)
            return err_set(err, EINVAL, "%s: not supported for virtual machines; %s", rows[i].key, rows[i].instead);
    return 0;
}

static int endpoints_check(const struct work_doc *d, bool vm, struct berth_err *err)
{
    for (size_t i = 0; i < d->endpoints_len; i++) {
        const struct endpoint *e = &d->endpoints[i];
        if (!vm && e->guest)
            return err_set(err, EINVAL, "endpoints: guest: is only for virtual machines (runtime vm)");
        if (vm && !e->guest)
            return err_set(err, EINVAL, "endpoints: %.80s: needs the port of the guest, like guest: 22", e->name);
        if (vm && e->listen == LISTEN_SOCKET)
            return err_set(err, EINVAL, "endpoints: %.80s: sockets are not supported for virtual machines", e->name);
        if (vm && e->protocol == BERTH_SCTP)
            return err_set(err, EINVAL, "endpoints: %.80s: only tcp and udp reach a virtual machine", e->name);
    }
    return 0;
}

/* Rejects devices of a node that cannot be passed to a guest. */
static int devices_check(const struct berth_shape *shape, struct berth_err *err)
{
    if (shape->gpu.count > 0)
        return err_set(err, EINVAL,
                       "gpu: not supported for virtual machines; leave it out, or use a process or a container");
    for (size_t i = 0; i < shape->requests_len + shape->limits_len; i++) {
        const char *resource =
            i < shape->requests_len ? shape->requests[i].resource : shape->limits[i - shape->requests_len].resource;
        if (strncmp(resource, "hugepages-", strlen("hugepages-")) == 0)
            return err_set(err, EINVAL,
                           "%.40s: not supported for virtual machines; leave it out, or use a process or a container",
                           resource);
    }
    return 0;
}

static bool has_memory(const struct berth_shape *shape)
{
    for (size_t i = 0; i < shape->requests_len; i++)
        if (strcmp(shape->requests[i].resource, "memory") == 0 && shape->requests[i].amount > 0)
            return true;
    return false;
}

static int image_check(const struct work_doc *d, struct berth_err *err)
{
    const struct vm_terms *vm = &d->run.vm;
    bool url = d->image && (strncmp(d->image, "https://", 8) == 0 || strncmp(d->image, "http://", 7) == 0);
    if (!d->image && !vm->kernel)
        return err_set(err, EINVAL, "image: a virtual machine needs an image, or a vm.kernel");
    if (d->image && !url && *d->image != '/')
        return err_set(err, EINVAL, "image: of a virtual machine must be a URL or a path on its node");
    if (url && !vm->sha256)
        return err_set(err, EINVAL, "vm: sha256: must be given with a URL");
    if (vm->sha256 && !url)
        return err_set(err, EINVAL, "vm: sha256: is only for an image that is a URL");
    if (vm->disk_bytes && !d->image)
        return err_set(err, EINVAL, "vm: disk: needs an image");
    if ((vm->initrd || vm->append) && !vm->kernel)
        return err_set(err, EINVAL, "vm: %s: needs vm.kernel", vm->initrd ? "initrd" : "append");
    return 0;
}

static bool is_vm(const struct work_doc *d)
{
    return d->workload.shape.runtime && strcmp(d->workload.shape.runtime, "vm") == 0;
}

int vm_check(const struct work_doc *d, struct berth_err *err)
{
    if (d->run.vm.given && !is_vm(d))
        return err_set(err, EINVAL, "vm: the runtime is %.40s; leave the runtime out", d->workload.shape.runtime);
    if (!is_vm(d))
        return endpoints_check(d, false, err);
    int rc = foreign_keys(d, err);
    if (rc == 0)
        rc = endpoints_check(d, true, err);
    if (rc == 0)
        rc = image_check(d, err);
    if (rc == 0)
        rc = devices_check(&d->workload.shape, err);
    if (rc == 0 && !has_memory(&d->workload.shape))
        rc = err_set(err, EINVAL, "resources: a virtual machine needs memory, like {cpu: 1, memory: 512Mi}");
    return rc;
}
