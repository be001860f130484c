/* pod.h - a pod as a scheduler needs it: parsed from v1.Pod, with its total requests.
 *
 * Plain data in the arena it was parsed into. Whatever depends on other objects (namespaces, claims, volumes) is not
 * here: cache_shape.c combines them into the workload that Berth plans.
 */
#pragma once

#include "kube/object/selector.h"

/* What is kept of v1.Pod: the fields that pods of one template share. The others are in struct kube_pod_facts. */
extern const struct kube_field_filter kube_keep_pod;
/* The same with the container resources reported by the node, for a pod that is being resized. */
extern const struct kube_field_filter kube_keep_pod_resized;

struct kube_port {
    enum berth_protocol protocol;
    uint16_t port;
    const char *address; /* "": all addresses */
};

/* v1.PodAffinityTerm */
struct kube_affinity_term {
    const char *topology;
    struct kube_selector select, namespace_select;
    struct kube_texts namespaces;
    int32_t weight; /* 0: required */
    bool apart;
};

/* v1.TopologySpreadConstraint */
struct kube_spread {
    const char *topology;
    struct kube_selector select;
    struct kube_texts keys; /* matchLabelKeys */
    uint32_t max_skew, min_domains;
    bool soft, any_affinity, honor_taints;
};

/* A claim that the pod mounts, in the pod's namespace. */
struct kube_claim;
struct kube_mount {
    const char *volume;            /* name of the volume in the pod */
    const char *claim;             /* "": an ephemeral claim, named POD-VOLUME */
    const struct kube_claim *made; /* spec of an ephemeral claim, without name; NULL: another claim */
};

/* An in-tree disk named in the pod. Two pods on one node may share it only if both are read-only. */
struct kube_disk {
    const char *id; /* "gce:NAME" */
    bool reads;
};

/* A volume named in the pod that belongs to a CSI driver. */
struct kube_attached {
    const char *driver, *handle;
};

struct kube_container {
    const char *name;
    struct kube_amounts requests;
    bool sidecar;
};

/* Container resources reported by the node, while they are being resized. */
struct kube_actual_resources {
    const char *name;
    struct kube_amounts allocated, actuated;
};

struct kube_pod {
    struct kube_meta meta;
    const char *scheduler;
    bool gated, never_preempts;
    bool devices; /* the pod has resource claims (DRA) */
    int32_t priority;
    const char *group;            /* schedulingGroup.podGroupName, or the label of the coscheduling plugin; "": none */
    bool group_by_label;          /* from the label: a missing group object does not hold the pod up */
    uint32_t group_min;           /* minimum from the pod's label; 0: none */
    struct kube_amounts requests; /* in total, without `pods` */
    KUBE_LIST(struct kube_container) containers, inits;
    KUBE_LIST(struct kube_actual_resources) actuals;
    struct kube_amounts overhead, pod_level;
    KUBE_LIST(struct kube_port) ports;
    KUBE_LIST(struct berth_toleration) tolerations;
    struct kube_labels node_selector;
    bool has_affinity;
    struct kube_terms affinity; /* required node affinity; valid if has_affinity */
    struct kube_terms prefer;
    KUBE_LIST(struct kube_affinity_term) near;
    KUBE_LIST(struct kube_spread) spread;
    KUBE_LIST(struct kube_mount) mounts;
    KUBE_LIST(struct kube_disk) disks;
    KUBE_LIST(struct kube_attached) attached;
    struct kube_texts images; /* normalised with a tag, without duplicates */
};

/* Parses the kept fields of v1.Pod (name, times and node are not among them); false: malformed. */
bool kube_pod_read(struct arena *arena, struct proto_reader object, struct kube_pod *ret);

/* The fields a pod does not share with others, and the relevant part of its status. Texts point into the object. Most
 * changes of pods are status changes without any effect here. */
struct kube_pod_facts {
    int64_t created_ns, deleted_ns;
    int64_t bound_ns;            /* since when PodScheduled is True; 0: unknown */
    struct proto_text node;      /* spec.nodeName; empty: not bound */
    struct proto_text nominated; /* status.nominatedNodeName */
    struct proto_text refusal;   /* message of its condition PodScheduled=False */
    bool resources;              /* its node reports container resources */
    bool ended;                  /* Succeeded or Failed: it holds no resources */
};
/* False: the object is malformed. */
bool kube_pod_facts_read(struct proto_reader object, struct kube_pod_facts *ret);

/* Returns the pod's total requests: containers plus sidecars, or the maximum during initialisation if larger; pod-level
 * requests replace the sum; overhead is added. During a resize the larger amount counts. */
struct kube_amounts kube_pod_requests(struct arena *arena, const struct kube_pod *pod);
/* Reports whether a resize makes the pod hold other amounts than it requests. */
bool kube_pod_resizing(struct arena *arena, const struct kube_pod *pod);
