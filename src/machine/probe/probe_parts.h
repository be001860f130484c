/* probe_parts.h - small files of /proc and /sys below a root, for probe*.c. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

enum { PROBE_TEXT_MAX = 256 };

/* The whole file ROOT/PATH (at most 1 MiB); false: not there. `path` is a format. */
bool probe_file(const char *root, struct str *ret, const char *path, ...) __attribute__((format(printf, 3, 4)));
/* Its first line without the end, cut to fit; "" where there is none. */
const char *probe_line(const char *root, char buf[static PROBE_TEXT_MAX], const char *path, ...)
    __attribute__((format(printf, 3, 4)));
/* The number it holds; `otherwise` where it holds none. */
int64_t probe_number(const char *root, int64_t otherwise, const char *path, ...) __attribute__((format(printf, 3, 4)));
bool probe_exists(const char *root, const char *path, ...) __attribute__((format(printf, 2, 3)));

/* Calls for each entry of a folder in order of names; those that start with a dot are left out. */
void probe_each(const char *root, const char *path, void (*each)(void *ctx, const char *name), void *ctx);

/* "MemTotal:   24684100 kB" in bytes; -1: no such line. */
int64_t probe_meminfo(const char *text, const char *key);
/* Whether a disk is one: no file or memory that poses as one, and not empty. */
bool probe_is_disk(const char *root, const char *name);
/* Huge pages of a folder of /sys/kernel/mm/hugepages: their size; 0: it is none. */
int64_t probe_page_bytes(const char *folder);
/* "hugepages-2Mi". */
const char *probe_pages_name(int64_t page_bytes, char buf[static PROBE_TEXT_MAX]);

/* An amount as documents have it: "1900m", "15Gi". A new reference. */
json_t *probe_amount(const char *resource, int64_t amount);

/* Two digits, in steps of at least `step_min`; what was shown last (-1: nothing) stays while it is nearly right. */
int64_t probe_round(int64_t shown, int64_t raw, int64_t step_min);
