/* driver.h - CSI drivers, their free storage and their attached volumes, as a scheduler needs them.
 *
 * Parsed from storage.k8s.io/v1 CSIDriver, CSIStorageCapacity and VolumeAttachment. The volume limits of nodes are in
 * kube/object/node.h.
 */
#pragma once

#include "kube/object/selector.h"

extern const struct kube_field_filter kube_keep_driver, kube_keep_capacity, kube_keep_attachment;

struct kube_driver {
    struct kube_meta meta; /* its name is the provisioner of storage classes */
    bool attaches;         /* attachRequired: volumes are attached to a node before use */
    bool capacity;         /* storageCapacity: free storage is reported and must be respected */
};

/* Free storage for volumes of a class on the selected nodes. */
struct kube_capacity {
    struct kube_meta meta;
    const char *class_name;
    struct kube_selector nodes; /* absent: no nodes */
    int64_t most_bytes;         /* largest possible volume; -1: unknown */
};

/* A volume that is attached, being attached, or still attached to a node. */
struct kube_attachment {
    const char *driver, *node;
    const char *volume; /* a PersistentVolume; "": an inline volume of a pod */
};

/* Parse objects without their envelope; false: malformed. */
bool kube_driver_read(struct arena *arena, struct proto_reader object, struct kube_driver *ret);
bool kube_capacity_read(struct arena *arena, struct proto_reader object, struct kube_capacity *ret);
bool kube_attachment_read(struct arena *arena, struct proto_reader object, struct kube_attachment *ret);

/* An in-tree volume type that has migrated to a CSI driver: its volumes count as the driver's. */
struct kube_in_tree {
    const char *provisioner, *driver;
    uint32_t of_pod, of_volume,
        name; /* field numbers: in v1.VolumeSource, in v1.PersistentVolumeSource, of the name within both */
};
/* Finds a type by its field number in either source; NULL: not an in-tree type. */
const struct kube_in_tree *kube_in_tree_of_pod(uint32_t source);
const struct kube_in_tree *kube_in_tree_of_volume(uint32_t source);
/* Returns the CSI volume handle of the volume with this name; `zones` is its zone label ("": none). */
const char *kube_in_tree_handle(struct arena *arena, const struct kube_in_tree *kind, const char *name,
                                const char *zones);
/* Returns the driver of a class with this provisioner, usually the same name. */
const char *kube_provisioner_driver(const char *provisioner);
