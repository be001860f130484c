/* table.c - all filters, in the order in which they are applied; a new filter is one row here. */
#include "core/filter/filters.h"

/* Pointers, so that each filter stays in its own file. */
const struct filter *const filter_rows[] = {
    &filter_state,     &filter_name,     &filter_labels,    &filter_taints,   &filter_domain,
    &filter_runtime,   &filter_arch,     &filter_page_size, &filter_gpu_kind, &filter_over,
    &filter_pressure,  &filter_target,   &filter_ports,     &filter_volumes,  &filter_attach,
    &filter_resources, &filter_gpu,      &filter_spread,    &filter_affinity, &filter_anti_affinity,
    &filter_per_node,  &filter_headroom, &filter_deadline,  &filter_window,   &filter_reserved,
};
const size_t filters_len = sizeof filter_rows / sizeof *filter_rows;

const char *berth_filter_at(size_t i, const char **ret_sentence)
{
    if (i >= filters_len)
        return NULL;
    if (ret_sentence)
        *ret_sentence = filter_rows[i]->text;
    return filter_rows[i]->name;
}
