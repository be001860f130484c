/* archive.h - a user with all that is theirs, as one document that this or another cluster can take in.
 *
 * Described in docs/user-archive.md. It holds what the user asked for, never what the daemon decided, and no secret: no
 * token, no hash. The content of volumes and of apps is not in it yet; agents will fill `data`.
 *
 * To add a part: a row in archive_parts (archive.c), a rule in archive_import.c for ids that clash, a line in the page.
 */
#pragma once

#include "control/api/request.h"

enum {
    ARCHIVE_VERSION = 1,
    ARCHIVE_OBJECTS_MAX = 1900, /* in one transaction, each with a counter or a spec beside it */
    ARCHIVE_BYTES_MAX = 16 * 1024 * 1024,
    ARCHIVE_CHECKSUM_MAX = 80,
};

/* The lists of an archive, in the order in which they are taken in: each may refer to those before it. */
struct archive_part {
    const char *name;
    enum kind kind;
};
extern const struct archive_part archive_parts[];
extern const size_t archive_parts_len;

/* All of a user. -E2BIG: more than one import can take. *ret is a new reference. */
int archive_make(const struct state *s, const struct object *user, int64_t now_ns, json_t **ret, struct berth_err *err);
/* "blake2b:HEX" over everything but the checksum itself: keys sorted, without white space. */
const char *archive_checksum(const json_t *archive, char buf[static ARCHIVE_CHECKSUM_MAX]);
/* Is this an archive that can be taken in: version, parts, sizes, checksum? Its documents are not looked into. */
int archive_check(const json_t *archive, struct berth_err *err);

/* Takes it in, through the call's change: as the user `as`, or, with NULL, as the archive's own or the next free name. The
 * answer is {"id", "renamed"}. Everything in it passes the checks that it would as a request. */
int archive_import(struct call *c, const json_t *archive, const char *as);
