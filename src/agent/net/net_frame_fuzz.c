/* net_frame_fuzz.c - parses arbitrary bytes as frames in both directions: results lie within the input and within the
 * bounds of their kind.
 */
#include <assert.h>
#include <string.h>

#include "agent/net/net_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(struct half_frame f, const char *end)
{
    char words[HALF_TEXT_BYTES_MAX + 1];
    struct half_request q;
    int64_t number;
    assert(f.at <= end && f.len <= (size_t)(end - f.at));
    half_take_words(&f, words);
    assert(strlen(words) <= HALF_TEXT_BYTES_MAX);
    if (f.kind == HALF_START && half_request_take(&f, &q))
        assert(q.body + q.body_len == f.at + f.len);
    if (f.kind == HALF_END || f.kind == HALF_KNOWN)
        assert(half_take_number(&f, &number) && f.len <= HALF_TEXT_BYTES_MAX);
    assert(f.kind != HALF_PIECE || (f.len > 0 && f.len <= HALF_PIECE_BYTES_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int to_root = 0; to_root < 2; to_root++) {
        struct half_frame f = {0};
        ssize_t n;
        for (size_t done = 0; (n = half_frame_read((const char *)data + done, size - done, to_root, &f)) > 0;) {
            assert((f.kind >= HALF_KNOWN) == (to_root != 0));
            done += (size_t)n;
            assert(done <= size && f.at + f.len == (const char *)data + done);
            take(f, (const char *)data + size);
        }
    }
    return 0;
}
