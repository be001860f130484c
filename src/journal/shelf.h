/* shelf.h - the segments that lie in folders, and what becomes of old ones.
 *
 * DIR/journal/000001.seg, ... Past the retention a segment is moved to the folder of exports, and what cannot be moved
 * stays where it is; only who names no such folder has it removed. Not for reading records (reader.h) nor for making segments (seal.h).
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
    VEC(struct shelf_item) items; /* by number */
};

void shelf_done(struct shelf *s);
static inline void shelf_cleanup(struct shelf *s)
{
    shelf_done(s);
}
/* Adds every segment of a folder; one that is not there has none. A segment that is there twice is taken once,
 * from where it was added last. */
int shelf_add_folder(struct shelf *s, const char *dir, struct berth_err *err);
int shelf_add_file(struct shelf *s, const char *path, struct berth_err *err);
/* "DIR/000017.seg", to be freed. */
char *shelf_path(const char *dir, uint64_t number);
/* Where the state begins that the last segment ends with: the last one with documents of its own, or with record 1; the
 * number of items: nowhere. */
size_t shelf_base(const struct shelf *s);
/* The same of an item other than the last. */
size_t shelf_base_of(const struct shelf *s, size_t item);
/* Is nothing missing between the two? */
bool shelf_follows(const struct segment *before, const struct segment *after);

struct shelf_retention {
    const char *dir, *exported; /* from, to; exported NULL: what would be moved is removed */
    int64_t before_ns;          /* segments that end before are moved */
    uint64_t bytes_max;         /* and the oldest of those that make more than this in all */
};
/* Moves what is past it, the oldest first, but never what the next checkpoint is made from. *ret: how many. On failure
 * everything is where it was, or where it shall be. */
int shelf_retain(const struct shelf_retention *r, size_t *ret, struct berth_err *err);
