/* volume.h - volumes, claims and storage classes as a scheduler sees them, and which volume a claim may get.
 *
 * Read from v1.PersistentVolume, v1.PersistentVolumeClaim and storage.k8s.io/v1 StorageClass.
 */
#pragma once

#include "kube/object/selector.h"

extern const struct kube_keep kube_keep_volume, kube_keep_claim, kube_keep_class;

/* Bits of access modes. */
enum { KUBE_RWO = 1, KUBE_ROX = 2, KUBE_RWX = 4, KUBE_RWOP = 8 };

struct kube_volume {
    struct kube_meta meta;
    int64_t size_bytes;
    unsigned modes;
    const char *class_name, *attributes_class;
    const char *claim_namespace, *claim_name, *claim_uid; /* of the claim it is for; name "": none */
    bool block, available;
    const char *driver, *handle;        /* of CSI, also where it has taken over from Kubernetes itself; "" */
    const struct kube_in_tree *in_tree; /* the latter; NULL */
    struct kube_terms affinity;         /* nodes that reach it; empty: all */
};

struct kube_claim {
    struct kube_meta meta;
    int64_t size_bytes;
    unsigned modes;
    const char *class_name; /* "": none */
    const char *attributes_class;
    const char *volume;            /* "": not bound */
    const char *selected;          /* node for which it is being provisioned; "" */
    bool block, bound;             /* fully: the volume says so, too */
    struct kube_selector selector; /* of volumes, by their labels */
};

#define KUBE_CLAIM_NONE                                                                                                \
    {                                                                                                                  \
        .meta = KUBE_META_NONE, .class_name = "", .attributes_class = "", .volume = "", .selected = ""                 \
    }
/* v1.PersistentVolumeClaimSpec alone. */
void kube_claim_spec_read(struct kube_in *in, const struct proto_field *f, struct kube_claim *c);

struct kube_class {
    struct kube_meta meta;
    const char *provisioner;
    bool waits;                   /* WaitForFirstConsumer */
    struct kube_terms topologies; /* where it provisions; empty: everywhere */
};

/* Objects without their envelope. False where they are malformed. */
bool kube_volume_read(struct arena *arena, struct proto_reader object, struct kube_volume *ret);
bool kube_claim_read(struct arena *arena, struct proto_reader object, struct kube_claim *ret);
bool kube_class_read(struct arena *arena, struct proto_reader object, struct kube_class *ret);

/* Does it provision volumes? */
bool kube_class_provisions(const struct kube_class *c);
/* Is the volume meant for this claim and no other? */
bool kube_volume_is_for(const struct kube_volume *v, const struct kube_claim *c);
/* May an unbound claim get the volume, whatever the node? */
bool kube_volume_suits(const struct kube_volume *v, const struct kube_claim *c);
/* What the volume's zone and region labels ask of nodes: a node without any such label is asked nothing. Empty: nothing. */
struct kube_terms kube_volume_zones(struct arena *arena, const struct kube_volume *v);
