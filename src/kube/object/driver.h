/* driver.h - CSI drivers, the storage they have left and what they have attached, as a scheduler sees them.
 *
 * Read from storage.k8s.io/v1 CSIDriver, CSIStorageCapacity and VolumeAttachment. How many volumes of a driver a node takes is in kube/object/node.h.
 */
#pragma once

#include "kube/object/selector.h"

extern const struct kube_keep kube_keep_driver, kube_keep_capacity, kube_keep_attachment;

struct kube_driver {
    struct kube_meta meta; /* its name is what classes call their provisioner */
    bool attaches;         /* a volume is attached to a node before it is used there */
    bool capacity;         /* it says how much storage there is, and wants to be believed */
};

/* What is left for volumes of a class, on the nodes that the selector finds. */
struct kube_capacity {
    struct kube_meta meta;
    const char *class_name;
    struct kube_selector nodes; /* absent: none */
    int64_t most_bytes;         /* of one volume; -1: unknown */
};

/* A volume that is attached to a node, or is about to be, or still is. */
struct kube_attachment {
    const char *driver, *node;
    const char *volume; /* a PersistentVolume; "": one that a pod has described */
};

/* Objects without their envelope. False where they are malformed. */
bool kube_driver_read(struct arena *arena, struct proto_reader object, struct kube_driver *ret);
bool kube_capacity_read(struct arena *arena, struct proto_reader object, struct kube_capacity *ret);
bool kube_attachment_read(struct arena *arena, struct proto_reader object, struct kube_attachment *ret);

/* Kinds of volumes that were once Kubernetes' own, and which a CSI driver serves now: they count as its volumes. */
struct kube_in_tree {
    const char *provisioner, *driver;
    uint32_t of_pod, of_volume,
        name; /* numbers of fields: in v1.VolumeSource, in v1.PersistentVolumeSource, within either */
};
/* By these; NULL: it is none of them. */
const struct kube_in_tree *kube_in_tree_of_pod(uint32_t source);
const struct kube_in_tree *kube_in_tree_of_volume(uint32_t source);
/* What the driver calls the volume of this name, whose zones are as its label has them ("": it has none). */
const char *kube_in_tree_handle(struct arena *arena, const struct kube_in_tree *kind, const char *name,
                                const char *zones);
/* The driver that serves a class of this provisioner: mostly itself. */
const char *kube_provisioner_driver(const char *provisioner);
