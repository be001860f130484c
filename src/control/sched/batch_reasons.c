#include "control/sched/batch_reasons.h"

#include <inttypes.h>

void batch_reasons_write(struct berth_plan *plan, struct str *to)
{
    enum { WORKLOADS_MAX = 100 };
    size_t len = berth_plan_pendings(plan);
    str_add_char(to, '[');
    for (size_t i = 0; i < len && i < WORKLOADS_MAX; i++) {
        struct berth_pending p = berth_plan_pending(plan, i);
        str_add(to, i ? ",[" : "[");
        str_add_json(to, p.workload);
        str_addf(to, ",%zu,[", p.ordinals_len);
        for (size_t r = 0; r < p.reasons_len; r++) {
            str_add(to, r ? ",[" : "[");
            str_add_json(to, p.reasons[r].reason);
            str_add_char(to, ',');
            str_add_json(to, p.reasons[r].what);
            str_addf(to, ",%" PRIu64 "]", p.reasons[r].nodes);
        }
        str_add(to, "]]");
    }
    str_add_char(to, ']');
}
