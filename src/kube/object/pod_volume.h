/* pod_volume.h - the volumes of v1.Pod, for pod.c alone: claims, images, and disks that are named in the pod itself. */
#pragma once

#include "kube/object/pod.h"

/* What is kept of v1.Volume. */
extern const struct kube_keep kube_keep_pod_volume;
/* Into mounts, images or disks. */
void kube_pod_volume_read(struct kube_in *in, const struct proto_field *f, struct kube_pod *pod);

/* pod.c: the name of an image, normalised, unless it is there. */
void kube_pod_image_add(struct kube_in *in, const struct proto_field *f, struct kube_pod *pod);
