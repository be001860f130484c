/* objects.h - the key tables of the cluster file and of the daemon's documents, and the structs they fill; one source
 * file per object.
 *
 * cluster_file.c walks the lists; the *_entry_read functions read one entry each. The *_doc.c files (wire/doc/api.h)
 * use the same tables beside their own. Internal to src/wire.
 */
#pragma once

#include "wire/doc/api.h"
#include "wire/text/keys.h"

/* label_json.c: labels and conditions on labels. */
key_read require_read, prefer_read; /* lists of struct berth_term */
key_read select_read;               /* one struct berth_term; does not change its weight */
extern const struct object_kind taint_kind, toleration_kind;
extern const struct key_table condition_keys, expression_keys, preference_keys, taint_keys, toleration_keys;

/* shape_json.c */
extern const struct key_table shape_keys, gpu_need_keys, limit_keys;
extern const struct object_kind port_kind;
extern const struct key_table port_keys;

/* spread_json.c: topology constraints. */
key_read near_read; /* arg: NULL for near, otherwise apart */
extern const struct object_kind spread_kind;
extern const struct key_table spread_keys, near_keys;

/* node_json.c */
struct node_entry {
    struct berth_node node;
    const char *const *gpu_uuids; /* by device; a NULL entry: not given */
    uint32_t count;               /* number of copies; NO_COUNT: only the entry itself */
};
extern const struct key_table node_keys, gpu_keys, image_keys, resource_keys, volume_keys;

/* workload_json.c */
struct workload_entry {
    struct berth_workload workload;
    uint32_t count;
    int gang_alone; /* `gang: true`: the gang's name is the workload's id */
};
extern const struct key_table workload_keys;
/* Reads the workload's own keys, those of its shape, and those of further tables for the same object. */
int workload_parts_read(struct reader *r, const json_t *value, struct workload_entry *entry,
                        const struct object_part *more, size_t more_len);

/* instance_json.c */
struct instance_entry {
    struct berth_instance instance;
    const char *pod;
    int ready; /* -1: not given */
};
extern const struct key_table instance_keys, usage_keys, fact_keys;
const char *fact_kind_name(enum berth_fact_kind kind);
/* Derives the values that no single key sets: `pod` as workload and ordinal, and `ready`. */
int instance_entry_finish(struct reader *r, const json_t *value, struct instance_entry *entry);

/* profile_json.c */
extern const struct key_table profile_keys;

/* work_doc.c: values are of enum work_outcome. */
extern const struct enum_word outcome_words[];

/* meta_doc.c: keys of every document, for a struct doc_meta. If the kind's own table already has a key, the table with
 * that key is omitted. */
extern const struct key_table meta_keys;     /* v, display, generation */
extern const struct key_table created_keys;  /* created */
extern const struct key_table identity_keys; /* id */
/* Checks after reading that an id is present. */
int meta_finish(struct reader *r, struct doc_meta *meta, const char *id);
/* Reads a document with the kind's own table and the keys of every document. `meta` may be a member of the object. */
int document_fill(const json_t *doc, struct arena *arena, const struct key_table *table, void *object,
                  struct doc_meta *meta, struct berth_err *err);
key_read counter_read; /* uint64_t field: an integer that fits a JSON integer */
key_read line_read;    /* const char * field: text of at most BERTH_NAME_MAX bytes without control characters */
key_read tree_read;    /* const json_t * field: an object that other code reads */

/* work_doc.c, run_doc.c */
enum { PATH_BYTES_MAX = 4096 }; /* the kernel's limit */
key_read command_read;          /* const char *const * list: a program and its arguments */
key_read absolute_read;         /* const char * field: an absolute path without `..` */
int path_check(struct reader *r, const char *path);
extern const struct key_table run_keys; /* for a struct work_run */
/* Checks keys that depend on other keys of the document; adds mounted volumes to the shape. */
int run_finish(struct reader *r, const struct work_doc *d, struct berth_shape *shape);

/* vm_doc.c */
extern const struct key_table vm_keys;
key_read vm_read; /* struct vm_terms field */

key_read signal_read; /* const char * field: the name of a signal */

/* job_doc.c */
extern const struct key_table job_keys, array_keys, checkpoint_keys; /* job_keys: for a struct job_terms */
extern const struct job_terms job_terms_initial;
/* Sets the workload's number of tasks and least number of tasks. */
int job_finish(struct reader *r, const json_t *doc, struct job_terms *t, struct berth_workload *w);

/* optask_words.c */
extern const struct enum_word optask_language_words[], opstep_state_words[], opstep_fault_words[]; /* end with NULL */

/* report_doc.c: reports of agents; an instance's document keeps the last one. */
extern const struct key_table port_report_keys;
key_read port_reports_read;                          /* const struct port_report * list */
key_read message_read;                               /* const char * field: a program's message; long text is cut */
extern const struct key_table instance_details_keys; /* for a struct instance_details */

enum { NO_COUNT = UINT32_MAX };

/* Read one entry of the file, check required keys and set defaults. */
int node_entry_read(struct reader *r, const json_t *value, struct node_entry *ret);
int resource_entry_read(struct reader *r, const json_t *value, struct berth_resource *ret);
int volume_entry_read(struct reader *r, const json_t *value, struct berth_volume *ret);
int workload_entry_read(struct reader *r, const json_t *value, struct workload_entry *ret);
int instance_entry_read(struct reader *r, const json_t *value, struct berth_instance *ret);
int fact_entry_read(struct reader *r, const json_t *value, struct berth_fact *ret);
int profile_entry_read(struct reader *r, const json_t *value, struct berth_profile *ret);
