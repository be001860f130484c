/* segment_parts.h - declarations shared by segment_read.c and segment_write.c only. */
#pragma once

#include "base/vec.h"
#include "journal/segment.h"

/* zstd's magic number of a skippable frame. The length of the contents follows; both are four bytes, little-endian. */
#define SKIPPED_MAGIC 0x184d2a5bu
enum { SKIPPED_HEAD = 8 };
/* The text of the foot is followed by its length and this mark, so that the foot is found from the end of the file. */
#define FOOT_MARK "BSEG"
enum { FOOT_TAIL = 8, FRAME_BYTES = 1 << 20, FRAME_PACKED_MAX = 1 << 28, FOOT_MAX = 1 << 26 };

struct segment_frame {
    uint64_t offset, bytes, unpacked;
    uint64_t first; /* first record; 0: documents */
    uint64_t hash;  /* of the compressed bytes */
};

extern const char *const segment_bases[SEGMENT_BASES];
