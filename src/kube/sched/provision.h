/* provision.h - volumes for claims that waited for their first pod: asked for on the node it got, and awaited.
 *
 * A volume that is there is marked as the claim's; of one that has to be made its provisioner is told the node. Others then bind the two; when all
 * claims of a pod are bound, the pod may be. A claim that another pod has asked for is only awaited, and asked for here should that one come to
 * nothing. What nobody binds within ten minutes counts as failed.
 */
#pragma once

#include "kube/cache/cache.h"

struct kube_provisioner;

/* Once for each that was begun, and not from within kube_provision; "" when all are bound. */
typedef void kube_provisioned(void *ctx, uint64_t instance, const char *trouble);

struct kube_provisioner *kube_provisioner_new(struct loop *l, struct kube_api *api, struct project *project,
                                              kube_provisioned *done, void *ctx);
/* Nothing is told of what is under way; NULL is fine. */
void kube_provisioner_free(struct kube_provisioner *p);

/* False: an assumed pod has no such claims, and nothing is begun. */
bool kube_provision(struct kube_provisioner *p, uint64_t instance);
/* The provisioner of a claim that is there for itself is told this node. Nothing is told of how it went: the claim shows it. */
void kube_provision_claim(struct kube_provisioner *p, const struct project_volume *claim, const char *node);
/* Something in the cluster has changed: is somebody served by now, or to ask in place of another? */
void kube_provision_look(struct kube_provisioner *p);
