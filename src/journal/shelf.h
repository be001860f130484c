/* shelf.h - the segment files in directories, and the retention of old segments.
 *
 * DIR/journal/000001.seg, ... A segment past its retention is moved to the export directory; a segment that cannot be
 * moved stays. Without an export directory it is removed. To read records, see reader.h; to make segments, seal.h.
 */
#pragma once

#include "base/vec.h"
#include "journal/segment.h"

#define SHELF_FOLDER "journal"
#define SHELF_EXPORTED "exported"
#define SHELF_ENDING ".seg"

struct shelf_item {
    char *path;
    struct segment segment;
};

struct shelf {
    VEC(struct shelf_item) items; /* ordered by number */
};

void shelf_done(struct shelf *s);
static inline void shelf_cleanup(struct shelf *s)
{
    shelf_done(s);
}
/* Adds every segment of a directory; a missing directory has none. A segment that is found twice is added once, with
 * the path found last. */
int shelf_add_folder(struct shelf *s, const char *dir, struct berth_err *err);
int shelf_add_file(struct shelf *s, const char *path, struct berth_err *err);
/* Returns "DIR/000017.seg"; the caller frees it. */
char *shelf_path(const char *dir, uint64_t number);
/* Returns the item from which the state at the end of the last segment can be rebuilt: the last item with its own
 * documents or with record 1. Returns the number of items if there is none. */
size_t shelf_base(const struct shelf *s);
/* Like shelf_base, for the state at the end of another item. */
size_t shelf_base_of(const struct shelf *s, size_t item);
/* Returns whether no segment is missing between the two. */
bool shelf_follows(const struct segment *before, const struct segment *after);

struct shelf_retention {
    const char *dir, *exported; /* source and target directory; exported NULL: segments are removed instead of moved */
    int64_t before_ns;          /* segments that end before this time are moved */
    uint64_t bytes_max;         /* the oldest segments above this total size are moved, too */
};
/* Moves the segments past the retention, oldest first, but never segments that the next checkpoint needs. *ret: number
 * of moved segments. On failure each segment is either at its old or at its new place. */
int shelf_retain(const struct shelf_retention *r, size_t *ret, struct berth_err *err);
