/* share_view.h - whose turn it is by past use, and what use costs: for people to look at.
 *
 * Shares are those that plans go by, from the outlook (forecast.h). Prices are the text of the setting `prices`, in the form of
 * berth-bill's file, handed on as JSON: the daemon itself counts no money.
 */
#pragma once

#include "control/api/request.h"

/* GET /v1/shares */
int shares_run(struct call *c);
/* GET /v1/prices */
int prices_run(struct call *c);
/* Is this text a file of prices, as far as whoever shows amounts needs it? "" is: there are none. */
int prices_check(const char *text, struct berth_err *err);
