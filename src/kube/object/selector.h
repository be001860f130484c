/* selector.h - label selectors and node selectors, as expressions of Berth's model (struct berth_expr).
 *
 * A selector that cannot be parsed matches nothing, as in kube-scheduler. Matching here is only for what the core does
 * not see: namespaces, volumes, and the node of a volume. The core matches pods and nodes.
 */
#pragma once

#include "kube/object/meta.h"

struct kube_exprs {
    struct berth_expr *at;
    size_t len, cap;
};

struct kube_selector {
    bool present; /* an absent selector matches nothing; an empty one everything */
    bool never;   /* could not be parsed */
    struct kube_exprs exprs;
};

/* metav1.LabelSelector */
struct kube_selector kube_selector_read(struct kube_decoder *in, const struct proto_field *f);
bool kube_selector_matches(const struct kube_selector *s, const struct kube_labels *labels);
/* Adds `key = value` unless it is there. */
void kube_selector_add(struct arena *arena, struct kube_selector *s, const char *key, const char *value);

/* Label that holds a node's own name (metadata.name); "@" is not valid in Kubernetes labels. */
#define KUBE_NAME_LABEL "@name"

/* v1.NodeSelector: any of its terms must match. A term without expressions matches nothing. */
struct kube_terms {
    struct berth_term *at;
    size_t len, cap;
};
/* v1.NodeSelectorTerm, v1.NodeSelector: append terms, leaving out those that match nothing. */
void kube_term_read(struct kube_decoder *in, const struct proto_field *f, int32_t weight, struct kube_terms *to);
void kube_terms_read(struct kube_decoder *in, const struct proto_field *f, struct kube_terms *to);
bool kube_terms_match(const struct kube_terms *terms, const struct kube_labels *labels);
/* Returns in *to the terms equivalent to a and b: every term of a combined with every term of b. False if they would
 * exceed BERTH_LIST_MAX. An empty list restricts nothing. */
bool kube_terms_both(struct arena *arena, const struct kube_terms *a, const struct kube_terms *b,
                     struct kube_terms *to);
/* Merges terms that test values of the same single label, up to the limit of a list. */
void kube_terms_merge(struct arena *arena, struct kube_terms *terms);
