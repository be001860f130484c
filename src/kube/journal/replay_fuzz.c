/* replay_fuzz.c - arbitrary lines as records of a journal: replayed, or rejected with a message. */
#include <assert.h>
#include <string.h>

#include "journal/reader.h"
#include "kube/journal/replay.h"
#include "store/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct store *store = store_memory_new();
    struct kube_replay_result result;
    struct berth_err err = {0};
    for (const char *at = (const char *)data, *end = at + size; at < end;) {
        const char *line = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((line ? line : end) - at);
        if (len)
            (void)store_submit(store,
                               &(struct store_txn){
                                   .record = {at, len}
            },
                               NULL, NULL, NULL);
        at += len + (line != NULL);
    }
    store_drain(store);
    struct journal *journal = journal_of_store(store);
    int rc = kube_replay(journal, &(struct kube_replay_options){0}, &result, &err);
    assert(rc == 0 || err.text[0]);
    journal_close(journal);
    store_close(store);
    return 0;
}
