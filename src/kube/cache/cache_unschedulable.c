/* cache_unschedulable.c - why a pod cannot be placed, in kube-scheduler's words.
 *
 * Users search for these sentences and programs match them, so they equal kube-scheduler's to the letter. The counts
 * may differ: kube-scheduler stops at the first failing filter of a node, here each filter counts all nodes.
 */
#include "kube/cache/cache_internal.h"

struct filter_message {
    const char *reason;
    bool gone; /* placeholders of missing nodes fail this filter too and are not counted */
    const char *text;
};

static const struct filter_message words[] = {
    {"name",          true,  "node(s) didn't match the requested node name"                                            },
    {"labels",        true,  "node(s) didn't match Pod's node affinity/selector"                                       },
    {"port",          false, "node(s) didn't have free ports for the requested pod ports"                              },
    {"volume",        false,
     "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"},
    {"attach",        false, "node(s) exceed max volume count"                                                         },
    {"spread",        true,  "node(s) didn't match pod topology spread constraints"                                    },
    {"affinity",      true,  "node(s) didn't match pod affinity rules"                                                 },
    {"anti-affinity", false, "node(s) didn't match pod anti-affinity rules"                                            },
    {"over",          true,  "node(s) have more allocated than allocatable"                                            },
};

struct message_parts {
    struct arena *arena;
    struct kube_texts texts;
};

static void part_add(struct message_parts *parts, uint64_t nodes, const char *text)
{
    if (nodes)
        kube_push(parts->arena, &parts->texts, arena_fmt(parts->arena, "%llu %s", (unsigned long long)nodes, text));
}

/* Reports whether the pod tolerates the unschedulable taint. */
static bool tolerates_cordon(const struct kube_pod *pod)
{
    for (size_t i = 0; i < pod->tolerations.len; i++) {
        const struct berth_toleration *t = &pod->tolerations.at[i];
        bool effect = t->effect == BERTH_EFFECT_ANY || t->effect == BERTH_NO_SCHEDULE;
        bool key = !*t->key || strcmp(t->key, "node.kubernetes.io/unschedulable") == 0;
        if (effect && key && (t->exists || !*t->value))
            return true;
    }
    return false;
}

/* A cordon is a taint in Berth but has a sentence of its own in kube-scheduler. */
static void taints_add(struct message_parts *parts, const struct cache *p, const struct kube_pod *pod, uint64_t nodes)
{
    uint64_t cordoned = 0;
    for (size_t i = 0; i < p->nodes.len; i++)
        cordoned += p->nodes.at[i].bytes && p->nodes.at[i].unschedulable;
    if (tolerates_cordon(pod))
        cordoned = 0;
    cordoned = cordoned < nodes ? cordoned : nodes;
    part_add(parts, cordoned, "node(s) were unschedulable");
    part_add(parts, nodes - cordoned, "node(s) had untolerated taint(s)");
}

static uint64_t less(uint64_t nodes, uint64_t gone)
{
    return nodes > gone ? nodes - gone : 0;
}

static void reason_add(struct message_parts *parts, const struct cache *p, const struct kube_pod *pod,
                       const struct berth_reason *r, uint64_t gone)
{
    const char *word, *sentence = r->text;
    if (strcmp(r->reason, "state") == 0)
        return;
    if (strcmp(r->reason, "taint") == 0) {
        taints_add(parts, p, pod, r->nodes);
        return;
    }
    if (strcmp(r->reason, "short") == 0) {
        part_add(parts, less(r->nodes, gone),
                 strcmp(r->what, "pods") == 0 ? "Too many pods" : arena_fmt(parts->arena, "Insufficient %s", r->what));
        return;
    }
    if (strcmp(r->reason, "quota") == 0 || strcmp(r->reason, "total") == 0) {
        /* the text names the quota and resource */
        kube_push(parts->arena, &parts->texts, r->text);
        return;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i].reason, r->reason) == 0) {
            part_add(parts, words[i].gone ? less(r->nodes, gone) : r->nodes, words[i].text);
            return;
        }
    for (size_t i = 0; (word = berth_reason_at(i, &sentence)) && strcmp(word, r->reason) != 0; i++)
        ;
    if (r->nodes)
        part_add(parts, r->nodes, arena_fmt(parts->arena, "node(s) %s", sentence));
    else
        kube_push(parts->arena, &parts->texts, sentence);
}

static void sort(struct kube_texts *texts)
{
    for (size_t i = 1; i < texts->len; i++)
        for (size_t k = i; k > 0 && strcmp(texts->at[k - 1], texts->at[k]) > 0; k--) {
            const char *other = texts->at[k];
            texts->at[k] = texts->at[k - 1];
            texts->at[k - 1] = other;
        }
}

void cache_unschedulable_message(const struct cache *p, const struct berth_pending *pending, struct str *to)
{
    uint32_t pod = pod_find(p, pending->workload);
    if (pod == NONE)
        return;
    const struct pod_entry *e = &p->pods.at[pod];
    str_addf(to, "0/%zu nodes are available:", p->nodes_there);
    if (e->wait && e->wait->why) {
        bool of_nodes = strncmp(e->wait->why, "node(s)", 7) == 0;
        if (of_nodes)
            str_addf(to, " %zu", p->nodes_there);
        str_addf(to, " %s.", e->wait->why);
        return;
    }
    struct arena arena;
    struct kube_pod from;
    arena_init(&arena);
    struct message_parts parts = {.arena = &arena};
    const struct template *t = &p->templates.at[e->template];
    if (kube_pod_read(&arena, proto_reader(t->bytes, t->len), &from))
        for (size_t i = 0; i < pending->reasons_len; i++)
            reason_add(&parts, p, &from, &pending->reasons[i], p->nodes_by_name.len - p->nodes_there);
    sort(&parts.texts);
    for (size_t i = 0; i < parts.texts.len; i++)
        str_addf(to, "%s %s", i ? "," : "", parts.texts.at[i]);
    str_add(to, parts.texts.len ? "." : " there is none.");
    arena_done(&arena);
}
