/* pod.h - a pod as a scheduler sees it: read from v1.Pod, and what it asks for in all.
 *
 * Plain data in the arena it was read into. What follows from other objects (namespaces, claims, volumes) is not here: cache_shape.c makes
 * of all that together what Berth plans.
 */
#pragma once

#include "kube/object/selector.h"

/* What is kept of v1.Pod: that which pods of one template have in common. The rest is in struct kube_pod_facts. */
extern const struct kube_keep kube_keep_pod;
/* The same with what its node says of its containers' resources: of a pod that is being resized. */
extern const struct kube_keep kube_keep_pod_resized;

struct kube_port {
    enum berth_protocol protocol;
    uint16_t port;
    const char *address; /* "": all */
};

/* v1.PodAffinityTerm */
struct kube_near {
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

/* A claim that the pod mounts, in its namespace. */
struct kube_claim;
struct kube_mount {
    const char *volume;            /* its name in the pod */
    const char *claim;             /* "": one that is made for this pod, POD-VOLUME */
    const struct kube_claim *made; /* as the latter will be, without a name; NULL: of any other */
};

/* A disk that is named in the pod itself. Two pods on one node may have the same only if both just read it. */
struct kube_disk {
    const char *id; /* "gce:NAME" */
    bool reads;
};

/* A volume of a CSI driver that is named in the pod itself. */
struct kube_attached {
    const char *driver, *handle;
};

struct kube_container {
    const char *name;
    struct kube_amounts requests;
    bool sidecar;
};

/* Resources of a container as its node reports them, while they are being changed. */
struct kube_actual {
    const char *name;
    struct kube_amounts allocated, actuated;
};

struct kube_pod {
    struct kube_meta meta;
    const char *scheduler;
    bool gated, never_preempts;
    bool devices; /* it has resource claims */
    int32_t priority;
    const char *group;            /* schedulingGroup.podGroupName, or the label of the coscheduling plugin; "": none */
    bool group_by_label;          /* the latter: where nobody knows the group, it does not hold the pod up */
    uint32_t group_min;           /* as the pod itself says, by label; 0: it does not */
    struct kube_amounts requests; /* in all; not with `pods` */
    KUBE_LIST(struct kube_container) containers, inits;
    KUBE_LIST(struct kube_actual) actuals;
    struct kube_amounts overhead, pod_level;
    KUBE_LIST(struct kube_port) ports;
    KUBE_LIST(struct berth_toleration) tolerations;
    struct kube_labels node_selector;
    bool has_affinity;
    struct kube_terms affinity; /* required, of nodes; meaningful when there is one */
    struct kube_terms prefer;
    KUBE_LIST(struct kube_near) near;
    KUBE_LIST(struct kube_spread) spread;
    KUBE_LIST(struct kube_mount) mounts;
    KUBE_LIST(struct kube_disk) disks;
    KUBE_LIST(struct kube_attached) attached;
    struct kube_texts images; /* normalised: with a tag; each once */
};

/* Reads what is kept of v1.Pod: without name, times and node. False where it is malformed. */
bool kube_pod_read(struct arena *arena, struct proto_reader object, struct kube_pod *ret);

/* What is a pod's own, and what of its status matters; texts point into the object. Most changes of pods are in its status, and mostly nothing
 * follows from them. */
struct kube_pod_facts {
    int64_t created_ns, deleted_ns;
    int64_t bound_ns;            /* since its condition PodScheduled is True; 0: nobody says */
    struct proto_text node;      /* bound to it; empty: not */
    struct proto_text nominated; /* node it was promised */
    struct proto_text refusal;   /* message of its condition PodScheduled=False */
    bool resources;              /* its node says what its containers have */
    bool ended;                  /* Succeeded or Failed: it holds nothing */
};
/* False where the object is malformed. */
bool kube_pod_facts_read(struct proto_reader object, struct kube_pod_facts *ret);

/* What the pod asks for in all: containers together and sidecars, or the most that initialisation takes; then what is asked for at the
 * level of the pod in its place; overhead on top. Of a pod whose resources are being changed the larger counts. */
struct kube_amounts kube_pod_requests(struct arena *arena, const struct kube_pod *pod);
/* Does it hold other amounts than it asks for, because it is being resized? */
bool kube_pod_resizing(struct arena *arena, const struct kube_pod *pod);
