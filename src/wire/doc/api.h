/* api.h - the daemon's documents: what a client may write and what the store holds, read by the same tables.
 *
 * A stored document is what the client asked for plus what the daemon adds ("v", "id", "created", "generation", ...;
 * the `meta` table). Nodes, volumes, resources, profiles, workloads and instances share their keys with the cluster
 * file (objects.h). Texts in what is read point into the document or the arena. A reader returns 0, or -EINVAL and its
 * kin with the key named: `endpoints[1]: name: expected text, found 3`.
 *
 * To add a key: a row in its table, a line in docs/api.md.
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
    const char *id;  /* a number is read as text */
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
    uint32_t guest; /* of a virtual machine: the port in it; 0: not given */
    bool eager;     /* "await": false; an instance is ready before this port accepts connections */
};
/* Without a health check an app's instance is ready once such a port has accepted a connection. A handed-over socket
 * accepts from the start. */
static inline bool endpoint_awaited(const struct endpoint *e)
{
    return e->protocol == BERTH_TCP && e->listen == LISTEN_PORT && !e->guest && !e->eager;
}

/* ---- how a workload runs on its node (run_doc.c) ---- */

struct work_mount { /* one of volume, bind and tmpfs */
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
    const char *endpoint, *path; /* of HTTP and TCP */
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
    int64_t keep_ns; /* after its end; 0: as the agent does */
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
    int64_t disk_bytes; /* 0: as the image */
    const char *sha256; /* of an image that is a URL */
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

/* A signal by its name, with or without SIG, whatever its case: "TERM"; NULL: there is none. */
const char *signal_name_find(const char *text);

/* ---- what only jobs say (job_doc.c) ---- */

enum { ARRAY_TASKS_MAX = 100000, AFTER_MAX = 64, NOTIFY_MAX = 16, ATTRIBUTES_MAX = 32 };

struct job_array { /* the task of an ordinal has the index from + step * ordinal */
    uint32_t from, to, step;
    uint32_t parallel; /* 0: all */
    uint32_t count;    /* 0: it is no array */
};

enum after_when { AFTER_OK, AFTER_STARTED, AFTER_FAILED, AFTER_ENDED };
const char *after_when_name(enum after_when when);
struct job_after {
    uint64_t job;
    enum after_when when;
};

enum { TOLD_STARTED = 1, TOLD_ENDED = 2, TOLD_FAILED = 4, TOLD_PREEMPTED = 8 };
struct job_notify {
    const char *to; /* mail or URL */
    unsigned on;    /* bits of TOLD_* */
};

enum preempt_rule { PREEMPT_REQUEUE, PREEMPT_CANCEL };

struct job_checkpoint {
    const char *signal; /* NULL: none */
    int64_t grace_ns;
};

/* Texts are NULL, times 0 where nothing is said. */
struct job_terms {
    const char *queue;
    int64_t time_limit_ns, estimate_ns, deadline_ns, min_run_ns;
    int32_t urgency;
    bool preemptible, preempts, requeue; /* true if not given */
    enum preempt_rule preempt;
    struct job_checkpoint checkpoint;
    struct job_array array; /* the workload's replicas are its count */
    const struct job_after *after;
    size_t after_len;
    bool singleton;
    uint32_t min, max; /* are in the workload's gang_min and replicas */
    const char *role;
    uint64_t of; /* 0: it is no part of a set */
    const char *type, *class_name, *network;
    int64_t parameters;
    const char *const *data;
    size_t data_len;
    const struct berth_label *attributes;
    size_t attributes_len;
    const struct job_notify *notify;
    size_t notify_len;
    bool interactive;
    /* The daemon's. */
    const char *cron;
    uint64_t attempt;    /* grows when it is queued again by hand */
    int64_t attained_ns; /* run time of earlier attempts */
    bool met;            /* what it waits for has come about */
    bool waits;          /* it is to wait for others, and that has not: it counts as suspended */
    const char *held_by;
    int64_t started_ns, finished_ns;
};

/* Is this a key that only jobs have? */
bool job_key_is(const char *name);

struct work_doc {
    struct doc_meta meta;
    /* Its id is the meta's; the kind is left alone; `suspended` is hold, stopped or cancelled; a gang's name has its
     * owner's before it, so that nobody joins another's. */
    struct berth_workload workload;
    const char *name, *owner, *group;
    bool hold, stopped, system;
    bool cancelled; /* of a job: by its user; it counts as held for ever */
    /* Over, by what its restart policy says: of a job for ever, of an app or vm until it is started again. */
    bool failed, ended;
    enum work_outcome outcome;
    const char *error; /* of the failure */
    bool stoppable;    /* of a system service: may be disabled; true if not given */
    const char *const *command;
    size_t command_len;
    const struct berth_label *env;
    size_t env_len;
    const char *workdir, *image;
    const struct endpoint *endpoints;
    size_t endpoints_len;
    /* "index"; -1: none. A workload with endpoints and an index has a block of ports, PORT_BASE + PORT_BLOCK * index and
     * on, that is nobody else's on any node. Its pods on a node share it: its shape's max_per_node is bounded here. */
    int32_t port_index;
    uint32_t weight;                                    /* 0 to 100; 100 if not given */
    uint64_t restarts;                                  /* "restart": grows with each restart asked for */
    const json_t *settings, *settings_schema, *install; /* NULL: not given */
    struct work_run run;                                /* volumes that are mounted are in its shape, too */
    struct job_terms job;
};
/* Of what a client sends: does it make sense as the virtual machine that it is, or is it none and says nothing of one? */
int vm_check(const struct work_doc *d, struct berth_err *err);

/* ---- schedules that make jobs (cron_doc.c) ---- */

enum cron_overlap { CRON_ALLOW, CRON_SKIP, CRON_REPLACE };
struct cron_doc {
    struct doc_meta meta;
    const char *name, *owner, *group;
    const char *schedule;
    const json_t *job; /* as a client would submit it */
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
    const char *path;   /* of BIND */
    int64_t size_bytes; /* of TMPFS */
};

struct secret_doc {
    struct doc_meta meta;
    const char *name, *owner, *group;
    const json_t *keys; /* {key: bytes} */
    const char *sealed; /* the daemon's: what the store has instead of the text */
};

struct node_doc {
    struct doc_meta meta;
    struct berth_node node;
    uint64_t epoch, seq; /* of its agent's last report */
    bool disabled;       /* by the administrator: `enable` brings it back */
    const char *address; /* where others reach what runs there; NULL: by its id */
    const char *was;     /* its state before it was lost; NULL: it is not */
    /* Of one whose agent has joined (control/node/node.h): which of its joins, 0: none; what the machine has, by its agent;
     * what of it may be used at most, by the administrator or as it was at the join. */
    uint64_t joined;
    const json_t *probed, *ceiling;
    const char *const *gpu_uuids; /* by device; a NULL: its driver's name for it is not known */
};

/* What a user, a group or a queue may have (queue_doc.h). Of a total `limit` and `period_ns` are said; what is spent the
 * daemon knows. */
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
    uint32_t weight; /* 0: 1 */
    uint32_t uid;    /* 0: none yet */
    struct quota_doc quota;
};

struct role_doc {
    struct doc_meta meta;
    const struct berth_label *permissions; /* permission and scope, as text */
    size_t permissions_len;
};

struct token_doc {
    struct doc_meta meta;
    const char *user, *node, *role, *note;
    const char *hash;   /* hexadecimal */
    int64_t expires_ns; /* BERTH_NEVER_NS: never */
};

struct port_report {
    const char *endpoint;
    uint16_t port;
};

/* What an agent says of an instance besides its state. */
struct instance_words {
    bool exit_said, progress_said;
    int32_t exit, progress; /* its code, or 128 + its signal; thousandths */
    int32_t foreign_port;   /* of another app's block, which it tried to bind, or has bound; 0: none */
    bool oom_killed;        /* at its end: a process of it was killed for using more memory than the limit */
    const char *note;
    const char *const *unenforced, *const *over; /* resources */
    size_t unenforced_len, over_len;
    const struct berth_label *exclusive; /* resource and the name that was taken */
    size_t exclusive_len;
};

struct instance_doc {
    struct doc_meta meta;
    struct berth_instance instance;
    uint64_t generation;             /* "of": of the workload it was placed from */
    uint64_t epoch, seq;             /* of the last report that changed it */
    const char *error;               /* what the agent said last */
    bool failed;                     /* a task of an array that is over, but not well */
    enum work_outcome outcome;       /* of one that failed, timed out or was preempted */
    int64_t started_ns;              /* when it first ran; 0: it has not */
    int64_t counted_ns;              /* up to when its use has been recorded; 0: not yet */
    const struct berth_amount *peak; /* the most it was seen to use */
    size_t peak_len;
    const struct port_report *ports;
    size_t ports_len;
    struct instance_words words;
};

/* What an agent says. */
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
    struct instance_words words;
};
struct node_condition {
    const char *type, *text;
};
struct report_doc {
    uint64_t epoch, seq;
    const struct report_item *items;
    size_t items_len;
    /* Of the whole machine. */
    const struct berth_amount *usage;
    size_t usage_len;
    const struct node_condition *conditions;
    size_t conditions_len;
    const json_t *probed; /* NULL: nothing new */
    bool node_said;       /* something of the three */
};

int work_doc_read(const json_t *doc, struct arena *arena, struct work_doc *ret, struct berth_err *err);
int node_doc_read(const json_t *doc, struct arena *arena, struct node_doc *ret, struct berth_err *err);
int volume_doc_read(const json_t *doc, struct arena *arena, struct volume_doc *ret, struct berth_err *err);
/* As it is stored; what a client writes has `data` instead of the keys and what is sealed. */
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

/* What the loop writes: the documents of a new or changed instance and of a fact, without "v". New references. A shape
 * is not written: what an instance was placed from is the workload's document of that generation (KIND_SPEC). */
json_t *instance_doc_make(const struct instance_doc *d);
/* Sets what was said of it, and leaves alone what was not. */
void instance_words_put(json_t *doc, const struct instance_words *w);
json_t *fact_doc_make(const struct berth_fact *fact);
/* "migration/17", "since/KEY"; a key that looks like a subject is written "since//17". */
const char *fact_doc_id(const struct berth_fact *fact, struct arena *arena);
/* The kind and the subject or key of such an id; -EINVAL. */
int fact_doc_id_parse(const char *id, struct berth_fact *ret);

/* Removes the keys that only the daemon writes (v, revision, created, generation, status, ...), so that what was read
 * may be written back. `id` stays. */
void doc_strip(json_t *doc);

/* Settings against a schema; -EINVAL naming the setting. *ret is a new object with defaults filled in. */
int settings_check(const json_t *schema, const json_t *settings, json_t **ret, struct berth_err *err);
/* Is the schema itself well-formed? */
int settings_schema_check(const json_t *schema, struct berth_err *err);

/* The tables, for /openapi.json: a kind's own keys in the order of the reference. Ends with NULL. */
extern const struct key_table *const run_tables[], *const secret_tables[], *const job_tables[];
extern const struct key_table *const work_tables[],
    *const node_tables[], *const volume_tables[], *const resource_tables[],
                                                      *const profile_tables[],
                                                          *const group_tables[], *const user_tables[],
                                                                                     *const role_tables[],
                                                                                         *const token_tables[],
                                                                                             *const instance_tables[],
                                                                                                 *const report_tables[];

/* "2026-03-01T12:00:00.25Z": UTC, as many digits as needed. */
enum { TIMESTAMP_MAX = 40 };
const char *timestamp_text(int64_t ns, char buf[static TIMESTAMP_MAX]);
