/* record.h - writes journal records: a record is one JSON object in one line.
 *
 *     {"j":2,"kind":"POST /v1/jobs","at":NS,"who":"alice","subject":"jobs/17",
 *      "changes":[["jobs/17",{...}],["x/y",null],["tokens/z"]],...}
 *
 * `changes` has the written documents, so the state at any record can be rebuilt from the records before it. null:
 * deleted; only the key: the document is left out, as for secrets. The record of a cycle (kind "cycle") also has
 * "cycle": the decision and its inputs; see control/journal/replay.h. A record is appended to the store's log in the
 * transaction that it describes. This module only writes records.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "store/store.h"

/* 2: a cycle's record has its actions, hashes by kind of document, and usage documents. Older versions can be read. */
enum { JOURNAL_VERSION = 2 };

struct journal_head {
    const char *kind;
    int64_t at_ns;
    const char *who, *subject, *token, *remote; /* NULL or "": omitted */
};

/* Call in this order: begin, the changes, end. */
void journal_begin(struct str *to, const struct journal_head *head);
/* `doc` is JSON text. NULL with `gone`: deleted. NULL without `gone`: left out. */
void journal_change(struct str *to, const char *key, const char *doc, size_t len, bool gone);
/* `extra` is the text of a JSON object whose members are added; len 0: none. */
void journal_end(struct str *to, const char *extra, size_t len);

/* Returns whether the kind of a record begins with this text. "kube.": a record of berth-kube, which has other inputs
 * (kube/journal/journal.h). */
bool journal_kind_has_prefix(struct bytes record, const char *with);
#define JOURNAL_KUBE "kube."
