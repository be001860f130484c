/* archive.h - export of a user with everything the user owns as one document, which this or another cluster can import.
 *
 * docs/user-archive.md describes the format. It contains what the user requested, not what the daemon decided, and no
 * secrets: no tokens, no hashes. The content of volumes and apps is not included yet; agents will fill `data`.
 *
 * To add a part: a row in archive_parts (archive.c), a rule in archive_import.c for clashing IDs, a line in the page.
 */
#pragma once

#include "control/api/request.h"

enum {
    ARCHIVE_VERSION = 1,
    ARCHIVE_OBJECTS_MAX = 1900, /* objects in one transaction, each with a counter or a spec beside it */
    ARCHIVE_BYTES_MAX = 16 * 1024 * 1024,
    ARCHIVE_CHECKSUM_MAX = 80,
};

/* The lists of an archive in the order of import: each may refer to those before it. */
struct archive_part {
    const char *name;
    enum kind kind;
};
extern const struct archive_part archive_parts[];
extern const size_t archive_parts_len;

/* Exports a user. -E2BIG: more than one import can handle. *ret is a new reference. */
int archive_make(const struct state *s, const struct object *user, int64_t now_ns, json_t **ret, struct berth_err *err);
/* Returns "blake2b:HEX" of everything but the checksum itself: keys sorted, without white space. */
const char *archive_checksum(const json_t *archive, char buf[static ARCHIVE_CHECKSUM_MAX]);
/* Checks version, parts, sizes and checksum of an archive; does not check its documents. */
int archive_check(const json_t *archive, struct berth_err *err);

/* Imports an archive through the call's change: as the user `as`, or, if NULL, under the archive's own name or the next
 * free one. The answer is {"id", "renamed"}. All contents pass the same checks as in a request. */
int archive_import(struct request *c, const json_t *archive, const char *as);
