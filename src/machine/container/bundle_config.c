/* bundle_config.c - generates config.json for an OCI runtime. */
#include "machine/container/bundle_config.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/launch/syscalls.h"
#include "wire/text/document.h"

#define USUAL_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

static const json_t *image_setting(const struct bundle_inputs *w, const char *key)
{
    return json_object_get(json_object_get(w->image, "config"), key);
}

static json_t *texts(const char *const *list, size_t len)
{
    json_t *array = json_array();
    for (size_t i = 0; i < len; i++)
        (void)json_array_append_new(array, json_string(list[i]));
    return array;
}

#define TEXTS(...)                                                                                                     \
    texts((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ---- process ---------------------------------------------------------------------------------------------------- */

static void append(json_t *to, const json_t *list)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        (void)json_array_append(to, json_array_get(list, i));
}

static int args_make(const struct bundle_inputs *w, json_t **ret, struct berth_err *err)
{
    CLEANUP(json) json_t *args = json_array();
    const json_t *command = json_object_get(w->config, "command");
    if (json_array_size(command)) {
        append(args, command);
    } else {
        append(args, image_setting(w, "Entrypoint"));
        append(args, image_setting(w, "Cmd"));
    }
    if (json_array_size(args) == 0)
        return err_set(err, EINVAL, "the image has no default command: set a command");
    for (size_t i = 0; i < json_array_size(args); i++) {
        const json_t *one = json_array_get(args, i);
        const char *text = json_string_value(one);
        if (!text || strlen(text) != json_string_length(one))
            return err_set(err, EINVAL, "command: expected a list of strings");
    }
    if (!*json_string_value(json_array_get(args, 0)))
        return err_set(err, EINVAL, "command: the program's name is empty");
    *ret = json_incref(args);
    return 0;
}

/* Replaces the variable of the same name, or adds one. Entries without a name are ignored. */
static void env_set(json_t *env, const char *entry)
{
    size_t len = strcspn(entry, "=");
    if (len == 0 || entry[len] != '=')
        return;
    for (size_t i = 0; i < json_array_size(env); i++)
        if (strncmp(json_string_value(json_array_get(env, i)), entry, len + 1) == 0) {
            (void)json_array_set_new(env, i, json_string_nocheck(entry));
            return;
        }
    (void)json_array_append_new(env, json_string_nocheck(entry));
}

/* -EINVAL: a value is not UTF-8 and cannot be written to a JSON file. */
static int env_make(const struct bundle_inputs *w, json_t **ret, struct berth_err *err)
{
    CLEANUP(json) json_t *env = json_array();
    const json_t *own = image_setting(w, "Env");
    env_set(env, USUAL_PATH);
    for (size_t i = 0; i < json_array_size(own); i++) {
        const char *entry = json_string_value(json_array_get(own, i));
        if (entry)
            env_set(env, entry);
    }
    for (const char *const *e = w->options->env; e && *e; e++) {
        if (!str_utf8_valid(*e, strlen(*e)))
            return err_set(err, EINVAL, "env %.*s: must be UTF-8 in a container", (int)strcspn(*e, "="), *e);
        env_set(env, *e);
    }
    char fds[48];
    (void)snprintf(fds, sizeof fds, "LISTEN_FDS=%zu", w->options->sockets_len);
    if (w->options->sockets_len) {
        env_set(env, fds);
        env_set(env, "LISTEN_PID=1");
    }
    (void)snprintf(fds, sizeof fds, "BERTH_PROGRESS_FD=%zu", 3 + w->options->sockets_len);
    env_set(env, fds);
    *ret = json_incref(env);
    return 0;
}

static const char *cwd_find(const struct bundle_inputs *w)
{
    const char *given = json_string_value(json_object_get(w->config, "workdir"));
    const char *own = json_string_value(image_setting(w, "WorkingDir"));
    if (given && given[0] == '/')
        return given;
    return own && own[0] == '/' ? own : "/";
}

static json_t *rlimits_make(const struct bundle_options *o)
{
    static const struct {
        int resource;
        const char *name;
    } rows[] = {
        {RLIMIT_AS,         "RLIMIT_AS"        },
        {RLIMIT_CORE,       "RLIMIT_CORE"      },
        {RLIMIT_CPU,        "RLIMIT_CPU"       },
        {RLIMIT_DATA,       "RLIMIT_DATA"      },
        {RLIMIT_FSIZE,      "RLIMIT_FSIZE"     },
        {RLIMIT_LOCKS,      "RLIMIT_LOCKS"     },
        {RLIMIT_NICE,       "RLIMIT_NICE"      },
        {RLIMIT_MEMLOCK,    "RLIMIT_MEMLOCK"   },
        {RLIMIT_MSGQUEUE,   "RLIMIT_MSGQUEUE"  },
        {RLIMIT_NOFILE,     "RLIMIT_NOFILE"    },
        {RLIMIT_NPROC,      "RLIMIT_NPROC"     },
        {RLIMIT_RSS,        "RLIMIT_RSS"       },
        {RLIMIT_RTPRIO,     "RLIMIT_RTPRIO"    },
        {RLIMIT_RTTIME,     "RLIMIT_RTTIME"    },
        {RLIMIT_SIGPENDING, "RLIMIT_SIGPENDING"},
        {RLIMIT_STACK,      "RLIMIT_STACK"     },
    };
    json_t *list = json_array();
    for (size_t i = 0; i < o->rlimits_len; i++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
            if (rows[k].resource == o->rlimits[i].resource)
                (void)json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "type", rows[k].name, "hard",
                                                            json_integer((json_int_t)o->rlimits[i].hard), "soft",
                                                            json_integer((json_int_t)o->rlimits[i].soft)));
    return list;
}

static json_t *user_make(const struct instance_user *user)
{
    json_t *groups = json_array();
    for (size_t i = 0; i < user->groups_len; i++)
        (void)json_array_append_new(groups, json_integer(user->groups[i]));
    return json_pack("{s:I, s:I, s:o}", "uid", (json_int_t)user->uid, "gid", (json_int_t)user->gid, "additionalGids",
                     groups);
}

/* Returns the image's user in the namespace's numbers, with the groups of the image and of the owner. */
static json_t *user_inside(const struct container_ids *inside, const struct instance_user *owner)
{
    const struct image_user *user = &inside->user;
    json_t *groups = json_array();
    uint32_t number;
    for (size_t i = 0; i < user->groups_len; i++)
        if (id_map_out(&inside->maps.gids, user->groups[i], &number))
            (void)json_array_append_new(groups, json_integer(user->groups[i]));
    for (size_t i = 0; i < owner->groups_len; i++)
        if (owner->groups[i] != owner->gid && id_map_in(&inside->maps.gids, owner->groups[i], &number))
            (void)json_array_append_new(groups, json_integer(number));
    return json_pack("{s:I, s:I, s:o}", "uid", (json_int_t)user->uid, "gid", (json_int_t)user->gid, "additionalGids",
                     groups);
}

/* Root of a user namespace gets the capabilities that apply to users and files of that namespace; other users get
 * none. */
static json_t *capabilities_make(const struct container_ids *inside)
{
    if (!inside || inside->user.uid != 0)
        return json_pack("{s:[], s:[], s:[], s:[], s:[]}", "bounding", "effective", "inheritable", "permitted",
                         "ambient");
    json_t *some = TEXTS("CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID",
                         "CAP_SETPCAP", "CAP_SETUID");
    json_t *made = json_pack("{s:O, s:O, s:[], s:O, s:[]}", "bounding", some, "effective", some, "inheritable",
                             "permitted", some, "ambient");
    json_decref(some);
    return made;
}

static int process_make(const struct bundle_inputs *w, json_t **ret, struct berth_err *err)
{
    CLEANUP(json) json_t *args = NULL, *env = NULL;
    int rc = args_make(w, &args, err);
    rc = rc < 0 ? rc : env_make(w, &env, err);
    if (rc < 0)
        return rc;
    json_t *user = w->inside ? user_inside(w->inside, w->options->user) : user_make(w->options->user);
    *ret = json_pack("{s:b, s:o, s:O, s:O, s:s, s:o, s:o, s:b}", "terminal", 0, "user", user, "args", args, "env", env,
                     "cwd", cwd_find(w), "capabilities", capabilities_make(w->inside), "rlimits",
                     rlimits_make(w->options), "noNewPrivileges", 1);
    return *ret ? 0 : err_set(err, EINVAL, "command, env or workdir: not valid UTF-8");
}

/* ---- mounts and devices ----------------------------------------------------------------------------------------- */

static json_t *mount_make(const char *target, const char *type, const char *source, json_t *options)
{
    return json_pack("{s:s, s:s, s:s, s:o}", "destination", target, "type", type, "source", source, "options", options);
}

static bool is_target(const struct bundle_options *o, const char *path)
{
    for (size_t i = 0; i < o->mounts_len; i++)
        if (strcmp(o->mounts[i].target, path) == 0)
            return true;
    return false;
}

static json_t *usual_mounts(const struct bundle_inputs *w)
{
    json_t *list = json_array();
    const struct {
        json_t *mount;
    } rows[] = {
        {mount_make("/proc", "proc", "proc", TEXTS("nosuid", "noexec", "nodev"))},
        {mount_make("/dev", "tmpfs", "tmpfs", TEXTS("nosuid", "strictatime", "mode=755", "size=65536k"))},
        {mount_make("/dev/pts", "devpts", "devpts",
                    TEXTS("nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"))},
        {mount_make("/dev/shm", "tmpfs", "shm", TEXTS("nosuid", "noexec", "nodev", "mode=1777", "size=65536k"))},
        {mount_make("/dev/mqueue", "mqueue", "mqueue", TEXTS("nosuid", "noexec", "nodev"))},
        {w->gate ? mount_make("/sys", "bind", w->gate->sys, TEXTS("bind", "nosuid", "noexec", "nodev", "ro", "private"))
                 : mount_make("/sys", "sysfs", "sysfs", TEXTS("nosuid", "noexec", "nodev", "ro"))},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        (void)json_array_append_new(list, rows[i].mount);
    if (w->resolver && !is_target(w->options, "/etc/resolv.conf"))
        (void)json_array_append_new(list, mount_make("/etc/resolv.conf", "bind", "/etc/resolv.conf",
                                                     TEXTS("bind", "ro", "nosuid", "nodev", "noexec", "private")));
    if (w->hosts && !is_target(w->options, "/etc/hosts"))
        (void)json_array_append_new(list, mount_make("/etc/hosts", "bind", "/etc/hosts",
                                                     TEXTS("bind", "ro", "nosuid", "nodev", "noexec", "private")));
    return list;
}

static json_t *own_mount(const struct launch_mount *m)
{
    bool bind = !m->type || strcmp(m->type, "bind") == 0;
    json_t *options = bind ? TEXTS("bind", "nosuid", "nodev", "private") : TEXTS("nosuid", "nodev");
    (void)json_array_append_new(options, json_string(m->read_only ? "ro" : "rw"));
    for (const char *at = m->data; at && *at;) {
        size_t len = strcspn(at, ",");
        if (len)
            (void)json_array_append_new(options, json_stringn(at, len));
        at += len + (at[len] == ',');
    }
    return mount_make(m->target, bind ? "bind" : m->type, m->source ? m->source : m->type, options);
}

static json_t *mounts_list(const struct bundle_inputs *w)
{
    const struct bundle_options *o = w->options;
    json_t *list = usual_mounts(w);
    for (size_t i = 0; i < o->mounts_len; i++)
        (void)json_array_append_new(list, own_mount(w->gate ? &w->gate->mounts[i] : &o->mounts[i]));
    for (size_t i = 0; w->gate && i < o->devices_len; i++)
        (void)json_array_append_new(list, mount_make(o->devices[i].path, "bind", w->gate->devices[i],
                                                     TEXTS("bind", "nosuid", "noexec", "private")));
    return list;
}

/* The rules of machine/launch/syscalls.h in the format of OCI runtimes. */
static json_t *seccomp_make(void)
{
    json_t *rows = json_array();
    for (size_t i = 0; i < syscall_rules_len; i++) {
        const struct syscall_rule *r = &syscall_rules[i];
        json_int_t value = r->value;
        json_t *row = json_pack("{s:[s], s:s, s:i}", "names", r->name, "action", "SCMP_ACT_ERRNO", "errnoRet", r->code);
        if (r->test != CALL_ANY) /* masked: the bits of `value`, compared with `valueTwo` */
            (void)json_object_set_new(row, "args",
                                      json_pack("[{s:i, s:I, s:I, s:s}]", "index", (int)r->argument, "value", value,
                                                "valueTwo", value, "op",
                                                r->test == CALL_BIT ? "SCMP_CMP_MASKED_EQ" : "SCMP_CMP_EQ"));
        (void)json_array_append_new(rows, row);
    }
    return json_pack("{s:s, s:o}", "defaultAction", "SCMP_ACT_ALLOW", "syscalls", rows);
}

/* Allows only these devices besides the runtime's default ones. The runtime creates the device files if it can. */
static void devices_add(json_t *linux_part, const struct bundle_inputs *w)
{
    const struct bundle_options *o = w->options;
    json_t *files = json_array(), *rules = json_array();
    (void)json_array_append_new(rules, json_pack("{s:b, s:s}", "allow", 0, "access", "rwm"));
    for (size_t i = 0; i < o->devices_len; i++) {
        const struct nvml_file *d = &o->devices[i];
        (void)json_array_append_new(files, json_pack("{s:s, s:s, s:i, s:i, s:i, s:i, s:i}", "path", d->path, "type",
                                                     "c", "major", (int)d->major, "minor", (int)d->minor, "fileMode",
                                                     0666, "uid", 0, "gid", 0));
        (void)json_array_append_new(rules, json_pack("{s:b, s:s, s:i, s:i, s:s}", "allow", 1, "type", "c", "major",
                                                     (int)d->major, "minor", (int)d->minor, "access", "rw"));
    }
    if (!w->gate) /* otherwise they are bind mounts */
        (void)json_object_set(linux_part, "devices", files);
    json_decref(files);
    (void)json_object_set_new(linux_part, "resources", json_pack("{s:o}", "devices", rules));
}

static json_t *id_map_make(const struct id_map *map)
{
    json_t *list = json_array();
    for (size_t i = 0; i < map->len; i++)
        (void)json_array_append_new(list,
                                    json_pack("{s:I, s:I, s:I}", "containerID", (json_int_t)map->at[i].inside, "hostID",
                                              (json_int_t)map->at[i].outside, "size", (json_int_t)map->at[i].count));
    return list;
}

static json_t *linux_make(const struct bundle_inputs *w)
{
    static const char *const spaces[] = {"pid", "ipc", "uts", "mount", "cgroup", "user"};
    const struct bundle_options *o = w->options;
    json_t *namespaces = json_array();
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces - !w->inside; i++)
        (void)json_array_append_new(namespaces, json_pack("{s:s}", "type", spaces[i]));
    json_t *masked =
        TEXTS("/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
              "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap");
    json_t *read_only = TEXTS("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger");
    json_t *linux_part = json_pack("{s:o, s:o, s:o, s:s}", "namespaces", namespaces, "maskedPaths", masked,
                                   "readonlyPaths", read_only, "rootfsPropagation", "private");
    if (w->inside) {
        (void)json_object_set_new(linux_part, "uidMappings", id_map_make(&w->inside->maps.uids));
        (void)json_object_set_new(linux_part, "gidMappings", id_map_make(&w->inside->maps.gids));
    }
    if (o->cgroup_path)
        (void)json_object_set_new(linux_part, "cgroupsPath", json_string(o->cgroup_path));
    if (!o->all_syscalls)
        (void)json_object_set_new(linux_part, "seccomp", seccomp_make());
    if (o->devices_len)
        devices_add(linux_part, w);
    return linux_part;
}

/* Builds WORKLOAD-ORDINAL with the characters and the length that a host name allows. */
static void hostname_make(const json_t *config, char ret[static 64])
{
    const char *workload = json_string_value(json_object_get(config, "workload"));
    json_int_t ordinal = json_integer_value(json_object_get(config, "ordinal"));
    char tail[24];
    int tail_len = snprintf(tail, sizeof tail, "-%" PRId64, (int64_t)ordinal);
    size_t len = 0, most = (size_t)(63 - tail_len);
    for (const char *at = workload ? workload : "pod"; *at && len < most; at++) {
        bool plain = (*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9') || (*at >= 'A' && *at <= 'Z');
        ret[len] = plain || (*at == '.' && len) ? *at : '-';
        len++;
    }
    memcpy(ret + len, tail, (size_t)tail_len + 1);
}

int bundle_config(const struct bundle_inputs *words, json_t **ret, struct berth_err *err)
{
    json_t *process = NULL;
    char hostname[64];
    int rc = process_make(words, &process, err);
    if (rc < 0)
        return rc;
    hostname_make(words->config, hostname);
    json_t *config = json_pack("{s:s, s:o, s:{s:s, s:b}, s:s, s:o, s:o}", "ociVersion", "1.0.2", "process", process,
                               "root", "path", words->gate ? words->gate->root : "rootfs", "readonly", 0, "hostname",
                               hostname, "mounts", mounts_list(words), "linux", linux_make(words));
    if (!config)
        return err_set(err, EINVAL, "the path of a mount is not valid UTF-8");
    *ret = config;
    return 0;
}
