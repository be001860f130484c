/* ranking.c - the built-in rankings. */
#include "core/queue/ranking.h"

#include <errno.h>
#include <string.h>

#include "base/math.h"

#define SECOND_NS 1e9

/* ---- the key of one row ----------------------------------------------------------------------------------------- */

/* Converts to thousandths; saturates. */
static int64_t key_of(double x)
{
    double milli = x * 1000;
    if (milli >= 9e18)
        return (int64_t)9e18;
    return milli <= -9e18 ? -(int64_t)9e18 : (int64_t)milli;
}

static double seconds(struct ranks *r, const struct rank_row *row)
{
    double s = (double)row_estimate_ns(r, row) / SECOND_NS;
    return s > 1 ? s : 1;
}

static double created(const struct rank_row *row)
{
    double s = (double)row->w->created_ns / SECOND_NS;
    return s > 1 ? s : 1;
}

static double fifo(struct ranks *r, const struct rank_row *row)
{
    (void)r;
    (void)row;
    return 0;
}

static double by_priority(struct ranks *r, const struct rank_row *row)
{
    (void)r;
    return row->t->urgency;
}

static double by_fair_share(struct ranks *r, const struct rank_row *row)
{
    return factors[factor_find("fair_share")].of(r, row) / 1000.0;
}

static double drf(struct ranks *r, const struct rank_row *row)
{
    if (row->t->quotas_len == 0)
        return 0;
    if (!r->filled)
        drf_make(r);
    return -r->filled[row->workload] * MILLION;
}

static double sjf(struct ranks *r, const struct rank_row *row)
{
    return -seconds(r, row);
}

static double srsf(struct ranks *r, const struct rank_row *row)
{
    return -seconds(r, row) * row_extent(r, row).size;
}

static double f1(struct ranks *r, const struct rank_row *row)
{
    return -(math_log10(seconds(r, row)) * row_extent(r, row).size + 870 * math_log10(created(row)));
}

static double f2(struct ranks *r, const struct rank_row *row)
{
    return -(math_sqrt(seconds(r, row)) * row_extent(r, row).size + 25600 * math_log10(created(row)));
}

static double f3(struct ranks *r, const struct rank_row *row)
{
    return -(seconds(r, row) * row_extent(r, row).size + 6860000 * math_log10(created(row)));
}

static double f4(struct ranks *r, const struct rank_row *row)
{
    return -(seconds(r, row) * math_sqrt(row_extent(r, row).size) + 530000 * math_log10(created(row)));
}

static double wfp3(struct ranks *r, const struct rank_row *row)
{
    double x = (double)row_waited_s(r, row) / seconds(r, row);
    return x * x * x * row_extent(r, row).size;
}

static double unicef(struct ranks *r, const struct rank_row *row)
{
    double size = row_extent(r, row).size;
    return (double)row_waited_s(r, row) / (math_log2(size > 2 ? size : 2) * seconds(r, row));
}

static double las(struct ranks *r, const struct rank_row *row)
{
    return -(double)row->t->attained_ns / SECOND_NS * row_extent(r, row).size;
}

/* ---- terms of one row ---- */

/* A key that is a single number; weight -1 if the key is the number's negative. */
struct single_key {
    const char *name, *sentence;
    double weight;
};

static uint32_t one_term(const struct single_key *of, double key,
                         struct berth_rank_term ret[static BERTH_RANK_TERMS_MAX])
{
    ret[0] = (struct berth_rank_term){of->name, of->sentence, key * of->weight, of->weight};
    return 1;
}

/* The terms of f1 to f4: one of time and size, one of the creation. */
static uint32_t two_terms(const char *name, double weight, const struct rank_row *row, double key,
                          struct berth_rank_term ret[static BERTH_RANK_TERMS_MAX])
{
    double log_created = math_log10(created(row));
    ret[0] =
        (struct berth_rank_term){name, "by expected seconds and processors or GPUs", -key - weight * log_created, -1};
    ret[1] = (struct berth_rank_term){"log10(created)", "of the submission time in seconds", log_created, -weight};
    return 2;
}

enum {
    TIMED = 1, /* the passage of time alone changes the order */
    FINE = 2,  /* keys are stored in billionths, so that close keys differ, and shown in thousandths */
    FINER = 1000000,
};

static const struct ranking {
    const char *name, *sentence;
    unsigned is;                                                /* TIMED, FINE */
    double (*key)(struct ranks *r, const struct rank_row *row); /* NULL: computed by columns */
} rankings[] = {
    {"fifo",        "the earliest submission first",                                                   0,     fifo         },
    {"priority",    "the highest urgency set by the owner first",                                      0,     by_priority  },
    {"multifactor", "the weighted sum of factors, the highest first",                                  0,     NULL         },
    {"fair-share",  "the most underserved account first: its share over its past use, level by level", TIMED,
     by_fair_share                                                                                                         },
    {"drf",         "the account with the smallest dominant share first (DRF)",                        0,     drf          },
    {"sjf",         "the shortest expected run time first",                                            0,     sjf          },
    {"srsf",        "the smallest expected time x size first",                                         0,     srsf         },
    {"f1",          "log10(time) x size + 870 x log10(creation), the lowest first",                    FINE,  f1           },
    {"f2",          "sqrt(time) x size + 25600 x log10(creation), the lowest first",                   FINE,  f2           },
    {"f3",          "time x size + 6860000 x log10(creation), the lowest first",                       0,     f3           },
    {"f4",          "time x sqrt(size) + 530000 x log10(creation), the lowest first",                  0,     f4           },
    {"wfp3",
     "(waiting time / run time) cubed x size: long waits relative to the run time first, large jobs "
     "more so",                                                                                        TIMED, wfp3         },
    {"unicef",      "waiting time / (log2(size) x run time): small and short jobs that waited first",  TIMED, unicef       },
    {"las",         "the smallest attained time x size first",                                         0,     las          },
    {"berth",       "creation time plus a patience by expected time and size, the earliest first",     0,     ranking_berth},
    {"formula",     "the administrator's formula over the factors",                                    TIMED, NULL         },
};
enum { RANKINGS = sizeof rankings / sizeof *rankings };

/* The last ranking, "formula", is not listed: it does not exist without a formula. */
const char *berth_ranking_at(size_t i, const char **ret_sentence)
{
    if (i >= RANKINGS - 1)
        return NULL;
    if (ret_sentence)
        *ret_sentence = rankings[i].sentence;
    return rankings[i].name;
}

static const struct ranking *ranking_find(const char *name)
{
    if (!name || !*name)
        return &rankings[0];
    for (size_t i = 0; i < RANKINGS; i++)
        if (strcmp(rankings[i].name, name) == 0)
            return &rankings[i];
    return NULL;
}

/* ---- weights ---------------------------------------------------------------------------------------------------- */

static const struct berth_weight weights_usual[] = {
    {"fair_share", 50},
    {"priority",   30},
    {"age",        20},
    {"size",       5 },
};

static bool is(const struct berth_ranking *by, const char *name)
{
    return ranking_find(by->name) == ranking_find(name);
}

void ranking_weights(const struct berth_ranking *by, int32_t ret[static FACTORS_MAX])
{
    const struct berth_weight *at = by->weights_len ? by->weights : weights_usual;
    size_t len = by->weights_len ? by->weights_len : sizeof weights_usual / sizeof *weights_usual;
    memset(ret, 0, FACTORS_MAX * sizeof *ret);
    for (size_t i = 0; is(by, "multifactor") && i < len; i++)
        ret[factor_find(at[i].score)] = at[i].weight;
    if (is(by, "fair-share"))
        ret[factor_find("fair_share")] = 1;
}

int ranking_check(const struct berth_ranking *by, struct berth_err *err)
{
    if (!ranking_find(by->name))
        return err_set(err, EINVAL, "there is no ranking \"%s\"", by->name);
    if (is(by, "formula") && !by->formula)
        return err_set(err, EINVAL, "ranking \"formula\" needs a formula");
    if (by->weights_len && !is(by, "multifactor"))
        return err_set(err, EINVAL, "ranking \"%s\" takes no weights; only \"multifactor\" does",
                       by->name && *by->name ? by->name : "fifo");
    for (size_t i = 0; i < by->weights_len; i++) {
        const struct berth_weight *w = &by->weights[i];
        if (!w->score || factor_find(w->score) == NONE)
            return err_set(err, EINVAL, "there is no factor \"%s\"", w->score ? w->score : "");
        if (w->weight == 0 || w->weight < -BERTH_WEIGHT_MAX || w->weight > BERTH_WEIGHT_MAX)
            return err_set(err, EINVAL, "factor \"%s\": weight %d: expected -%d to %d, and not 0", w->score,
                           (int)w->weight, BERTH_WEIGHT_MAX, BERTH_WEIGHT_MAX);
        for (size_t j = 0; j < i; j++)
            if (strcmp(by->weights[j].score, w->score) == 0)
                return err_set(err, EINVAL, "factor \"%s\" has two weights", w->score);
    }
    return 0;
}

bool ranking_is_timed(const struct berth_ranking *by)
{
    const struct ranking *of = ranking_find(by->name);
    int32_t weights[FACTORS_MAX];
    bool timed = of->is & TIMED;
    ranking_weights(by, weights);
    for (uint32_t i = 0; i < factors_len; i++)
        timed |= weights[i] && factors[i].timed;
    return timed;
}

/* ---- the keys of many rows -------------------------------------------------------------------------------------- */

/* Prefetches some rows, all at once. Always inlined: the compiler removes calls of a function that only prefetches as
 * calls without effect. */
static inline __attribute__((always_inline)) void prefetch_rows(const struct rank_row *rows, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        __builtin_prefetch(rows[i].w);
        __builtin_prefetch(rows[i].t);
    }
}

/* Keys are in millionths of the weighted sum, or thousandths of a thousand times that sum. */
static void multifactor(struct ranks *r, const struct berth_ranking *by, const struct rank_row *rows, uint32_t len,
                        int64_t *keys)
{
    int32_t weights[FACTORS_MAX];
    ranking_weights(by, weights);
    memset(keys, 0, len * sizeof *keys);
    for (uint32_t from = 0; from < len; from += ROW_BLOCK) {
        prefetch_rows(rows, from, from + ROW_BLOCK < len ? from + ROW_BLOCK : len);
        for (uint32_t f = 0; f < factors_len; f++)
            for (uint32_t i = from; weights[f] && i < len && i < from + ROW_BLOCK; i++)
                keys[i] += (int64_t)weights[f] * factors[f].of(r, &rows[i]);
    }
}

int ranking_keys(struct ranks *r, const struct berth_ranking *by, const struct rank_row *rows, uint32_t len,
                 int64_t *keys, struct berth_err *err)
{
    const struct ranking *of = ranking_find(by->name);
    if (is(by, "formula"))
        return ranking_formula(r, by, rows, len, keys, err);
    if (!of->key)
        multifactor(r, by, rows, len, keys);
    for (uint32_t i = 0; of->key && i < len; i++) {
        if (i % ROW_BLOCK == 0)
            prefetch_rows(rows, i, i + ROW_BLOCK < len ? i + ROW_BLOCK : len);
        keys[i] = key_of(of->is & FINE ? of->key(r, &rows[i]) * FINER : of->key(r, &rows[i]));
    }
    return 0;
}

uint32_t ranking_terms(struct ranks *r, const struct berth_ranking *by, const struct rank_row *row,
                       struct berth_rank_term ret[static BERTH_RANK_TERMS_MAX])
{
    static const struct {
        double (*key)(struct ranks *r, const struct rank_row *row);
        struct single_key of;
    } singles[] = {
        {by_priority, {"priority", "the urgency set by the owner, -1000 to 1000", 1}                      },
        {drf,         {"given", "what the account received before, in millionths of the cluster", -1}     },
        {sjf,         {"time", "expected seconds", -1}                                                    },
        {srsf,        {"time x size", "expected seconds x processors or GPUs", -1}                        },
        {las,         {"attained x size", "seconds run in earlier attempts x processors or GPUs", -1}     },
        {wfp3,        {"wfp3", "(seconds waited / expected seconds) to the third x processors or GPUs", 1}},
        {unicef,      {"unicef", "seconds waited / (log2(processors or GPUs) x expected seconds)", 1}     },
    };
    static const struct {
        double (*key)(struct ranks *r, const struct rank_row *row);
        const char *name;
        double weight;
    } pairs[] = {
        {f1, "log10(time) x size", 870    },
        {f2, "sqrt(time) x size",  25600  },
        {f3, "time x size",        6860000},
        {f4, "time x sqrt(size)",  530000 },
    };
    const struct ranking *of = ranking_find(by->name);

    if (of->key == ranking_berth)
        return ranking_berth_terms(r, row, ret);
    for (size_t i = 0; i < sizeof singles / sizeof *singles; i++)
        if (of->key && of->key == singles[i].key)
            return one_term(&singles[i].of, of->key(r, row), ret);
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (of->key && of->key == pairs[i].key)
            return two_terms(pairs[i].name, pairs[i].weight, row, of->key(r, row), ret);
    return 0;
}

int64_t ranking_key_for_display(const struct berth_ranking *by, int64_t key)
{
    return ranking_find(by->name)->is & FINE ? key / FINER : key;
}
