/* cutting_stock.h - prices of shares of a GPU when shares must be packed onto whole GPUs: the dual prices of a
 * cutting-stock problem.
 *
 * The demand for each size is given. The linear programme of the fewest GPUs that hold all shares is solved by column
 * generation (Gilmore and Gomory); a column is a way to fill one GPU. Its dual values are the prices. Sizes that fill a
 * GPU together cost one GPU together. A size that leaves an unusable rest pays for the rest. A size that fits into
 * rests that exist anyway costs nothing.
 */
#pragma once

#include "base/arena.h"

/* Shares are counted in hundredths of a GPU: requested shares are rounded up, free ones down. */
enum { CUTTING_STOCK_PARTS = 100 };

/* Computes the price of each size with a demand, in GPUs, from 0 to 1; 0 for other sizes. Index 0 is not used. Takes
 * working memory from the arena and returns it. The result is the same to the last bit on every machine. */
void cutting_stock_prices(const double demand[CUTTING_STOCK_PARTS + 1], struct arena *arena,
                          double ret_price[CUTTING_STOCK_PARTS + 1]);
