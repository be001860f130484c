/* api.h - the daemon's documents: what clients write and what the store contains, parsed by the same tables.
 *
 * A stored document is the client's document plus the keys that the daemon adds ("v", "id", "created", "generation",
 * ...; the `meta` table). Nodes, volumes, resources, profiles, workloads and instances share their keys with the
 * cluster file (objects.h). Strings in the results point into the document or the arena. A reader returns 0, or a
 * negative errno such as -EINVAL with the key named: `endpoints[1]: name: expected text, found 3`.
 *
 * To add a key: a row in its table, and a line in docs/api.md.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "berth.h"
#include "wire/doc/work_outcome.h"
#include "wire/text/keys.h"

struct doc_meta {
    int64_t version; /* "v" */
    const char *id;  /* a number becomes text */
    const char *display;
    int64_t created_ns;
    uint64_t generation;
};

enum { ENDPOINTS_MAX = 16, PORT_BASE = 10000, PORT_END = 32768, PORT_BLOCK = 16 };

enum endpoint_listen { LISTEN_PORT, LISTEN_SOCKET };

struct endpoint {
    const char *name;
    enum berth_protocol protocol;
    enum endpoint_listen listen;
    uint32_t guest; /* of a virtual machine: port inside the guest; 0: not given */
    bool eager;     /* "await": false: readiness does not wait until this port accepts connections */
};
/* Without a health check an app's instance is ready once each such port has accepted a connection. A socket passed to
 * the instance accepts from the start. */
static inline bool endpoint_awaited(const struct endpoint *e)
{
    return e->protocol == BERTH_TCP && e->listen == LISTEN_PORT && !e->guest && !e->eager;
}

/* ---- how a workload runs on its node (run_doc.c) ---- */

struct work_mount { /* exactly one of volume, bind and tmpfs */
    const char *path;
    bool read_only;
    const char *volume, *bind;
    int64_t tmpfs_bytes;
};

struct work_file { /* text, or secret and key */
    const char *path;
    uint32_t mode;
    const char *text, *secret, *key;
};

enum health_how { HEALTH_NONE, HEALTH_EXEC, HEALTH_HTTP, HEALTH_TCP };
struct health_rule {
    enum health_how how; /* NONE: not given */
    const char *const *exec;
    size_t exec_len;
    const char *endpoint, *path; /* for HTTP and TCP */
    int64_t every_ns, timeout_ns, delay_ns;
    uint32_t failures;
};

struct stop_rule {
    bool given;
    const char *signal; /* "TERM" */
    int64_t grace_ns;
    int64_t delay_ns; /* -1: not given */
};

struct log_rule {
    int64_t bytes; /* 0: not given */
    uint32_t files;
    int64_t keep_ns; /* after the instance's end; 0: the agent's default */
};

struct exclusive_rule {
    const char *resource;
    const char *const *names;
    size_t names_len;
};

enum pull_rule { PULL_DEFAULT, PULL_MISSING, PULL_ALWAYS };
enum run_as { RUN_AS_DEFAULT, RUN_AS_IMAGE, RUN_AS_OWNER };
enum restart_policy { RESTART_DEFAULT, RESTART_ALWAYS, RESTART_ON_FAILURE, RESTART_NEVER };
enum { RETRIES_DEFAULT = 3 };

enum vm_accel { ACCEL_AUTO, ACCEL_KVM, ACCEL_TCG };
const char *vm_accel_name(enum vm_accel accel);

struct vm_terms { /* vm_doc.c */
    bool given;
    int64_t disk_bytes; /* 0: the image's size */
    const char *sha256; /* hash of an image given as a URL */
    const char *kernel, *initrd, *append;
    enum vm_accel accel;
};

struct work_run {
    const char *rootfs;
    struct vm_terms vm;
    enum pull_rule pull;
    enum run_as run_as;
    const struct work_mount *mounts;
    size_t mounts_len;
    const struct work_file *files;
    size_t files_len;
    struct health_rule health;
    struct stop_rule stop;
    struct log_rule log;
    const struct berth_amount *rlimits;
    size_t rlimits_len;
    const struct exclusive_rule *exclusive;
    size_t exclusive_len;
    enum restart_policy restart_policy;
    int32_t retries; /* -1: not given */
};

/* Finds a signal by name, with or without SIG, ignoring case. Returns "TERM"; NULL: unknown. */
const char *signal_name_find(const char *text);

/* ---- keys of jobs only (job_doc.c) ------------------------------------------------------------------------------ */

enum { ARRAY_TASKS_MAX = 100000, AFTER_MAX = 64, NOTIFY_MAX = 16, ATTRIBUTES_MAX = 32 };

struct job_array { /* the task with an ordinal has the index from + step * ordinal */
    uint32_t from, to, step;
    uint32_t parallel; /* most concurrent tasks; 0: no limit */
    uint32_t count;    /* 0: not an array */
};

enum after_when { AFTER_OK, AFTER_STARTED, AFTER_FAILED, AFTER_ENDED };
const char *after_when_name(enum after_when when);
struct job_after {
    uint64_t job;
    enum after_when when;
};

enum { NOTIFY_STARTED = 1, NOTIFY_ENDED = 2, NOTIFY_FAILED = 4, NOTIFY_PREEMPTED = 8 };
struct job_notify {
    const char *to; /* mail address or URL */
    unsigned on;    /* bits of TOLD_* */
};

enum preempt_rule { PREEMPT_REQUEUE, PREEMPT_CANCEL };

struct job_checkpoint {
    const char *signal; /* NULL: none */
    int64_t grace_ns;
};

/* Keys that are not given: strings are NULL, times 0. */
struct job_terms {
    const char *queue;
    int64_t time_limit_ns, estimate_ns, deadline_ns, min_run_ns;
    int32_t urgency;
    bool preemptible, preempts, requeue; /* default true */
    enum preempt_rule preempt;
    struct job_checkpoint checkpoint;
    struct job_array array; /* the workload's replicas equal its count */
    const struct job_after *after;
    size_t after_len;
    bool singleton;
    uint32_t min, max; /* copied to the workload's gang_min and replicas */
    const char *role;
    uint64_t of; /* number of the set of jobs; 0: none */
    const char *type, *class_name, *network;
    int64_t parameters;
    const char *const *data;
    size_t data_len;
    const struct berth_label *attributes;
    size_t attributes_len;
    const struct job_notify *notify;
    size_t notify_len;
    bool interactive;
    /* Written by the daemon. */
    const char *cron;
    uint64_t attempt;    /* incremented when a user requeues the job */
    int64_t attained_ns; /* run time of earlier attempts */
    bool met;            /* its dependencies are fulfilled */
    bool waits;          /* has dependencies that are not fulfilled: counts as suspended */
    const char *held_by;
    int64_t started_ns, finished_ns;
};

/* Returns whether only jobs have this key. */
bool job_key_is(const char *name);

struct work_doc {
    struct doc_meta meta;
    /* Its id is that of the meta; the kind is not set. `suspended` is hold, stopped or cancelled. The owner is
     * prepended to a gang's name, so that no user can join another user's gang. */
    struct berth_workload workload;
    const char *name, *owner, *group;
    bool hold, stopped, system;
    bool cancelled; /* job cancelled by its user; counts as held forever */
    /* Ended by its restart policy: a job forever, an app or vm until it is started again. */
    bool failed, ended;
    enum work_outcome outcome;
    const char *error; /* message of the failure */
    bool stoppable;    /* system service that may be disabled; default true */
    const char *const *command;
    size_t command_len;
    const struct berth_label *env;
    size_t env_len;
    const char *workdir, *image;
    const struct endpoint *endpoints;
    size_t endpoints_len;
    /* "index"; -1: none. A workload with endpoints and an index owns the block of ports from PORT_BASE + PORT_BLOCK *
     * index on every node. Its pods on a node share the block, so the reader limits the shape's max_per_node. */
    int32_t port_index;
    uint32_t weight;                                    /* 0 to 100; default 100 */
    uint64_t restarts;                                  /* "restart": number of requested restarts */
    const json_t *settings, *settings_schema, *install; /* NULL: not given */
    struct work_run run;                                /* mounted volumes are also in the shape */
    struct job_terms job;
};
/* Checks a client's document: a virtual machine must be consistent, and other workloads must have no keys of a virtual
 * machine. */
int vm_check(const struct work_doc *d, struct berth_err *err);

/* ---- schedules that submit jobs (cron_doc.c) -------------------------------------------------------------------- */

enum cron_overlap { CRON_ALLOW, CRON_SKIP, CRON_REPLACE };
struct cron_doc {
    struct doc_meta meta;
    const char *name, *owner, *group;
    const char *schedule;
    const json_t *job; /* job document as a client would submit it */
    bool suspended;
    uint32_t keep;
    enum cron_overlap overlap;
    int64_t last_ns;
    const json_t *jobs; /* NULL: none */
    const char *error;
};
int cron_doc_read(const json_t *doc, struct arena *arena, struct cron_doc *ret, struct berth_err *err);
extern const struct key_table *const cron_tables[];

enum volume_type { VOLUME_LOCAL, VOLUME_BIND, VOLUME_TMPFS };

struct volume_doc {
    struct doc_meta meta;
    struct berth_volume volume;
    const char *owner, *group;
    enum volume_type type;
    const char *path;   /* for BIND */
    int64_t size_bytes; /* for TMPFS */
};

struct secret_doc {
    struct doc_meta meta;
    const char *name, *owner, *group;
    const json_t *keys; /* {key: bytes} */
    const char *sealed; /* written by the daemon: the encrypted values in the store */
};

struct node_doc {
    struct doc_meta meta;
    struct berth_node node;
    uint64_t epoch, seq; /* of the agent's last report */
    bool disabled;       /* by the administrator, until `enable` */
    const char *address; /* address for other nodes and clients; NULL: the node's id */
    const char *was;     /* state before the node was lost; NULL: not lost */
    /* For a node whose agent has joined (control/node/node.h). joined: number of the join; 0: none. probed: the
     * machine's resources as reported by the agent. ceiling: upper limit of the usable resources, set by the
     * administrator or at the join. */
    uint64_t joined;
    const json_t *probed, *ceiling;
    const char *const *gpu_uuids; /* by device; NULL: the driver's uuid is not known */
};

/* The quota of a user, a group or a queue (queue_doc.h). For a total only `limit` and `period_ns` are set; the daemon
 * tracks what is spent. */
struct quota_doc {
    const struct berth_amount *limits, *guarantees, *admitted;
    size_t limits_len, guarantees_len, admitted_len;
    const struct berth_total *totals;
    size_t totals_len;
};

struct user_doc {
    struct doc_meta meta;
    const char *group, *role;
    bool disabled, account;
    int32_t level;
    uint32_t weight; /* 0 means 1 */
    uint32_t uid;    /* 0: not assigned yet */
    struct quota_doc quota;
};

struct role_doc {
    struct doc_meta meta;
    const struct berth_label *permissions; /* permission and scope as strings */
    size_t permissions_len;
};

struct token_doc {
    struct doc_meta meta;
    const char *user, *node, *role, *note;
    const char *hash;   /* hexadecimal */
    int64_t expires_ns; /* BERTH_NEVER_NS: no expiry */
};

struct port_report {
    const char *endpoint;
    uint16_t port;
};

/* What an agent reports about an instance besides its state. */
struct instance_details {
    bool exit_reported, progress_reported;
    int32_t exit, progress; /* exit code, or 128 + signal number; thousandths */
    int32_t foreign_port;   /* port of another app's block that it bound or tried to bind; 0: none */
    bool oom_killed;        /* at its end: one of its processes was killed for exceeding the memory limit */
    const char *note;
    const char *const *unenforced, *const *over; /* names of resources */
    size_t unenforced_len, over_len;
    const struct berth_label *exclusive; /* resource, and the name that was allocated */
    size_t exclusive_len;
};

struct instance_doc {
    struct doc_meta meta;
    struct berth_instance instance;
    uint64_t generation;             /* "of": generation of the workload document at placement */
    uint64_t epoch, seq;             /* last report that changed it */
    const char *error;               /* last error from the agent */
    bool failed;                     /* ended array task that did not succeed */
    enum work_outcome outcome;       /* if it failed, timed out or was preempted */
    int64_t started_ns;              /* first start; 0: not started */
    int64_t counted_ns;              /* end of the recorded usage; 0: none recorded */
    const struct berth_amount *peak; /* highest usage seen */
    size_t peak_len;
    const struct port_report *ports;
    size_t ports_len;
    struct instance_details words;
};

/* States that an agent reports. */
enum report_state { REPORT_STARTING, REPORT_RUNNING, REPORT_STOPPING, REPORT_ENDED, REPORT_FAILED, REPORT_STOPPED };
struct report_item {
    uint64_t id;
    enum report_state state;
    bool ready;
    const char *error;
    const struct port_report *ports;
    size_t ports_len;
    const struct berth_amount *usage;
    size_t usage_len;
    struct instance_details words;
};
struct node_condition {
    const char *type, *text;
};
struct report_doc {
    uint64_t epoch, seq;
    const struct report_item *items;
    size_t items_len;
    /* For the whole machine. */
    const struct berth_amount *usage;
    size_t usage_len;
    const struct node_condition *conditions;
    size_t conditions_len;
    const json_t *probed;  /* NULL: unchanged */
    bool machine_reported; /* at least one of usage, conditions and probed is given */
};

int work_doc_read(const json_t *doc, struct arena *arena, struct work_doc *ret, struct berth_err *err);
int node_doc_read(const json_t *doc, struct arena *arena, struct node_doc *ret, struct berth_err *err);
int volume_doc_read(const json_t *doc, struct arena *arena, struct volume_doc *ret, struct berth_err *err);
/* Reads a stored secret; a client's document has `data` instead of `keys` and `sealed`. */
int secret_doc_read(const json_t *doc, struct arena *arena, struct secret_doc *ret, struct berth_err *err);
int resource_doc_read(const json_t *doc, struct arena *arena, struct doc_meta *ret_meta, struct berth_resource *ret,
                      struct berth_err *err);
int profile_doc_read(const json_t *doc, struct arena *arena, struct doc_meta *ret_meta, struct berth_profile *ret,
                     struct berth_err *err);
int user_doc_read(const json_t *doc, struct arena *arena, struct user_doc *ret, struct berth_err *err);
int role_doc_read(const json_t *doc, struct arena *arena, struct role_doc *ret, struct berth_err *err);
int token_doc_read(const json_t *doc, struct arena *arena, struct token_doc *ret, struct berth_err *err);
int instance_doc_read(const json_t *doc, struct arena *arena, struct instance_doc *ret, struct berth_err *err);
int fact_doc_read(const json_t *doc, struct arena *arena, struct doc_meta *ret_meta, struct berth_fact *ret,
                  struct berth_err *err);
int report_doc_read(const json_t *doc, struct arena *arena, struct report_doc *ret, struct berth_err *err);

/* Return the documents that the engine loop writes for a new or changed instance and for a fact, without "v". New
 * references. The shape is not written: it is in the workload's document of that generation (KIND_SPEC). */
json_t *instance_doc_make(const struct instance_doc *d);
/* Sets the reported values and leaves other members unchanged. */
void instance_details_put(json_t *doc, const struct instance_details *w);
json_t *fact_doc_make(const struct berth_fact *fact);
/* Returns "migration/17" or "since/KEY"; a key that looks like a subject becomes "since//17". */
const char *fact_doc_id(const struct berth_fact *fact, struct arena *arena);
/* Parses the kind, and the subject or key, of such an id; -EINVAL. */
int fact_doc_id_parse(const char *id, struct berth_fact *ret);

/* Removes the keys that only the daemon writes (v, revision, created, generation, status, ...), so that a document can
 * be written back. Keeps `id`. */
void doc_strip(json_t *doc);

/* Checks settings against a schema; returns -EINVAL with the setting named. *ret is a new object with defaults filled
 * in. */
int settings_check(const json_t *schema, const json_t *settings, json_t **ret, struct berth_err *err);
/* Checks that the schema itself is valid. */
int settings_schema_check(const json_t *schema, struct berth_err *err);

/* The tables for /openapi.json: a kind's own keys in the order of the reference. Each ends with NULL. */
extern const struct key_table *const run_tables[], *const secret_tables[], *const job_tables[];
extern const struct key_table *const work_tables[],
    *const node_tables[], *const volume_tables[], *const resource_tables[],
                                                      *const profile_tables[],
                                                          *const group_tables[], *const user_tables[],
                                                                                     *const role_tables[],
                                                                                         *const token_tables[],
                                                                                             *const instance_tables[],
                                                                                                 *const report_tables[];

/* Writes "2026-03-01T12:00:00.25Z": UTC, with as many digits as needed. */
enum { TIMESTAMP_MAX = 40 };
const char *timestamp_text(int64_t ns, char buf[static TIMESTAMP_MAX]);
