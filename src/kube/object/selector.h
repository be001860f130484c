/* selector.h - label selectors and node selectors, as conditions of Berth's model (struct berth_expr).
 *
 * A selector that cannot be parsed selects nothing, as in kube-scheduler. Matching here is for what the core does not see: namespaces,
 * volumes, and the node of a volume; pods and nodes are matched by the core.
 */
#pragma once

#include "kube/object/meta.h"

struct kube_exprs {
    struct berth_expr *at;
    size_t len, cap;
};

struct kube_selector {
    bool present; /* an absent one selects nothing; an empty one everything */
    bool never;   /* not to be parsed */
    struct kube_exprs exprs;
};

/* metav1.LabelSelector */
struct kube_selector kube_selector_read(struct kube_in *in, const struct proto_field *f);
bool kube_selector_matches(const struct kube_selector *s, const struct kube_labels *labels);
/* Adds `key = value`, unless it is there. */
void kube_selector_add(struct arena *arena, struct kube_selector *s, const char *key, const char *value);

/* The label under which a node's own name can be asked for (metadata.name); no label of Kubernetes has this form. */
#define KUBE_NAME_LABEL "@name"

/* v1.NodeSelector: any of its terms. One that selects nothing has no conditions. */
struct kube_terms {
    struct berth_term *at;
    size_t len, cap;
};
/* v1.NodeSelectorTerm, v1.NodeSelector: appends terms; what can hold nowhere is left out. */
void kube_term_read(struct kube_in *in, const struct proto_field *f, int32_t weight, struct kube_terms *to);
void kube_terms_read(struct kube_in *in, const struct proto_field *f, struct kube_terms *to);
bool kube_terms_match(const struct kube_terms *terms, const struct kube_labels *labels);
/* Both must hold: every term of a with every term of b, in *to. False, where that would be more than BERTH_LIST_MAX. An empty
 * list has no say. */
bool kube_terms_both(struct arena *arena, const struct kube_terms *a, const struct kube_terms *b,
                     struct kube_terms *to);
/* Terms that ask for values of the same one label become one, as far as a list goes. */
void kube_terms_merge(struct arena *arena, struct kube_terms *terms);
