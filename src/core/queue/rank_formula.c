/* rank_formula.c - the columns passed to a formula: factors, words, and rows without scaling. */
#include <errno.h>
#include <string.h>

#include "core/queue/ranking.h"

#define SECOND_NS ((int64_t)1000000000)

struct formula_names {
    sym *names;
    uint32_t len, cap;
};

static bool has_word(const struct formula_names *w, sym name)
{
    for (uint32_t i = 0; i < w->len; i++)
        if (w->names[i] == name)
            return true;
    return false;
}

struct term_name_order {
    const struct berth_snapshot *s;
    const sym *names;
};

static int compare_text(const void *ctx, uint32_t a, uint32_t b)
{
    const struct term_name_order *by = ctx;
    return strcmp(snapshot_text(by->s, by->names[a]), snapshot_text(by->s, by->names[b]));
}

/* Returns the sorted names of the words that any row has. Equal lists share one address. */
static struct formula_names formula_names_of(struct ranks *r, const struct rank_row *rows, uint32_t len)
{
    struct arena *a = &r->p->scratch;
    struct formula_names w = {.names = ARENA_ARRAY(a, sym, BERTH_LIST_MAX), .cap = BERTH_LIST_MAX};
    const struct label *last = NULL;
    for (uint32_t i = 0; i < len; i++) {
        const struct labels *words = &rows[i].t->words;
        if (words->at == last)
            continue;
        last = words->at;
        for (uint32_t n = 0; n < words->len && w.len < w.cap; n++)
            if (!has_word(&w, words->at[n].key))
                w.names[w.len++] = words->at[n].key;
    }
    uint32_t *order = ARENA_ARRAY(a, uint32_t, 2 * w.len + 1);
    for (uint32_t i = 0; i < w.len; i++)
        order[i] = i;
    struct term_name_order by = {r->s, w.names};
    sort_indices(order, order + w.len, w.len, compare_text, &by);
    sym *sorted = ARENA_ARRAY(a, sym, w.len + 1);
    for (uint32_t i = 0; i < w.len; i++)
        sorted[i] = w.names[order[i]];
    w.names = sorted;
    return w;
}

static const char **word_column(struct ranks *r, const struct rank_row *rows, uint32_t len, sym name)
{
    const char **column = arena_alloc(&r->p->scratch, (len + 1) * sizeof *column);
    for (uint32_t i = 0; i < len; i++) {
        sym value = labels_find(rows[i].t->words, name);
        column[i] = value == MAP_NONE ? "" : snapshot_text(r->s, value);
    }
    return column;
}

static void fill_words(struct ranks *r, const struct rank_row *rows, uint32_t len, struct berth_factors *f)
{
    struct formula_names w = formula_names_of(r, rows, len);
    const char **names = ARENA_ARRAY(&r->p->scratch, const char *, w.len + 1);
    const char *const **columns = ARENA_ARRAY(&r->p->scratch, const char *const *, w.len + 1);
    for (uint32_t i = 0; i < w.len; i++) {
        names[i] = snapshot_text(r->s, w.names[i]);
        columns[i] = word_column(r, rows, len, w.names[i]);
    }
    f->word_names = names;
    f->word_names_len = w.len;
    f->words = columns;
}

static void fill_factors(struct ranks *r, const struct rank_row *rows, uint32_t len, struct berth_factors *f)
{
    const char **names = ARENA_ARRAY(&r->p->scratch, const char *, factors_len);
    int32_t **columns = ARENA_ARRAY(&r->p->scratch, int32_t *, factors_len);
    for (uint32_t n = 0; n < factors_len; n++) {
        names[n] = factors[n].name;
        columns[n] = arena_alloc(&r->p->scratch, (len + 1) * sizeof **columns);
    }
    for (uint32_t from = 0; from < len; from += ROW_BLOCK)
        for (uint32_t n = 0; n < factors_len; n++)
            for (uint32_t i = from; i < len && i < from + ROW_BLOCK; i++)
                columns[n][i] = factors[n].of(r, &rows[i]);
    f->names = names;
    f->names_len = factors_len;
    f->columns = (const int32_t *const *)columns;
}

int ranking_formula(struct ranks *r, const struct berth_ranking *by, const struct rank_row *rows, uint32_t len,
                    int64_t *keys, struct berth_err *err)
{
    struct berth_factors f = {.len = len};
    double *raw = arena_alloc(&r->p->scratch, (5 * (size_t)len + 1) * sizeof *raw);
    double *waited = raw, *runtime = raw + len, *pods = runtime + len, *size = pods + len, *created = size + len;
    for (uint32_t i = 0; i < len; i++) {
        struct demand_size e = row_extent(r, &rows[i]);
        waited[i] = (double)row_waited_s(r, &rows[i]);
        runtime[i] = (double)row_estimate_ns(r, &rows[i]) / (double)SECOND_NS;
        pods[i] = e.pods;
        size[i] = e.size;
        int64_t created_s = rows[i].w->created_ns / SECOND_NS;
        created[i] = (double)created_s;
    }
    f.waited = waited;
    f.runtime = runtime;
    f.pods = pods;
    f.size = size;
    f.created = created;
    fill_factors(r, rows, len, &f);
    fill_words(r, rows, len, &f);
    return by->formula(by->ctx, &f, keys, err);
}
