/* rank_berth.c - the ranking "berth": each job has a time by which it should have started, and the earliest of these
 * times is first.
 *
 * That time is the job's creation plus a patience, which grows with its expected run time and, slowly, with its size.
 * So short and small jobs go first, which keeps the average slowdown low, but no job is overtaken for ever: jobs
 * created after its time come after it. If the estimate is a guess, the patience is small, because the job may end at
 * once and would have waited for nothing. If the estimate is sure, because it is as long as the time limit, the
 * patience is large.
 */
#include "base/math.h"
#include "core/queue/ranking.h"

#define SECOND_NS 1e9

static const double guessed = 0.6, sure = 20;

static bool is_sure(const struct rank_row *row)
{
    int64_t limit = row->t->limit_ns;
    return limit && row->t->estimate_ns >= limit - limit / 200;
}

double ranking_berth(struct ranks *r, const struct rank_row *row)
{
    double time = (double)row_estimate_ns(r, row) / SECOND_NS, size = row_extent(r, row).size;
    double patience = (is_sure(row) ? sure : guessed) * (time > 1 ? time : 1) * math_pow(size > 1 ? size : 1, 1.0 / 3);
    return -((double)row->w->created_ns / SECOND_NS + patience);
}

uint32_t ranking_berth_terms(struct ranks *r, const struct rank_row *row,
                             struct berth_rank_term ret[static BERTH_RANK_TERMS_MAX])
{
    double time = (double)row_estimate_ns(r, row) / SECOND_NS, size = row_extent(r, row).size;
    double waited = ((double)r->s->now_ns - (double)row->w->created_ns) / SECOND_NS;

    ret[0] = (struct berth_rank_term){"waited", "seconds since submission", waited, 1};
    ret[1] = (struct berth_rank_term){
        "patience",
        is_sure(row) ? "expected seconds x cube root of the size; a known run time has weight 20"
                     : "expected seconds x cube root of the size; an estimated run time has weight 0.6",
        (time > 1 ? time : 1) * math_pow(size > 1 ? size : 1, 1.0 / 3), -(is_sure(row) ? sure : guessed)};
    return 2;
}
