/* probe.c - probes the machine for a node's document. */
#include "machine/probe/probe.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/vec.h"
#include "machine/probe/plugin.h"
#include "machine/probe/probe_parts.h"
#include "wire/text/document.h"
#include "wire/text/quantity.h"
#include "wire/text/words.h"

#define MIB (INT64_C(1) << 20)
#define RESERVE_DEFAULT "cpu=100m,memory=256Mi"
enum { CPUS_MAX = 8192, WORD_BITS = 64 };
enum { DISK_STEP = 10000000 }; /* rounding for display */

struct probe {
    const char *root;
    bool real; /* root is "": system calls may be used, too */
    json_t *doc, *list;
    int64_t pool_bytes;
    uint64_t pool_mark;
};

struct cpu_set {
    uint64_t bits[CPUS_MAX / WORD_BITS];
};

/* ---- processors ------------------------------------------------------------------------------------------------- */

/* Parses "0-3,8"; invalid parts are skipped. */
static void cpus_read(const char *text, struct cpu_set *ret)
{
    *ret = (struct cpu_set){0};
    while (*text >= '0' && *text <= '9') {
        char *end;
        unsigned long from = strtoul(text, &end, 10), to = from;
        if (*end == '-')
            to = strtoul(end + 1, &end, 10);
        for (unsigned long i = from; i <= to && i < CPUS_MAX; i++)
            ret->bits[i / WORD_BITS] |= UINT64_C(1) << i % WORD_BITS;
        text = *end == ',' ? end + 1 : end;
    }
}

/* Counts the online CPUs that the agent may use, considering its affinity and cpuset. */
static int64_t cpus_count(const struct probe *p)
{
    CLEANUP(str) struct str status = {0};
    char line[PROBE_TEXT_MAX];
    struct cpu_set online, allowed;
    cpus_read(probe_line(p->root, line, "sys/devices/system/cpu/online"), &online);
    const char *at =
        probe_file(p->root, &status, "proc/self/status") ? strstr(str_text(&status), "\nCpus_allowed_list:\t") : NULL;
    cpus_read(at ? at + strlen("\nCpus_allowed_list:\t") : "0-8191", &allowed);
    int64_t count = 0;
    for (size_t i = 0; i < sizeof online.bits / sizeof *online.bits; i++)
        count += __builtin_popcountll(online.bits[i] & allowed.bits[i]);
    return count;
}

/* Returns the CPU quota of the agent's container; INT64_MAX: none. */
static int64_t quota_milli(const struct probe *p)
{
    char line[PROBE_TEXT_MAX];
    long long quota = 0, period = 0;
    if (sscanf(probe_line(p->root, line, "sys/fs/cgroup/cpu.max"), "%lld %lld", &quota, &period) != 2) {
        quota = probe_number(p->root, -1, "sys/fs/cgroup/cpu/cpu.cfs_quota_us");
        period = probe_number(p->root, -1, "sys/fs/cgroup/cpu/cpu.cfs_period_us");
    }
    return quota > 0 && period > 0 && quota < INT64_MAX / 1000 ? quota * 1000 / period : INT64_MAX;
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

static void pool_add(void *ctx, const char *name)
{
    struct probe *p = ctx;
    char resource[PROBE_TEXT_MAX];
    int64_t page = probe_page_bytes(name);
    int64_t pages = page ? probe_number(p->root, 0, "sys/kernel/mm/hugepages/%s/nr_hugepages", name) : 0;
    if (pages <= 0 || pages > INT64_MAX / page)
        return;
    p->pool_bytes += pages * page;
    probe_pages_name(page, resource);
    json_object_set_new(p->list, resource, probe_amount(resource, pages * page));
}

static void pool_mark(void *ctx, const char *name)
{
    struct probe *p = ctx;
    int64_t page = probe_page_bytes(name);
    int64_t pages = page ? probe_number(p->root, 0, "sys/kernel/mm/hugepages/%s/nr_hugepages", name) : 0;
    p->pool_mark = hash_pair(hash_pair(p->pool_mark, (uint64_t)page), (uint64_t)pages);
}

uint64_t probe_pools(const struct probe_config *config)
{
    struct probe p = {.root = config->root ? config->root : ""};
    probe_each(p.root, "sys/kernel/mm/hugepages", pool_mark, &p);
    return p.pool_mark;
}

/* Returns the memory without the huge page pools, limited by the container's limits. Rounded down to whole MiB, because
 * the kernel's own use varies slightly between boots. */
static int64_t memory_bytes(const struct probe *p, const char *meminfo)
{
    int64_t bytes = probe_meminfo(meminfo, "MemTotal") - p->pool_bytes;
    int64_t v2 = probe_number(p->root, INT64_MAX, "sys/fs/cgroup/memory.max");
    int64_t v1 = probe_number(p->root, INT64_MAX, "sys/fs/cgroup/memory/memory.limit_in_bytes");
    bytes = bytes < v2 ? bytes : v2;
    bytes = bytes < v1 ? bytes : v1;
    return bytes > 0 ? bytes - bytes % MIB : 0;
}

static void numa_add(void *ctx, const char *name)
{
    struct probe *p = ctx;
    CLEANUP(str) struct str meminfo = {0};
    char cpus[PROBE_TEXT_MAX];
    int64_t id;
    if (strncmp(name, "node", 4) != 0 || !str_parse_i64(name + 4, &id))
        return;
    (void)probe_file(p->root, &meminfo, "sys/devices/system/node/%s/meminfo", name);
    int64_t bytes = probe_meminfo(str_text(&meminfo), "MemTotal");
    json_t *node = json_pack("{s:I, s:s}", "id", (json_int_t)id, "cpus",
                             probe_line(p->root, cpus, "sys/devices/system/node/%s/cpulist", name));
    if (bytes >= 0)
        json_object_set_new(node, "memory", probe_amount("memory", bytes));
    json_array_append_new(p->list, node);
}

/* ---- disks, networks -------------------------------------------------------------------------------------------- */

static void disk_add(void *ctx, const char *name)
{
    struct probe *p = ctx;
    if (!probe_is_disk(p->root, name))
        return;
    /* in sectors of 512 bytes, independent of the disk */
    int64_t bytes = 512 * probe_number(p->root, 0, "sys/block/%s/size", name);
    bytes -= bytes % DISK_STEP;
    json_array_append_new(p->list,
                          json_pack("{s:s, s:o, s:b}", "name", name, "size", probe_amount("storage", bytes),
                                    "rotational", probe_number(p->root, 0, "sys/block/%s/queue/rotational", name) > 0));
}

/* Formats an address that is reachable from other machines: neither loopback nor link-local. */
static bool address_text(const struct sockaddr *sa, char buf[static INET6_ADDRSTRLEN])
{
    if (sa && sa->sa_family == AF_INET) {
        const struct in_addr *a = &((const struct sockaddr_in *)(const void *)sa)->sin_addr;
        uint32_t n = ntohl(a->s_addr);
        return n >> 24 != 127 && n >> 16 != 0xa9fe && inet_ntop(AF_INET, a, buf, INET6_ADDRSTRLEN);
    }
    if (sa && sa->sa_family == AF_INET6) {
        const struct in6_addr *a = &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr;
        return !IN6_IS_ADDR_LOOPBACK(a) && !IN6_IS_ADDR_LINKLOCAL(a) && inet_ntop(AF_INET6, a, buf, INET6_ADDRSTRLEN);
    }
    return false;
}

/* Returns the first address of this network interface, IPv4 before IPv6; `name` NULL: of any interface that is up. */
static const char *address_find(const struct probe *p, const char *name, char buf[static INET6_ADDRSTRLEN])
{
    static const int families[] = {AF_INET, AF_INET6};
    struct ifaddrs *all;
    const char *found = NULL;
    if (!p->real || getifaddrs(&all) < 0)
        return NULL;
    for (size_t i = 0; !found && i < sizeof families / sizeof *families; i++)
        for (const struct ifaddrs *at = all; !found && at; at = at->ifa_next)
            if (at->ifa_addr && at->ifa_addr->sa_family == families[i] && at->ifa_flags & IFF_UP &&
                (!name || strcmp(at->ifa_name, name) == 0) && address_text(at->ifa_addr, buf))
                found = buf;
    freeifaddrs(all);
    return found;
}

static void network_add(void *ctx, const char *name)
{
    struct probe *p = ctx;
    char address[INET6_ADDRSTRLEN];
    if (strcmp(name, "lo") == 0 || !probe_exists(p->root, "sys/class/net/%s/type", name))
        return;
    const char *found = address_find(p, name, address);
    bool is_device = probe_exists(p->root, "sys/class/net/%s/device", name);
    if (!is_device && !found)
        return; /* a virtual interface inside this machine */
    int64_t speed = probe_number(p->root, -1, "sys/class/net/%s/speed", name);
    json_t *network = json_pack("{s:s}", "name", name);
    if (speed > 0)
        json_object_set_new(network, "speed", json_integer(speed));
    if (found)
        json_object_set_new(network, "address", json_string(found));
    json_array_append_new(p->list, network);
}

/* ---- labels ----------------------------------------------------------------------------------------------------- */

/* Maps the kernel's architecture names to the common ones. */
static const char *arch_name(const char *machine)
{
    static const struct {
        const char *kernel, *common;
    } rows[] = {
        {"x86_64",      "amd64"  },
        {"aarch64",     "arm64"  },
        {"armv7l",      "arm"    },
        {"armv6l",      "arm"    },
        {"i686",        "386"    },
        {"loongarch64", "loong64"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(rows[i].kernel, machine) == 0)
            return rows[i].common;
    return machine;
}

static void text_set(json_t *object, const char *key, const char *value)
{
    if (*value)
        json_object_set_new(object, key, json_string(value));
}

/* Returns the value of KEY=value or KEY="value" in os-release. */
static const char *release_value(const char *text, const char *key, char buf[static PROBE_TEXT_MAX])
{
    size_t len = strlen(key);
    *buf = '\0';
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        if (strncmp(line, key, len) != 0 || line[len] != '=')
            continue;
        const char *value = line + len + 1;
        value += *value == '"' || *value == '\'';
        (void)snprintf(buf, PROBE_TEXT_MAX, "%.*s", (int)strcspn(value, "\"'\n"), value);
        break;
    }
    return buf;
}

static void labels_add(struct probe *p)
{
    CLEANUP(str) struct str release = {0};
    char text[PROBE_TEXT_MAX];
    struct utsname name;
    json_t *labels = json_object();
    probe_line(p->root, text, "proc/sys/kernel/arch"); /* since Linux 6.1 */
    if (!*text && p->real && uname(&name) == 0)
        (void)snprintf(text, sizeof text, "%s", name.machine);
    text_set(labels, "arch", arch_name(text));
    text_set(p->doc, "arch", arch_name(text));
    if (!probe_file(p->root, &release, "etc/os-release"))
        (void)probe_file(p->root, &release, "usr/lib/os-release");
    text_set(labels, "os", release_value(str_text(&release), "ID", text));
    text_set(labels, "os-version", release_value(str_text(&release), "VERSION_ID", text));
    text_set(labels, "kernel", probe_line(p->root, text, "proc/sys/kernel/osrelease"));
    text_set(labels, "hostname", probe_line(p->root, text, "proc/sys/kernel/hostname"));
    json_object_set_new(p->doc, "labels", labels);
}

/* Boards have their model in the device tree; otherwise the CPU model is used. */
static void model_add(struct probe *p)
{
    CLEANUP(str) struct str info = {0};
    char text[PROBE_TEXT_MAX];
    static const char key[] = "model name\t: ";
    probe_line(p->root, text, "proc/device-tree/model");
    const char *at = !*text && probe_file(p->root, &info, "proc/cpuinfo") ? strstr(str_text(&info), key) : NULL;
    if (at)
        (void)snprintf(text, sizeof text, "%.*s", (int)strcspn(at + sizeof key - 1, "\n"), at + sizeof key - 1);
    text_set(p->doc, "model", text);
}

/* The qemu program for virtual machines on this architecture (vm.h). */
#ifdef __x86_64__
#define VM_HERE "qemu-system-x86_64"
#endif

static void runtimes_add(struct probe *p)
{
    static const char *const folders[] = {"usr/bin", "usr/sbin", "usr/local/bin", "usr/local/sbin", "bin", "sbin"};
    json_t *runtimes = json_pack("[s]", "process");
    bool oci = false;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        oci = oci || probe_exists(p->root, "%s/crun", folders[i]) || probe_exists(p->root, "%s/runc", folders[i]);
    if (oci)
        json_array_append_new(runtimes, json_string("oci"));
#ifdef VM_HERE
    if (probe_exists(p->root, "usr/bin/%s", VM_HERE) || probe_exists(p->root, "usr/local/bin/%s", VM_HERE))
        json_array_append_new(runtimes, json_string("vm"));
#endif
    json_object_set_new(p->doc, "runtimes", runtimes);
}

/* ---- reserved resources ----------------------------------------------------------------------------------------- */

static int reserve_take(json_t *allocatable, const char *resource, const char *amount, bool strict,
                        struct berth_err *err)
{
    char quoted[QUOTE_MAX];
    int64_t kept, has = 0;
    const json_t *value = json_object_get(allocatable, resource);
    int rc = quantity_parse_text(resource, amount, &kept, err);
    if (rc < 0) {
        err_prefix(err, "reserve: %s", shorten(resource, quoted));
        return rc;
    }
    if (!value)
        return strict ? err_set(err, EINVAL, "reserve: this machine has no %s", shorten(resource, quoted)) : 0;
    (void)quantity_parse(resource, value, &has, NULL);
    if (kept < 0 || (strict && kept > has))
        return err_set(err, EINVAL, "reserve: %s: %s is not between 0 and the capacity of this machine, %s",
                       shorten(resource, quoted), amount, json_string_value(value));
    json_object_set_new(allocatable, resource, probe_amount(resource, kept > has ? 0 : has - kept));
    return 0;
}

static int reserve_apply(json_t *allocatable, const char *reserve, struct berth_err *err)
{
    CLEANUP(mem) char *copy = mem_strdup(reserve ? reserve : RESERVE_DEFAULT);
    char *rest = copy, *part, quoted[QUOTE_MAX];
    while ((part = strsep(&rest, ","))) {
        part += strspn(part, " ");
        char *amount = strchr(part, '=');
        if (!*part)
            continue;
        if (!amount)
            return err_set(err, EINVAL, "reserve: %s: expected RESOURCE=AMOUNT, such as memory=256Mi",
                           quote(part, quoted));
        *amount++ = '\0';
        int rc = reserve_take(allocatable, part, amount, reserve != NULL, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

/* ---- whole machine ---------------------------------------------------------------------------------------------- */

/* Adds the size of the file system without the blocks reserved for root. */
static void storage_add(json_t *allocatable, const char *disk)
{
    struct statvfs fs;
    if (!disk || statvfs(disk, &fs) < 0)
        return;
    uint64_t blocks = (uint64_t)fs.f_blocks - ((uint64_t)fs.f_bfree - (uint64_t)fs.f_bavail);
    int64_t bytes = (int64_t)(blocks * (uint64_t)fs.f_frsize);
    json_object_set_new(allocatable, "storage", probe_amount("storage", bytes - bytes % MIB));
}

static int amounts_add(struct probe *p, const struct probe_config *config, struct berth_err *err)
{
    CLEANUP(str) struct str meminfo = {0};
    json_t *allocatable = json_object();
    json_object_set_new(p->doc, "allocatable", allocatable);
    int64_t cpus = cpus_count(p), quota = quota_milli(p);
    if (!probe_file(p->root, &meminfo, "proc/meminfo") || cpus == 0)
        return err_set(err, ENOENT,
                       "%s/proc/meminfo or /sys/devices/system/cpu/online cannot be read; mount /proc and /sys",
                       p->root);
    p->list = allocatable;
    probe_each(p->root, "sys/kernel/mm/hugepages", pool_add, p);
    json_object_set_new(allocatable, "cpu", probe_amount("cpu", cpus * 1000 < quota ? cpus * 1000 : quota));
    json_object_set_new(allocatable, "memory", probe_amount("memory", memory_bytes(p, str_text(&meminfo))));
    storage_add(allocatable, config->disk);
    if (config->bandwidth_bytes > 0)
        json_object_set_new(allocatable, "network", probe_amount("network", config->bandwidth_bytes));
    return reserve_apply(allocatable, config->reserve, err);
}

static void list_add(struct probe *p, const char *key, const char *path, void (*each)(void *ctx, const char *name))
{
    p->list = json_array();
    probe_each(p->root, path, each, p);
    json_object_set_new(p->doc, key, p->list);
}

static void plugins_add(struct probe *p, const struct probe_config *config)
{
    json_t *conditions = json_array();
    json_t *found = plugins_run(config->plugins, PLUGIN_TIMEOUT_NS, conditions);
    json_object_update(json_object_get(p->doc, "allocatable"), json_object_get(found, "resources"));
    json_object_update(json_object_get(p->doc, "labels"), json_object_get(found, "labels"));
    json_object_set(p->doc, "devices", json_object_get(found, "devices"));
    json_object_set_new(p->doc, "conditions", conditions);
    json_decref(found);
}

int probe_machine(const struct probe_config *config, json_t **ret, struct berth_err *err)
{
    CLEANUP(json) json_t *doc = json_object();
    const char *root = config->root ? config->root : "";
    struct probe p = {.root = root, .real = !*root, .doc = doc};
    char address[INET6_ADDRSTRLEN];
    int rc = amounts_add(&p, config, err);
    if (rc < 0)
        return rc;
    labels_add(&p);
    model_add(&p);
    list_add(&p, "numa", "sys/devices/system/node", numa_add);
    list_add(&p, "disks", "sys/block", disk_add);
    list_add(&p, "networks", "sys/class/net", network_add);
    runtimes_add(&p);
    if (address_find(&p, NULL, address))
        text_set(doc, "address", address);
    plugins_add(&p, config);
    *ret = take_ptr(&doc);
    return 0;
}
