/* filters.h - declarations of all filters, and loops over nodes that they share. */
#pragma once

#include "base/bits.h"
#include "core/filter/filter.h"
#include "core/search/attempt.h"
#include "core/search/holders.h"

extern const struct filter filter_state;
extern const struct filter filter_over;
extern const struct filter filter_pressure;
extern const struct filter filter_target;
extern const struct filter filter_headroom;
extern const struct filter filter_name;
extern const struct filter filter_labels;
extern const struct filter filter_taints;
extern const struct filter filter_domain;
extern const struct filter filter_runtime;
extern const struct filter filter_arch;
extern const struct filter filter_page_size;
extern const struct filter filter_gpu_kind;
extern const struct filter filter_ports;
extern const struct filter filter_volumes;
extern const struct filter filter_attach;
extern const struct filter filter_resources;
extern const struct filter filter_gpu;
extern const struct filter filter_spread;
extern const struct filter filter_affinity;
extern const struct filter filter_anti_affinity;
extern const struct filter filter_per_node;
extern const struct filter filter_window;
extern const struct filter filter_deadline;
extern const struct filter filter_reserved;

/* The loops visit only bits that are still set, so later filters check fewer nodes. */
#define EACH_NODE(p, blocks, bits)                                                                                     \
    for (uint32_t block_ = (blocks).from, p = 0; block_ < (blocks).to; block_++)                                       \
        for (uint64_t left_ = (bits)[block_ - (blocks).from]; left_ && ((p = block_ * BLOCK + bits_low(left_)), 1);    \
             left_ &= left_ - 1)

#define REFUSE_NODE(p, blocks, bits) ((bits)[(p) / BLOCK - (blocks).from] &= ~((uint64_t)1 << (p) % BLOCK))

static inline const struct constraints *turn_rules(const struct attempt *t)
{
    return snapshot_constraints(t->c->s, t->k->constraints);
}

static inline bool syms_have(const struct syms *list, sym x)
{
    for (uint32_t i = 0; i < list->len; i++)
        if (list->at[i] == x)
            return true;
    return false;
}

/* Returns whether there is a topology constraint of that kind, either a requirement or a preference. */
static inline bool has_topology_constraint(const struct attempt *t, enum topology_constraint_kind kind, bool required)
{
    for (uint32_t i = 0; i < t->topology_constraints_len; i++)
        if (t->topology_constraints[i].topology_constraint &&
            t->topology_constraints[i].topology_constraint->kind == kind &&
            topology_state_required(&t->topology_constraints[i]) == required)
            return true;
    return false;
}

bool taint_tolerated(const struct taint *taint, const struct tolerations *tolerations);
