/* cutting_stock.c - the simplex method with column generation; keeps the inverse of the basis. */
#include "core/gpu/cutting_stock.h"

#include <stdbool.h>

/* About a hundred pivots were observed at most; stopping early leaves nearly correct prices. */
enum { PIVOTS_MAX = 400 };
static const double improves = 1e-7, tiny = 1e-9, same = 1e-12;

struct cutting_stock {
    uint32_t len;                                             /* number of sizes with a demand: rows */
    uint32_t size[CUTTING_STOCK_PARTS];                       /* [row], ascending */
    uint32_t row[CUTTING_STOCK_PARTS + 1];                    /* [size] */
    double inverse[CUTTING_STOCK_PARTS][CUTTING_STOCK_PARTS]; /* of the basis */
    double amount[CUTTING_STOCK_PARTS];                       /* [row]: of the column in the basis */
    double cost[CUTTING_STOCK_PARTS];                         /* [row]: 1 for a GPU, 0 for a surplus */
    double price[CUTTING_STOCK_PARTS];                        /* [row] */
    double gpu_cost[CUTTING_STOCK_PARTS + 1];                 /* [parts]: value of the best filling at these prices */
    uint32_t last[CUTTING_STOCK_PARTS + 1]; /* [parts]: a size in that filling; 0: one part stays empty */
    /* [row]: the entering column, and the same in terms of the basis */
    double column[CUTTING_STOCK_PARTS], enters[CUTTING_STOCK_PARTS];
};

/* Makes the initial basis: each size alone on its own GPUs. The amounts differ slightly, so that no two rows tie. */
static void begin(struct cutting_stock *s, const double *demand)
{
    for (uint32_t size = 1; size <= CUTTING_STOCK_PARTS; size++)
        if (demand[size] > 0) {
            s->row[size] = s->len;
            s->size[s->len++] = size;
        }
    for (uint32_t i = 0; i < s->len; i++) {
        uint32_t fit = CUTTING_STOCK_PARTS / s->size[i];
        double each = fit;
        s->inverse[i][i] = 1 / each;
        s->amount[i] = demand[s->size[i]] / each * (1 + 1e-5 * (i * 37 % 11));
        s->cost[i] = 1;
    }
}

static void set_prices(struct cutting_stock *s)
{
    for (uint32_t j = 0; j < s->len; j++)
        s->price[j] = 0;
    for (uint32_t i = 0; i < s->len; i++)
        for (uint32_t j = 0; j < s->len; j++)
            s->price[j] += s->cost[i] * s->inverse[i][j];
}

static void fill_best(struct cutting_stock *s)
{
    s->gpu_cost[0] = 0;
    for (uint32_t parts = 1; parts <= CUTTING_STOCK_PARTS; parts++) {
        double best = s->gpu_cost[parts - 1];
        s->last[parts] = 0;
        for (uint32_t i = 0; i < s->len && s->size[i] <= parts; i++) {
            double with = s->gpu_cost[parts - s->size[i]] + s->price[i];
            if (with > best + same) {
                best = with;
                s->last[parts] = s->size[i];
            }
        }
        s->gpu_cost[parts] = best;
    }
}

/* Chooses the entering column: the surplus of a size whose price is below 0, or a filling whose value is above one
 * GPU. */
static bool choose(struct cutting_stock *s, double *ret_cost)
{
    uint32_t surplus = s->len;
    double least = -improves;
    for (uint32_t j = 0; j < s->len; j++) {
        s->column[j] = 0;
        if (s->price[j] < least) {
            least = s->price[j];
            surplus = j;
        }
    }
    *ret_cost = surplus < s->len ? 0 : 1;
    if (surplus < s->len) {
        s->column[surplus] = -1;
        return true;
    }
    fill_best(s);
    if (s->gpu_cost[CUTTING_STOCK_PARTS] < 1 + improves)
        return false;
    for (uint32_t parts = CUTTING_STOCK_PARTS; parts > 0; parts -= s->last[parts] ? s->last[parts] : 1)
        if (s->last[parts])
            s->column[s->row[s->last[parts]]] += 1;
    return true;
}

/* Returns the row that leaves the basis; s->len if none can. */
static uint32_t leaving_row(struct cutting_stock *s)
{
    uint32_t row = s->len;
    double least = 0;
    for (uint32_t i = 0; i < s->len; i++) {
        double sum = 0;
        for (uint32_t j = 0; j < s->len; j++)
            sum += s->inverse[i][j] * s->column[j];
        s->enters[i] = sum;
        if (sum > tiny && (row == s->len || s->amount[i] / sum < least)) {
            least = s->amount[i] / sum;
            row = i;
        }
    }
    return row;
}

static void pivot(struct cutting_stock *s, uint32_t row, double cost)
{
    double by = s->enters[row];
    for (uint32_t j = 0; j < s->len; j++)
        s->inverse[row][j] /= by;
    s->amount[row] /= by;
    s->cost[row] = cost;
    for (uint32_t i = 0; i < s->len; i++) {
        double times = s->enters[i];
        if (i == row || (times < same && times > -same))
            continue;
        for (uint32_t j = 0; j < s->len; j++)
            s->inverse[i][j] -= times * s->inverse[row][j];
        s->amount[i] -= times * s->amount[row];
    }
}

void cutting_stock_prices(const double demand[CUTTING_STOCK_PARTS + 1], struct arena *arena,
                          double ret_price[CUTTING_STOCK_PARTS + 1])
{
    struct arena_mark mark = arena_mark(arena);
    struct cutting_stock *s = ARENA_NEW(arena, struct cutting_stock);
    double cost;

    begin(s, demand);
    set_prices(s);
    for (int i = 0; i < PIVOTS_MAX && choose(s, &cost); i++) {
        uint32_t row = leaving_row(s);
        if (row == s->len)
            break;
        pivot(s, row, cost);
        set_prices(s);
    }
    for (uint32_t size = 0; size <= CUTTING_STOCK_PARTS; size++)
        ret_price[size] = 0;
    for (uint32_t i = 0; i < s->len; i++)
        ret_price[s->size[i]] = s->price[i] < 0 ? 0 : s->price[i] > 1 ? 1 : s->price[i];
    arena_rewind(arena, mark);
}
