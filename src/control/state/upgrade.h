/* upgrade.h - upgrades stored documents of earlier schema versions before any module reads them.
 *
 * To change a schema: raise SCHEMA_VERSION (kind.h), add a row to the table in upgrade.c that converts a document of
 * the previous version, and add a sample of the old form to upgrade_test.c.
 */
#pragma once

#include <jansson.h>

#include "control/kind/kind.h"
#include "store/store.h"

/* Converts a document of version `from` to version from + 1. */
struct upgrade {
    int from;
    enum kind kind;
    void (*run)(json_t *doc);
};

/* The conversions, and the version that they lead to. */
struct upgrades {
    const struct upgrade *at;
    size_t len;
    int version;
};
extern const struct upgrades upgrades; /* up to SCHEMA_VERSION */

/* Rewrites every older document. Rejects a newer document or one without a version; nothing is changed then. */
int upgrade_documents(struct store *store, const struct upgrades *by, struct berth_err *err);

/* Upgrades one document in place. -ENOTSUP: newer, or without a version. */
int upgrade_document(enum kind kind, json_t *doc, const struct upgrades *by, struct berth_err *err);
