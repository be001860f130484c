/* probe_parts.h - helpers of probe*.c for small files of /proc and /sys below a root. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum { PROBE_TEXT_MAX = 256 };

/* Reads the file ROOT/PATH (at most 1 MiB); false: not found. `path` is a format. */
bool probe_file(const char *root, struct str *ret, const char *path, ...) __attribute__((format(printf, 3, 4)));
/* Reads its first line without the newline, cut to fit; "" if there is none. */
const char *probe_line(const char *root, char buf[static PROBE_TEXT_MAX], const char *path, ...)
    __attribute__((format(printf, 3, 4)));
/* Returns the number in the file; `otherwise` if there is none. */
int64_t probe_number(const char *root, int64_t otherwise, const char *path, ...) __attribute__((format(printf, 3, 4)));
bool probe_exists(const char *root, const char *path, ...) __attribute__((format(printf, 2, 3)));

/* Calls `each` for the entries of a directory, sorted by name, except those that start with a dot. */
void probe_each(const char *root, const char *path, void (*each)(void *ctx, const char *name), void *ctx);

/* Returns a value such as "MemTotal:   24684100 kB" in bytes; -1: no such line. */
int64_t probe_meminfo(const char *text, const char *key);
/* Tells whether a block device is a real, non-empty disk, not backed by a file or memory. */
bool probe_is_disk(const char *root, const char *name);
/* Returns the page size of a directory in /sys/kernel/mm/hugepages; 0: not a page size. */
int64_t probe_page_bytes(const char *folder);
/* Builds the resource name: "hugepages-2Mi". */
const char *probe_pages_name(int64_t page_bytes, char buf[static PROBE_TEXT_MAX]);

/* Formats an amount as in documents: "1900m", "15Gi". A new reference. */
json_t *probe_amount(const char *resource, int64_t amount);

/* Rounds to two significant digits, in steps of at least `step_min`; keeps `shown`, the last value (-1: none), while it
 * is nearly right. */
int64_t probe_round(int64_t shown, int64_t raw, int64_t step_min);
