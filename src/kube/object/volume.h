/* volume.h - volumes, claims and storage classes as a scheduler needs them, and which volume suits a claim.
 *
 * Parsed from v1.PersistentVolume, v1.PersistentVolumeClaim and storage.k8s.io/v1 StorageClass.
 */
#pragma once

#include "kube/object/selector.h"

extern const struct kube_field_filter kube_keep_volume, kube_keep_claim, kube_keep_class;

/* Bits of access modes. */
enum { KUBE_RWO = 1, KUBE_ROX = 2, KUBE_RWX = 4, KUBE_RWOP = 8 };

struct kube_volume {
    struct kube_meta meta;
    int64_t size_bytes;
    unsigned modes;
    const char *class_name, *attributes_class;
    const char *claim_namespace, *claim_name, *claim_uid; /* claimRef: the claim it is reserved for; name "": none */
    bool block, available;
    const char *driver, *handle;        /* CSI driver and handle, also of a migrated in-tree volume; "" */
    const struct kube_in_tree *in_tree; /* in-tree type of a migrated volume; else NULL */
    struct kube_terms affinity;         /* nodes that can reach it; empty: all */
};

struct kube_claim {
    struct kube_meta meta;
    int64_t size_bytes;
    unsigned modes;
    const char *class_name; /* "": no class */
    const char *attributes_class;
    const char *volume;            /* "": not bound */
    const char *selected;          /* selected-node annotation; "" */
    bool block, bound;             /* bound: completely, the volume refers back to the claim */
    struct kube_selector selector; /* selects volumes by their labels */
};

#define KUBE_CLAIM_NONE                                                                                                \
    {                                                                                                                  \
        .meta = KUBE_META_NONE, .class_name = "", .attributes_class = "", .volume = "", .selected = ""                 \
    }
/* Parses a v1.PersistentVolumeClaimSpec only. */
void kube_claim_spec_read(struct kube_decoder *in, const struct proto_field *f, struct kube_claim *c);

struct kube_class {
    struct kube_meta meta;
    const char *provisioner;
    bool waits;                   /* WaitForFirstConsumer */
    struct kube_terms topologies; /* allowedTopologies: where it provisions; empty: everywhere */
};

/* Parse objects without their envelope; false: malformed. */
bool kube_volume_read(struct arena *arena, struct proto_reader object, struct kube_volume *ret);
bool kube_claim_read(struct arena *arena, struct proto_reader object, struct kube_claim *ret);
bool kube_class_read(struct arena *arena, struct proto_reader object, struct kube_class *ret);

/* Reports whether the class provisions volumes. */
bool kube_class_provisions(const struct kube_class *c);
/* Reports whether the volume is reserved for this claim (claimRef). */
bool kube_volume_is_for(const struct kube_volume *v, const struct kube_claim *c);
/* Reports whether an unbound claim may get the volume, apart from the node. */
bool kube_volume_suits(const struct kube_volume *v, const struct kube_claim *c);
/* Returns the node terms from the volume's zone and region labels: a node without any such label also matches. Empty:
 * no restriction. */
struct kube_terms kube_volume_zones(struct arena *arena, const struct kube_volume *v);
