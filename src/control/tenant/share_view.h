/* share_view.h - fair shares and prices for display.
 *
 * Shares are those that plans use, from the outlook (forecast.h). Prices are the text of the setting `prices`, in the
 * format of berth-bill's file, returned as JSON: the daemon itself computes no costs.
 */
#pragma once

#include "control/api/request.h"

/* GET /v1/shares */
int shares_run(struct request *c);
/* GET /v1/prices */
int prices_run(struct request *c);
/* Checks the parts of a price list that clients need to show costs. "": no prices. */
int prices_check(const char *text, struct berth_err *err);
