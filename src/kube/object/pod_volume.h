/* pod_volume.h - the volumes of v1.Pod: claims, images, and disks named in the pod. Internal to pod.c. */
#pragma once

#include "kube/object/pod.h"

/* What is kept of v1.Volume. */
extern const struct kube_field_filter kube_keep_pod_volume;
/* Parses a volume into the pod's mounts, images or disks. */
void kube_pod_volume_read(struct kube_decoder *in, const struct proto_field *f, struct kube_pod *pod);

/* In pod.c: adds the normalised name of an image unless it is there. */
void kube_pod_image_add(struct kube_decoder *in, const struct proto_field *f, struct kube_pod *pod);
