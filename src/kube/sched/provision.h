/* provision.h - requests volumes for WaitForFirstConsumer claims once their pod has a node, and waits for them.
 *
 * An existing volume is reserved for the claim (claimRef); for a new volume the provisioner is given the node
 * (selected-node annotation). The volume controller then binds the two; when all claims of a pod are bound, the pod may
 * be bound. A claim that another pod has requested is only awaited, and requested here if that pod goes. Claims not
 * bound within ten minutes count as failed.
 */
#pragma once

#include "kube/cache/cache.h"

struct kube_provisioner;

/* Called once for each instance begun, never from within kube_provision; `trouble` is "" when all claims are bound. */
typedef void kube_provisioned(void *ctx, uint64_t instance, const char *trouble);

struct kube_provisioner *kube_provisioner_new(struct loop *l, struct kube_api *api, struct cache *cache,
                                              kube_provisioned *done, void *ctx);
/* No callback is made for instances under way; accepts NULL. */
void kube_provisioner_free(struct kube_provisioner *p);

/* Begins to serve an assumed pod; false: the pod has no such claims, and no callback follows. */
bool kube_provision(struct kube_provisioner *p, uint64_t instance);
/* Sets the selected node of an ephemeral claim. There is no callback: the claim itself shows the result. */
void kube_provision_claim(struct kube_provisioner *p, const struct cache_claim_volume *claim, const char *node);
/* To be called when the cluster changed: finishes instances whose claims are bound and requests claims whose pod has
 * gone. */
void kube_provision_check(struct kube_provisioner *p);
