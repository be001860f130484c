/* objects.h - the tables of the cluster file and what they fill, one source file per object.
 *
 * cluster_file.c walks the lists; these read one entry each. Internal to wire/.
 */
#pragma once

#include "wire/keys.h"

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
    uint32_t count; /* of copies; NO_COUNT: the entry itself */
};
extern const struct key_table node_keys, gpu_keys, image_keys, resource_keys, volume_keys;

/* workload_json.c */
struct workload_entry {
    struct berth_workload workload;
    uint32_t count;
    int gang_alone; /* `gang: true`: the workload's id is the gang's name */
};
extern const struct key_table workload_keys;

/* instance_json.c */
struct instance_entry {
    struct berth_instance instance;
    const char *pod;
    int ready; /* -1: not said */
};
extern const struct key_table instance_keys, usage_keys, fact_keys;
const char *fact_kind_name(enum berth_fact_kind kind);

/* profile_json.c */
extern const struct key_table profile_keys;

enum { NO_COUNT = UINT32_MAX };

/* One entry of the file. What must be there is, and defaults are in. */
int node_entry_read(struct reader *r, const json_t *value, struct node_entry *ret);
int resource_entry_read(struct reader *r, const json_t *value, struct berth_resource *ret);
int volume_entry_read(struct reader *r, const json_t *value, struct berth_volume *ret);
int workload_entry_read(struct reader *r, const json_t *value, struct workload_entry *ret);
int instance_entry_read(struct reader *r, const json_t *value, struct berth_instance *ret);
int fact_entry_read(struct reader *r, const json_t *value, struct berth_fact *ret);
int profile_entry_read(struct reader *r, const json_t *value, struct berth_profile *ret);
