/* run_doc.c - how a workload runs on its node: mounts, files, health checks, stopping, logs, restarts. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "wire/doc/objects.h"
#include "wire/text/quantity.h"
#include "wire/text/words.h"

enum {
    MOUNTS_MAX = 64,
    FILES_MAX = 64,
    FILE_BYTES_MAX = 128 * 1024,
    EXCLUSIVE_MAX = 16,
    EXCLUSIVE_NAMES_MAX = 256,
    LOG_FILES_MAX = 100,
    FAILURES_MAX = 1000,
    RETRIES_MAX = 1000,
    MODE_MAX = 0777,
};
#define SECOND_NS INT64_C(1000000000)
#define HOUR_NS (3600 * SECOND_NS)
#define LOG_BYTES_MIN INT64_C(4096)
#define LOG_BYTES_MAX (INT64_C(1) << 40)

/* ---- paths ------------------------------------------------------------------------------------------------------- */

int path_check(struct reader *r, const char *path)
{
    char quoted[QUOTE_MAX];
    if (*path != '/' || !path[1])
        return err_set(r->err, EINVAL, "expected an absolute path other than '/', found %s", quote(path, quoted));
    if (strlen(path) >= PATH_BYTES_MAX)
        return err_set(r->err, EINVAL, "has %zu bytes; at most %d are allowed", strlen(path), PATH_BYTES_MAX - 1);
    for (const char *at = path; *at;) {
        size_t len = strcspn(at, "/");
        if (len == 2 && at[0] == '.' && at[1] == '.')
            return err_set(r->err, EINVAL, "%s must not have '..' in it", quote(path, quoted));
        at += len + (at[len] == '/');
    }
    for (const char *at = path; *at; at++)
        if ((unsigned char)*at < 0x20 || *at == 0x7f)
            return err_set(r->err, EINVAL, "has a control character at byte %zu", (size_t)(at - path) + 1);
    return 0;
}

int absolute_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const char *path = NULL;
    int rc = text_of(r, value, &path);
    if (rc == 0)
        rc = path_check(r, path);
    if (rc == 0)
        *(const char **)key_field(key, object) = path;
    return rc;
}

/* ---- mounts ------------------------------------------------------------------------------------------------------ */

static int size_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int64_t bytes = 0;
    int rc = amount_of(r, "memory", value, &bytes);
    if (rc == 0 && (bytes == 0 || bytes > BERTH_AMOUNT_MAX))
        return expected(r, "a size like 64Mi", value);
    if (rc == 0)
        *(int64_t *)key_field(key, object) = bytes;
    return rc;
}

#define AT(field) offsetof(struct work_mount, field)
static const struct key mount_rows[] = {
    KEY("path", "path", "path in the instance; required", absolute_read, .at = AT(path)),
    KEY("read_only", "true or false", "read-only", bool_read, .at = AT(read_only)),
    KEY("volume", "text", "volume to mount", line_read, .at = AT(volume)),
    KEY("bind", "path", "file or folder of the node; needs the permission `nodes: all`", absolute_read, .at = AT(bind)),
    KEY("tmpfs", "amount", "memory of this size, deleted with the instance", size_read, .at = AT(tmpfs_bytes)),
};
#undef AT
static KEY_TABLE(mount_keys, "mount", mount_rows);

static int mount_finish(struct reader *r, void *item)
{
    const struct work_mount *m = item;
    bool volume = m->volume && *m->volume;
    if (!m->path)
        return missing(r, "path");
    return volume + (m->bind != NULL) + (m->tmpfs_bytes > 0) == 1
               ? 0
               : err_set(r->err, EINVAL, "expected one of volume, bind and tmpfs");
}
static const struct object_kind mount_kind = {.table = &mount_keys,
                                              .size = sizeof(struct work_mount),
                                              .finish = mount_finish};

static int list_bounded(struct reader *r, const json_t *value, size_t max, const char *what)
{
    if (json_array_size(value) <= max)
        return 0;
    return err_set(r->err, EINVAL, "%zu %s; at most %zu are allowed", json_array_size(value), what, max);
}

static int mounts_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int rc = list_bounded(r, value, MOUNTS_MAX, "mounts");
    return rc < 0 ? rc : objects_read(r, key, value, object);
}

/* ---- files ------------------------------------------------------------------------------------------------------- */

/* Reads a file mode in octal digits; a number is taken as these digits. */
static int mode_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const char *text = NULL;
    int rc = text_of(r, value, &text);
    if (rc < 0)
        return rc;
    uint32_t mode = 0;
    size_t len = strlen(text);
    bool good = len > 0 && len <= 5 && strspn(text, "01234567") == len;
    for (size_t i = 0; good && i < len; i++)
        mode = mode * 8 + (uint32_t)(text[i] - '0');
    if (!good || mode > MODE_MAX)
        return expected(r, "octal digits like \"0644\"", value);
    *(uint32_t *)key_field(key, object) = mode;
    return 0;
}

static int file_text_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_string(value))
        return expected(r, "text", value);
    if (json_string_length(value) > FILE_BYTES_MAX)
        return err_set(r->err, EINVAL, "has %zu bytes; at most %d are allowed", json_string_length(value),
                       FILE_BYTES_MAX);
    return text_read(r, key, value, object);
}

#define AT(field) offsetof(struct work_file, field)
static const struct key file_rows[] = {
    KEY("path", "path", "path in the instance; required", absolute_read, .at = AT(path)),
    KEY("mode", "text", "octal, like \"0640\"; default: \"0644\", for a secret \"0400\"", mode_read, .at = AT(mode)),
    KEY("text", "text", "content", file_text_read, .at = AT(text)),
    KEY("secret", "text", "instead of text: a secret of the owner ...", line_read, .at = AT(secret)),
    KEY("key", "text", "... and which key of it", line_read, .at = AT(key)),
};
#undef AT
static KEY_TABLE(file_keys, "file", file_rows);

static const struct work_file file_initial = {.mode = UINT32_MAX};

static int file_finish(struct reader *r, void *item)
{
    struct work_file *f = item;
    if (!f->path)
        return missing(r, "path");
    if ((f->text != NULL) == (f->secret != NULL))
        return err_set(r->err, EINVAL, "expected text, or secret and key");
    if (f->secret && (!*f->secret || !f->key || !*f->key))
        return missing(r, *f->secret ? "key" : "secret");
    if (f->key && !f->secret)
        return err_set(r->err, EINVAL, "key: needs secret");
    if (f->mode == UINT32_MAX)
        f->mode = f->secret ? 0400 : 0644;
    return 0;
}
static const struct object_kind file_kind = {.table = &file_keys,
                                             .size = sizeof(struct work_file),
                                             .initial = &file_initial,
                                             .finish = file_finish};

static int files_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int rc = list_bounded(r, value, FILES_MAX, "files");
    return rc < 0 ? rc : objects_read(r, key, value, object);
}

/* ---- health ------------------------------------------------------------------------------------------------------ */

static int interval_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int64_t ns = 0;
    int rc = duration_read(r, &(struct key){0}, value, &ns);
    if (rc == 0 && ns > 24 * HOUR_NS)
        return expected(r, "a duration of at most 24h", value);
    if (rc == 0)
        *(int64_t *)key_field(key, object) = ns;
    return rc;
}

static int http_path_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int rc = line_read(r, key, value, object);
    const char *path = *(const char **)key_field(key, object);
    if (rc == 0 && (*path != '/' || strchr(path, ' ')))
        return expected(r, "a path like /healthz", value);
    return rc;
}

#define AT(field) offsetof(struct health_rule, field)
static const struct key probe_target_rows[] = {
    KEY("endpoint", "text", "endpoint of the app; required", line_read, .at = AT(endpoint)),
    KEY("path", "text", "default: `/`", http_path_read, .at = AT(path)),
};
static KEY_TABLE(http_keys, "http", probe_target_rows);
static const struct key_table tcp_keys = {.name = "tcp", .keys = probe_target_rows, .len = 1};

static int probe_kind_check(struct reader *r, const struct health_rule *h)
{
    return h->how == HEALTH_NONE ? 0 : err_set(r->err, EINVAL, "expected one of exec, http and tcp");
}

static int exec_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    struct health_rule *h = object;
    int rc = probe_kind_check(r, h);
    if (rc == 0)
        rc = command_read(r, key, value, object);
    if (rc == 0 && h->exec_len == 0)
        return expected(r, "a program and its arguments", value);
    h->how = HEALTH_EXEC;
    return rc;
}

/* Reads {endpoint, path}, or only the endpoint. */
static int probe_target_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    static const struct key endpoint = {.at = AT(endpoint)};
    struct health_rule *h = object;
    const struct key_table *table = key->arg;
    int rc = probe_kind_check(r, h);
    if (rc == 0)
        rc = json_is_string(value) ? line_read(r, &endpoint, value, h) : table_read(r, value, table, h);
    if (rc == 0 && (!h->endpoint || !*h->endpoint))
        return missing(r, "endpoint");
    h->how = table == &http_keys ? HEALTH_HTTP : HEALTH_TCP;
    return rc;
}

static int failures_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > FAILURES_MAX)
        return expected(r, "a whole number from 1 to 1000", value);
    return u32_read(r, key, value, object);
}

static const struct key health_rows[] = {
    KEY("exec", "list of texts", "a program in the instance that exits with 0", exec_read, .at = AT(exec),
        .len_at = AT(exec_len)),
    KEY("http", "{`endpoint`, `path`}", "a status of 200 to 399; short form: the name of the endpoint",
        probe_target_read, .arg = &http_keys),
    KEY("tcp", "{`endpoint`}", "a connection; short form: the name of the endpoint", probe_target_read,
        .arg = &tcp_keys),
    KEY("every", "duration", "default: 10s", interval_read, .at = AT(every_ns)),
    KEY("timeout", "duration", "default: 2s, or half of `every`", interval_read, .at = AT(timeout_ns)),
    KEY("delay", "duration", "before the first one; default: none", interval_read, .at = AT(delay_ns)),
    KEY("failures", "1 to 1000", "consecutive failures before the instance is not ready; default: 3", failures_read,
        .at = AT(failures)),
};
#undef AT
static KEY_TABLE(health_keys, "health", health_rows);

static int health_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    struct health_rule h = {.every_ns = 10 * SECOND_NS, .failures = 3, .path = "/"};
    int rc = table_read(r, value, &health_keys, &h);
    if (rc < 0)
        return rc;
    if (h.how == HEALTH_NONE)
        return err_set(r->err, EINVAL, "expected one of exec, http and tcp");
    if (h.every_ns < SECOND_NS / 10 || (h.timeout_ns && h.timeout_ns < SECOND_NS / 1000))
        return err_set(r->err, EINVAL, "every: at least 100ms, and a timeout of at least 1ms");
    if (h.timeout_ns >= h.every_ns)
        return err_set(r->err, EINVAL, "timeout: must be shorter than every");
    if (!h.timeout_ns)
        h.timeout_ns = h.every_ns / 2 < 2 * SECOND_NS ? h.every_ns / 2 : 2 * SECOND_NS;
    *(struct health_rule *)key_field(key, object) = h;
    return 0;
}

/* ---- stopping ---------------------------------------------------------------------------------------------------- */

static const char *const signal_names[] = {
    "HUP",  "INT",  "QUIT", "ILL",    "TRAP",   "ABRT",  "BUS",  "FPE",  "KILL", "USR1", "SEGV",
    "USR2", "PIPE", "ALRM", "TERM",   "STKFLT", "CHLD",  "CONT", "STOP", "TSTP", "TTIN", "TTOU",
    "URG",  "XCPU", "XFSZ", "VTALRM", "PROF",   "WINCH", "IO",   "PWR",  "SYS",
};

const char *signal_name_find(const char *text)
{
    if (strncasecmp(text, "SIG", 3) == 0)
        text += 3;
    for (size_t i = 0; i < sizeof signal_names / sizeof *signal_names; i++)
        if (strcasecmp(signal_names[i], text) == 0)
            return signal_names[i];
    return NULL;
}

int signal_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    const char *name = json_is_string(value) ? signal_name_find(json_string_value(value)) : NULL;
    if (!name)
        return expected(r, "the name of a signal, like TERM", value);
    *(const char **)key_field(key, object) = name;
    return 0;
}

#define AT(field) offsetof(struct stop_rule, field)
static const struct key stop_rows[] = {
    KEY("signal", "text", "stop signal; default: `TERM`", signal_read, .at = AT(signal)),
    KEY("grace", "duration", "time until SIGKILL; default: 10s", interval_read, .at = AT(grace_ns)),
    KEY("delay", "duration",
        "time between removal from `service_info` and the signal; default: 2s, none without "
        "endpoints",
        interval_read, .at = AT(delay_ns)),
};
#undef AT
static KEY_TABLE(stop_keys, "stop", stop_rows);

static int stop_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    struct stop_rule stop = {.given = true, .signal = "TERM", .grace_ns = 10 * SECOND_NS, .delay_ns = -1};
    int rc = table_read(r, value, &stop_keys, &stop);
    if (rc == 0)
        *(struct stop_rule *)key_field(key, object) = stop;
    return rc;
}

/* ---- logs -------------------------------------------------------------------------------------------------------- */

static int log_size_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    int64_t bytes = 0;
    int rc = amount_of(r, "memory", value, &bytes);
    if (rc == 0 && (bytes < LOG_BYTES_MIN || bytes > LOG_BYTES_MAX))
        return expected(r, "a size from 4Ki to 1Ti", value);
    if (rc == 0)
        *(int64_t *)key_field(key, object) = bytes;
    return rc;
}

static int log_files_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 1 || json_integer_value(value) > LOG_FILES_MAX)
        return expected(r, "a whole number from 1 to 100", value);
    return u32_read(r, key, value, object);
}

#define AT(field) offsetof(struct log_rule, field)
static const struct key log_rows[] = {
    KEY("size", "amount", "maximum size of one file; default: 10Mi", log_size_read, .at = AT(bytes)),
    KEY("files", "1 to 100", "number of files to keep; default: 2", log_files_read, .at = AT(files)),
    KEY("keep", "duration", "time for which the log is kept after the end, if the node has space", duration_read,
        .at = AT(keep_ns)),
};
#undef AT
static KEY_TABLE(log_keys, "log", log_rows);

static int log_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    struct log_rule log = {.bytes = INT64_C(10) << 20, .files = 2};
    int rc = table_read(r, value, &log_keys, &log);
    if (rc == 0)
        *(struct log_rule *)key_field(key, object) = log;
    return rc;
}

/* ---- resource limits of processes, and exclusive resources ------------------------------------------------------ */

static const char *const rlimit_names[] = {
    "as",   "core",   "cpu",   "data", "fsize",  "locks",  "memlock",    "msgqueue",
    "nice", "nofile", "nproc", "rss",  "rtprio", "rttime", "sigpending", "stack",
};

static const char *rlimit_candidate(const void *ctx, size_t i)
{
    (void)ctx;
    return i < sizeof rlimit_names / sizeof *rlimit_names ? rlimit_names[i] : NULL;
}

static int rlimits_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_object(value))
        return expected(r, "an object like {nofile: 4096}", value);
    struct berth_amount *limits = ARENA_ARRAY(r->arena, struct berth_amount, json_object_size(value));
    size_t len = 0;
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)value, name, member)
    {
        char quoted[QUOTE_MAX];
        size_t i = 0;
        while (rlimit_candidate(NULL, i) && strcmp(rlimit_names[i], name) != 0)
            i++;
        if (!rlimit_candidate(NULL, i)) {
            const char *guess = suggest(name, rlimit_candidate, NULL);
            return err_set(r->err, EINVAL, "there is no limit %s%s%s%s", quote(name, quoted),
                           guess ? "; did you mean \"" : "", guess ? guess : "", guess ? "\"?" : "");
        }
        limits[len].resource = rlimit_names[i];
        int rc = amount_of(r, "memory", member, &limits[len].amount);
        if (rc < 0)
            return in_member(r, name, rc);
        len++;
    }
    list_set(key, object, limits, len);
    return 0;
}

static int exclusive_names(struct reader *r, const json_t *value, struct exclusive_rule *to)
{
    static const struct key into = {.at = 0};
    bool alone = json_is_string(value);
    size_t len = alone ? 1 : json_array_size(value);
    if ((!alone && !json_is_array(value)) || len == 0 || len > EXCLUSIVE_NAMES_MAX)
        return expected(r, "a list of 1 to 256 names", value);
    const char **names = ARENA_ARRAY(r->arena, const char *, len);
    for (size_t i = 0; i < len; i++) {
        int rc = line_read(r, &into, alone ? value : json_array_get(value, i), &names[i]);
        if (rc == 0 && !*names[i])
            rc = err_set(r->err, EINVAL, "expected a name, found \"\"");
        for (size_t j = 0; rc == 0 && j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                rc = err_set(r->err, EINVAL, "%s is listed twice", names[i]);
        if (rc < 0)
            return in_item(r, i, rc);
    }
    to->names = names;
    to->names_len = len;
    return 0;
}

static int exclusive_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_object(value) || json_object_size(value) > EXCLUSIVE_MAX)
        return expected(r, "an object like {card: [card0, card1]}, of at most 16 resources", value);
    struct exclusive_rule *rules = ARENA_ARRAY(r->arena, struct exclusive_rule, json_object_size(value));
    size_t len = 0;
    const char *name;
    json_t *member;
    json_object_foreach((json_t *)value, name, member)
    {
        char quoted[QUOTE_MAX];
        size_t bytes = strlen(name);
        if (bytes == 0 || bytes > BERTH_NAME_MAX)
            return err_set(r->err, EINVAL, "%s is not a valid resource name", quote(name, quoted));
        rules[len].resource = text_keep(r, name);
        int rc = exclusive_names(r, member, &rules[len++]);
        if (rc < 0)
            return in_member(r, name, rc);
    }
    list_set(key, object, rules, len);
    return 0;
}

/* ---- restarts --------------------------------------------------------------------------------------------------- */

static const struct enum_word restart_words[] = {
    {"always",     RESTART_ALWAYS    },
    {"on-failure", RESTART_ON_FAILURE},
    {"never",      RESTART_NEVER     },
    {NULL,         0                 },
};

static const struct enum_word pull_words[] = {
    {"missing", PULL_MISSING},
    {"always",  PULL_ALWAYS },
    {NULL,      0           },
};

static const struct enum_word run_as_words[] = {
    {"image", RUN_AS_IMAGE},
    {"owner", RUN_AS_OWNER},
    {NULL,    0           },
};

static int retries_read(struct reader *r, const struct key *key, const json_t *value, void *object)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > RETRIES_MAX)
        return expected(r, "a whole number from 0 to 1000", value);
    return i32_read(r, key, value, object);
}

#define AT(field) offsetof(struct work_run, field)
#define LIST(field) .at = AT(field), .len_at = AT(field##_len)
static const struct key run_rows[] = {
    KEY("rootfs", "path", "instead of an image: a folder of the node; needs the permission `nodes: all`", absolute_read,
        .at = AT(rootfs)),
    KEY("vm", "{`disk`, `sha256`, `kernel`, `initrd`, `append`, `accel`}",
        "virtual machine settings; the runtime is `vm`", vm_read, .at = AT(vm)),
    KEY("pull", "`missing` or `always`", "when to pull an image that the node has; default: `missing`", word_read,
        .at = AT(pull), .arg = pull_words),
    KEY("run_as", "`image` or `owner`",
        "user of an image: the one that it names, or root, in a user namespace if the node supports it; or the "
        "node user of the owner; default: `image`",
        word_read, .at = AT(run_as), .arg = run_as_words),
    KEY("mounts", "list of [mount](#mount)", "mounted volumes, memory and folders", mounts_read, LIST(mounts),
        .arg = &mount_kind),
    KEY("files", "list of [file](#file)", "files, including secrets", files_read, LIST(files), .arg = &file_kind),
    KEY("health", "{`exec`, `http` or `tcp`; `every`, `timeout`, `delay`, `failures`}", "readiness check", health_read,
        .at = AT(health)),
    KEY("stop", "{`signal`, `grace`, `delay`}", "how it is stopped", stop_read, .at = AT(stop)),
    KEY("log", "{`size`, `files`, `keep`}", "retention of its output", log_read, .at = AT(log)),
    KEY("rlimits", "{name: number}", "limits of its processes: `nofile`, `core`, `stack` and so on", rlimits_read,
        LIST(rlimits)),
    KEY("exclusive", "{resource: list of names}",
        "the first of these that is free on the node is allocated "
        "exclusively",
        exclusive_read, LIST(exclusive)),
    KEY("restart_policy", "`always`, `on-failure` or `never`",
        "when to restart it; default: `always`, for a job `on-failure`", word_read, .at = AT(restart_policy),
        .arg = restart_words),
    KEY("retries", "0 to 1000", "for a job: number of retries after failures; default: 3", retries_read,
        .at = AT(retries)),
};
#undef LIST
#undef AT
KEY_TABLE(run_keys, "run", run_rows);
const struct key_table *const run_tables[] = {&mount_keys, &file_keys, &health_keys, &stop_keys,
                                              &log_keys,   &vm_keys,   NULL};

/* ---- the whole document ----------------------------------------------------------------------------------------- */

static int paths_differ(struct reader *r, const struct work_run *run)
{
    size_t len = run->mounts_len + run->files_len;
    for (size_t i = 0; i < len; i++) {
        const char *path = i < run->mounts_len ? run->mounts[i].path : run->files[i - run->mounts_len].path;
        for (size_t j = 0; j < i; j++) {
            const char *other = j < run->mounts_len ? run->mounts[j].path : run->files[j - run->mounts_len].path;
            if (strcmp(path, other) == 0)
                return err_set(r->err, EINVAL, "%s: %.80s is listed twice", i < run->mounts_len ? "mounts" : "files",
                               path);
        }
    }
    return 0;
}

/* Adds mounted volumes to the shape, because the node must have access to them. */
static void volumes_add(struct reader *r, const struct work_run *run, struct berth_shape *shape)
{
    const char **volumes = ARENA_ARRAY(r->arena, const char *, shape->volumes_len + run->mounts_len);
    size_t len = 0;
    for (; len < shape->volumes_len; len++)
        volumes[len] = shape->volumes[len];
    for (size_t i = 0; i < run->mounts_len; i++) {
        const char *volume = run->mounts[i].volume;
        bool known = !volume;
        for (size_t j = 0; j < len && !known; j++)
            known = strcmp(volumes[j], volume) == 0;
        if (!known)
            volumes[len++] = volume;
    }
    shape->volumes = volumes;
    shape->volumes_len = len;
}

int run_finish(struct reader *r, const struct work_doc *d, struct berth_shape *shape)
{
    const struct work_run *run = &d->run;
    bool known = run->health.how != HEALTH_HTTP && run->health.how != HEALTH_TCP;
    for (size_t i = 0; i < d->endpoints_len && !known; i++)
        known = strcmp(d->endpoints[i].name, run->health.endpoint) == 0;
    if (!known)
        return err_set(r->err, EINVAL, "health: there is no endpoint %.80s", run->health.endpoint);
    if (run->rootfs && d->image)
        return err_set(r->err, EINVAL, "rootfs: cannot be combined with an image");
    if (run->pull && !d->image)
        return err_set(r->err, EINVAL, "pull: needs an image");
    if (run->run_as && !d->image)
        return err_set(r->err, EINVAL, "run_as: needs an image; other work always runs as its owner");
    int rc = paths_differ(r, run);
    if (rc == 0 && run->mounts_len)
        volumes_add(r, run, shape);
    return rc;
}
