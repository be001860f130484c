/* segment_parts.h - what writing and reading a segment share; for these two only. */
#pragma once

#include "base/vec.h"
#include "journal/segment.h"

/* zstd's mark of a frame to be skipped, the length of what follows in four bytes each, least first. */
#define SKIPPED_MAGIC 0x184d2a5bu
enum { SKIPPED_HEAD = 8 };
/* The foot's text is followed by its length and this, so that it is found from the end. */
#define FOOT_MARK "BSEG"
enum { FOOT_TAIL = 8, FRAME_BYTES = 1 << 20, FRAME_PACKED_MAX = 1 << 28, FOOT_MAX = 1 << 26 };

struct frame {
    uint64_t offset, bytes, unpacked;
    uint64_t first; /* record; 0: documents */
    uint64_t hash;  /* of its bytes */
};

extern const char *const segment_bases[SEGMENT_BASES];
