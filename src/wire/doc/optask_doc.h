/* optask_doc.h - documents of OpTasks: operations on nodes, and how each of them stands on each node.
 *
 * Beside api.h, by the same rules. Whether nodes that are named exist is the daemon's to say, and so are hashes.
 */
#pragma once

#include "wire/doc/api.h"
#include "wire/doc/optask_words.h"

enum {
    OPTASK_SCRIPT_MAX = 128 * 1024, /* bytes, of each of its two scripts */
    OPTASK_ARGS_MAX = 64,
    OPTASK_ARG_BYTES_MAX = 4096,
    OPTASK_PARALLEL_MAX = 10000,
};
#define OPTASK_TIMEOUT_NS_DEFAULT (INT64_C(3600) * 1000000000)
#define OPTASK_TIMEOUT_NS_MAX (INT64_C(7) * 86400 * 1000000000)

struct optask_doc {
    struct doc_meta meta;
    const char *const *nodes; /* by name, or */
    size_t nodes_len;
    const struct berth_term *require; /* by label */
    size_t require_len;
    uint32_t parallel, max_failures;
    unsigned language;
    const char *script, *undo; /* undo NULL: there is none */
    const char *sha256, *undo_sha256;
    const char *const *args;
    size_t args_len;
    int64_t timeout_ns;
    bool drain, init;
    const char *ready;   /* the name of the ready one that it was made from; NULL: none */
    const char *content; /* hash of what is done: language, scripts, arguments */
};

int optask_doc_read(const json_t *doc, struct arena *arena, struct optask_doc *ret, struct berth_err *err);

/* How it stands on one node. */
struct opstep_doc {
    int64_t version;
    const char *optask, *node;
    uint64_t attempt; /* grows with each that is asked for; 0: none yet */
    bool undo;        /* what is asked for is the undo script */
    unsigned state, fault;
    int64_t since_ns;
    const char *error;
    int32_t exit;
    bool exit_said;
    bool init;          /* the node takes no work before it is done */
    bool drained;       /* the node was drained for it, and is to be what it was again afterwards: */
    const char *before; /* `cordoned`; NULL: ready */
    uint32_t excused;   /* nodes on which it had failed when another try was asked for: they do not hold this one up */
};
int opstep_doc_read(const json_t *doc, struct arena *arena, struct opstep_doc *ret, struct berth_err *err);

/* What an agent says of one: POST /v1/nodes/ID/optasks/KEY. */
struct opstep_report {
    uint64_t attempt;
    unsigned state, fault;
    const char *error;
    int32_t exit;
    bool exit_said;
};
int opstep_report_read(const json_t *doc, struct arena *arena, struct opstep_report *ret, struct berth_err *err);

extern const struct key_table *const optask_tables[];
extern const struct key_table opstep_report_keys, optask_act_keys;

/* Which nodes a verb is about. */
struct optask_act {
    const char *const *nodes; /* none: all that it can be done to */
    size_t nodes_len;
};
int optask_act_read(const json_t *doc, struct arena *arena, struct optask_act *ret, struct berth_err *err);
