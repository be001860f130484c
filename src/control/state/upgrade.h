/* upgrade.h - stored documents of earlier schema versions, brought up to the present one before anything reads them.
 *
 * To change a schema: raise SCHEMA_VERSION (kind.h), add a row to the table in upgrade.c that turns a document of the
 * version before into one of this, and a sample of the old form to upgrade_test.c.
 */
#pragma once

#include <jansson.h>

#include "control/kind/kind.h"
#include "store/store.h"

/* Turns a document of version `from` into one of version from + 1. */
struct upgrade {
    int from;
    enum kind kind;
    void (*run)(json_t *doc);
};

/* What brings documents from version to version, and up to which. */
struct upgrades {
    const struct upgrade *at;
    size_t len;
    int version;
};
extern const struct upgrades upgrades; /* up to SCHEMA_VERSION */

/* Rewrites every older document. Refuses, changing nothing, a document that is newer, or that has no version. */
int upgrade_documents(struct store *store, const struct upgrades *by, struct berth_err *err);

/* One document, in place. -ENOTSUP: newer, or without a version. */
int upgrade_document(enum kind kind, json_t *doc, const struct upgrades *by, struct berth_err *err);
