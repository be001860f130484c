/* node.h - a node as a scheduler needs it (v1.Node), and its volume limits (v1.CSINode). */
#pragma once

#include "kube/object/meta.h"

extern const struct kube_field_filter kube_keep_node, kube_keep_csi_node;
extern const struct kube_field_filter kube_keep_node_bare; /* the same without images */

struct kube_node {
    struct kube_meta meta;
    bool unschedulable;
    KUBE_LIST(struct berth_taint) taints;
    struct kube_amounts allocatable;
    KUBE_LIST(struct berth_image) images; /* one entry per name of an image */
};

/* Parses an object without its envelope; false: malformed. */
bool kube_node_read(struct arena *arena, struct proto_reader object, struct kube_node *ret);

/* A CSI driver on a node, and how many of its volumes can be attached there at once. */
struct kube_attach {
    const char *driver;
    int64_t count; /* -1: unlimited */
};
struct kube_csi_node {
    struct kube_meta meta;
    KUBE_LIST(struct kube_attach) drivers;
};
bool kube_csi_node_read(struct arena *arena, struct proto_reader object, struct kube_csi_node *ret);
