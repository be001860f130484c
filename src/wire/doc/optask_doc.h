/* optask_doc.h - documents of OpTasks, which are operations on nodes, and the state of each on each node.
 *
 * Follows the rules of api.h. The daemon checks that named nodes exist, and computes the hashes.
 */
#pragma once

#include "wire/doc/api.h"
#include "wire/doc/optask_words.h"

enum {
    OPTASK_SCRIPT_MAX = 128 * 1024, /* bytes of each of the two scripts */
    OPTASK_ARGS_MAX = 64,
    OPTASK_ARG_BYTES_MAX = 4096,
    OPTASK_PARALLEL_MAX = 10000,
};
#define OPTASK_TIMEOUT_NS_DEFAULT (INT64_C(3600) * 1000000000)
#define OPTASK_TIMEOUT_NS_MAX (INT64_C(7) * 86400 * 1000000000)

struct optask_doc {
    struct doc_meta meta;
    const char *const *nodes; /* selected by name, or */
    size_t nodes_len;
    const struct berth_term *require; /* selected by labels */
    size_t require_len;
    uint32_t parallel, max_failures;
    unsigned language;
    const char *script, *undo; /* undo NULL: none */
    const char *sha256, *undo_sha256;
    const char *const *args;
    size_t args_len;
    int64_t timeout_ns;
    bool drain, init;
    const char *ready;   /* name of the ready-made OpTask that it was made from; NULL: none */
    const char *content; /* hash of language, scripts and arguments */
};

int optask_doc_read(const json_t *doc, struct arena *arena, struct optask_doc *ret, struct berth_err *err);

/* The state of an OpTask on one node. */
struct opstep_doc {
    int64_t version;
    const char *optask, *node;
    uint64_t attempt; /* incremented for each requested attempt; 0: none yet */
    bool undo;        /* the requested attempt is the undo script */
    unsigned state, fault;
    int64_t since_ns;
    const char *error;
    int32_t exit;
    bool exit_reported;
    bool init;          /* the node is not schedulable before the step is done */
    bool drained;       /* the node was drained for the step; afterwards its state is restored to: */
    const char *before; /* `cordoned`; NULL: ready */
    uint32_t excused;   /* failed nodes at the time of a requested retry; they do not count against max_failures */
};
int opstep_doc_read(const json_t *doc, struct arena *arena, struct opstep_doc *ret, struct berth_err *err);

/* An agent's report of a step: POST /v1/nodes/ID/optasks/KEY. */
struct opstep_report {
    uint64_t attempt;
    unsigned state, fault;
    const char *error;
    int32_t exit;
    bool exit_reported;
};
int opstep_report_read(const json_t *doc, struct arena *arena, struct opstep_report *ret, struct berth_err *err);

extern const struct key_table *const optask_tables[];
extern const struct key_table opstep_report_keys, optask_act_keys;

/* The nodes that a verb applies to. */
struct optask_act {
    const char *const *nodes; /* none: all nodes that the verb can apply to */
    size_t nodes_len;
};
int optask_act_read(const json_t *doc, struct arena *arena, struct optask_act *ret, struct berth_err *err);
