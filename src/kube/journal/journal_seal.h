/* journal_seal.h - the rotation of berth-kube's journal: when the log is long or old enough, its records become a segment, on a thread beside the loop.
 *
 * What is sealed is trimmed from the log at once: nobody reads it there. What fails is told in the log of the process and tried again later; the records
 * stay where they are meanwhile. Not in here: the format (journal/segment.h), and when a base is written, without which old segments would be missed.
 */
#pragma once

#include "base/log.h"

struct kube_sealer;
struct loop;
struct store;

struct kube_sealer_config {
    struct loop *loop;
    const struct log *log;
    struct store *store;
    const char *dir; /* segments are in DIR/journal */
    const char *export_dir;
    int64_t keep_ns;
    uint64_t keep_bytes, segment_bytes;
};
struct kube_sealer *kube_sealer_new(const struct kube_sealer_config *config);
void kube_sealer_free(struct kube_sealer *s); /* waits for what is under way; before the store. NULL is fine */
/* A record of so many bytes was written. */
void kube_sealer_note(struct kube_sealer *s, size_t bytes);
/* Begins what is due. */
void kube_sealer_step(struct kube_sealer *s, int64_t now_ns);
/* Made so far; of NULL: none. */
uint64_t kube_sealer_segments(const struct kube_sealer *s);
