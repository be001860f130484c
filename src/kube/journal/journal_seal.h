/* journal_seal.h - rotation of berth-kube's journal: when the log is long or old enough, its records become a sealed
 * segment, on a worker thread.
 *
 * Sealed records are trimmed from the log at once, where no reader needs them. Failures are logged and retried later;
 * the records stay in the log meanwhile.
 *
 * Not here: the format (journal/segment.h), and the writing of bases, without which old segments could not be removed.
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
void kube_sealer_free(struct kube_sealer *s); /* waits for work in progress; free it before the store. Accepts NULL */
/* Notes that a record of this size was written. */
void kube_sealer_note(struct kube_sealer *s, size_t bytes);
/* Starts sealing if it is due. */
void kube_sealer_step(struct kube_sealer *s, int64_t now_ns);
/* Returns the number of segments made so far; 0 for NULL. */
uint64_t kube_sealer_segments(const struct kube_sealer *s);
