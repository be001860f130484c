/* refusals.h - submissions that were refused, for the journal: who asked for what, and why not.
 *
 * A submission creates or replaces an app, a job, a virtual machine or a schedule; a transaction (POST /v1/txn) counts,
 * too. Dry runs do not. Refusals are gathered in memory and written once a minute, one record for all: {"refusals":
 * [[user, request, status, text, times, last], ...], "more": N}. So a client that repeats a bad request costs one entry
 * a minute; a crash loses a minute of it.
 */
#pragma once

#include "control/api/request.h"

struct refusals;
struct refusals *refusals_new(void);
void refusals_free(struct refusals *r); /* NULL is fine */
/* Notes the request if it was a submission, and refused. */
void refusals_note(struct refusals *r, const struct call *c);
/* Submits what was gathered, if anything was. */
void refusals_write(struct control *c);
