/* record.h - one record of the journal: one JSON object, in one line.
 *
 *   {"j":2,"kind":"POST /v1/jobs","at":NS,"who":"alice","subject":"jobs/17","changes":[["jobs/17",{...}],["x/y",null],["tokens/z"]],...}
 *
 * `changes` are the documents written (null: removed; the key alone: a document that is kept out, as secrets are), so that
 * the state at any record can be made from the records before it. A cycle's record (kind "cycle") adds "cycle": what was
 * decided and from what; see control/journal/replay.h. Records are appended to the store's log in the transaction they describe.
 * Here they are only written; reading is for those who know documents.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "store/store.h"

/* 2: a cycle's record has its actions, and hashes by kind of document; documents of use are in it. Older ones are read. */
enum { JOURNAL_VERSION = 2 };

struct journal_head {
    const char *kind;
    int64_t at_ns;
    const char *who, *subject, *token, *remote; /* NULL or "": left out */
};

/* In this order: begin, the changes, end. */
void journal_begin(struct str *to, const struct journal_head *head);
/* `doc` is JSON text; NULL with gone: removed; NULL without: kept out. */
void journal_change(struct str *to, const char *key, const char *doc, size_t len, bool gone);
/* `extra` is the text of a JSON object whose members are added; len 0: none. */
void journal_end(struct str *to, const char *extra, size_t len);

/* Does the kind of a record begin with this? "kube.": it is berth-kube's, which knows other inputs (kube/journal/journal.h). */
bool journal_kind_begins(struct bytes record, const char *with);
#define JOURNAL_KUBE "kube."
