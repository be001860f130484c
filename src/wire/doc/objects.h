/* objects.h - the tables of the cluster file and of the daemon's documents, and what they fill; one source file per
 * object.
 *
 * cluster_file.c walks the lists; the *_entry_read functions read one entry each. The *_doc.c files (wire/doc/api.h) read
 * the same tables beside their own. Internal to wire/.
 */
#pragma once

#include "wire/doc/api.h"
#include "wire/text/keys.h"

/* label_json.c: labels and what is said about them. */
key_read require_read, prefer_read; /* lists of struct berth_term */
key_read select_read;               /* one struct berth_term; its weight is left alone */
extern const struct object_kind taint_kind, toleration_kind;
extern const struct key_table condition_keys, expression_keys, preference_keys, taint_keys, toleration_keys;

/* shape_json.c */
extern const struct key_table shape_keys, gpu_need_keys, limit_keys;
extern const struct object_kind port_kind;
extern const struct key_table port_keys;

/* spread_json.c: a workload's place among others. */
key_read near_read; /* arg: NULL near, else apart */
extern const struct object_kind spread_kind;
extern const struct key_table spread_keys, near_keys;

/* node_json.c */
struct node_entry {
    struct berth_node node;
    const char *const *gpu_uuids; /* by device; NULL entries: not given */
    uint32_t count;               /* of copies; NO_COUNT: the entry itself */
};
extern const struct key_table node_keys, gpu_keys, image_keys, resource_keys, volume_keys;

/* workload_json.c */
struct workload_entry {
    struct berth_workload workload;
    uint32_t count;
    int gang_alone; /* `gang: true`: the workload's id is the gang's name */
};
extern const struct key_table workload_keys;
/* Its own keys, those of its shape, and those of more tables that the same object may have. */
int workload_parts_read(struct reader *r, const json_t *value, struct workload_entry *entry, const struct part *more,
                        size_t more_len);

/* instance_json.c */
struct instance_entry {
    struct berth_instance instance;
    const char *pod;
    int ready; /* -1: not said */
};
extern const struct key_table instance_keys, usage_keys, fact_keys;
const char *fact_kind_name(enum berth_fact_kind kind);
/* The keys of a table without what the reader fills in: `pod` or workload and ordinal, and `ready`. */
int instance_entry_finish(struct reader *r, const json_t *value, struct instance_entry *entry);

/* profile_json.c */
extern const struct key_table profile_keys;

/* work_doc.c: of enum work_outcome. */
extern const struct word outcome_words[];

/* meta_doc.c: what every document of the daemon has, for a struct doc_meta. Where the kind's own table has a key
 * already, the part with it is left out. */
extern const struct key_table meta_keys;     /* v, display, generation */
extern const struct key_table created_keys;  /* created */
extern const struct key_table identity_keys; /* id */
/* After reading: an id is there. */
int meta_finish(struct reader *r, struct doc_meta *meta, const char *id);
/* Reads a document of the kind's own table and what every document has. `meta` may be in the object. */
int document_fill(const json_t *doc, struct arena *arena, const struct key_table *table, void *object,
                  struct doc_meta *meta, struct berth_err *err);
key_read counter_read; /* uint64_t field: a whole number that fits a JSON integer */
key_read line_read;    /* const char * field: text of at most BERTH_NAME_MAX bytes without control characters */
key_read tree_read;    /* const json_t * field: an object, for others to read */

/* work_doc.c, run_doc.c */
enum { PATH_BYTES_MAX = 4096 }; /* as the kernel has it */
key_read command_read;          /* const char *const * list: a program and its arguments */
key_read absolute_read;         /* const char * field: a path from the root, without `..` */
int path_check(struct reader *r, const char *path);
extern const struct key_table run_keys; /* for a struct work_run */
/* What rests on other keys of the document; mounted volumes are added to the shape. */
int run_finish(struct reader *r, const struct work_doc *d, struct berth_shape *shape);

/* vm_doc.c */
extern const struct key_table vm_keys;
key_read vm_read; /* struct vm_terms field */

key_read signal_read; /* const char * field: the name of a signal */

/* job_doc.c */
extern const struct key_table job_keys, array_keys, checkpoint_keys; /* job_keys: for a struct job_terms */
extern const struct job_terms job_terms_initial;
/* What of it is in the workload: how many tasks, and how many at least. */
int job_finish(struct reader *r, const json_t *doc, struct job_terms *t, struct berth_workload *w);

/* optask_words.c */
extern const struct word optask_language_words[], opstep_state_words[], opstep_fault_words[]; /* end with NULL */

/* report_doc.c: what agents say, of which the instance's document keeps the last. */
extern const struct key_table port_report_keys;
key_read port_reports_read;               /* const struct port_report * list */
key_read said_read;                       /* const char * field: what a program said; long text is cut */
extern const struct key_table words_keys; /* for a struct instance_words */

enum { NO_COUNT = UINT32_MAX };

/* One entry of the file. What must be there is, and defaults are in. */
int node_entry_read(struct reader *r, const json_t *value, struct node_entry *ret);
int resource_entry_read(struct reader *r, const json_t *value, struct berth_resource *ret);
int volume_entry_read(struct reader *r, const json_t *value, struct berth_volume *ret);
int workload_entry_read(struct reader *r, const json_t *value, struct workload_entry *ret);
int instance_entry_read(struct reader *r, const json_t *value, struct berth_instance *ret);
int fact_entry_read(struct reader *r, const json_t *value, struct berth_fact *ret);
int profile_entry_read(struct reader *r, const json_t *value, struct berth_profile *ret);
