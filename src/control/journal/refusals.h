/* refusals.h - the journal's record of refused submissions: user, request and reason.
 *
 * A submission creates or replaces an app, a job, a virtual machine or a schedule; a transaction (POST /v1/txn) counts,
 * too. Dry runs do not count. Refusals are collected in memory and written once a minute as one record: {"refusals":
 * [[user, request, status, text, times, last], ...], "more": N}. So a client that repeats an invalid request costs one
 * entry a minute; a crash loses one minute of refusals.
 */
#pragma once

#include "control/api/request.h"

struct refusals;
struct refusals *refusals_new(void);
void refusals_free(struct refusals *r); /* NULL is allowed */
/* Notes the request if it was a refused submission. */
void refusals_note(struct refusals *r, const struct request *c);
/* Submits the collected refusals, if there are any. */
void refusals_write(struct control *c);
