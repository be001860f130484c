/* cutting_stock.h - what a share of a GPU is worth when shares must be packed onto whole GPUs: the prices of a cutting stock.
 *
 * Given how often each size is asked for, the linear programme of the fewest GPUs that hold them all is solved by generating
 * columns (Gilmore and Gomory): a column is a way of filling one GPU. Its dual values are the prices: sizes that fill a GPU
 * together cost one GPU together, a size that leaves a rest nobody can use pays for the rest, and one that fits into rests
 * which are there anyway costs nothing.
 */
#pragma once

#include "base/arena.h"

/* Shares are counted in hundredths of a GPU: what is asked for is rounded up, what is free down. */
enum { STOCK_PARTS = 100 };

/* Prices in GPUs, from 0 to 1, of each size that is asked for; 0 of the others. Index 0 is not used. Takes working memory
 * from the arena and gives it back. The same bits everywhere. */
void stock_prices(const double demand[STOCK_PARTS + 1], struct arena *arena, double ret_price[STOCK_PARTS + 1]);
