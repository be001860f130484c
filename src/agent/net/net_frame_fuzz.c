/* net_frame_fuzz.c - parses arbitrary bytes as frames in both directions: results lie within the input and within the
 * bounds of their kind.
 */
#include <assert.h>
#include <string.h>

#include "agent/net/net_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take(struct net_frame f, const char *end)
{
    char words[NET_FRAME_TEXT_BYTES_MAX + 1];
    struct net_frame_request q;
    int64_t number;
    assert(f.at <= end && f.len <= (size_t)(end - f.at));
    net_frame_take_printable(&f, words);
    assert(strlen(words) <= NET_FRAME_TEXT_BYTES_MAX);
    if (f.kind == NET_FRAME_REQUEST && net_frame_take_request(&f, &q))
        assert(q.body + q.body_len == f.at + f.len);
    if (f.kind == NET_FRAME_RESULT || f.kind == NET_FRAME_CERTIFICATE)
        assert(net_frame_take_number(&f, &number) && f.len <= NET_FRAME_TEXT_BYTES_MAX);
    assert(f.kind != NET_FRAME_DATA || (f.len > 0 && f.len <= NET_FRAME_DATA_BYTES_MAX));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    for (int to_root = 0; to_root < 2; to_root++) {
        struct net_frame f = {0};
        ssize_t n;
        for (size_t done = 0; (n = net_frame_read((const char *)data + done, size - done, to_root, &f)) > 0;) {
            assert((f.kind >= NET_FRAME_CERTIFICATE) == (to_root != 0));
            done += (size_t)n;
            assert(done <= size && f.at + f.len == (const char *)data + done);
            take(f, (const char *)data + size);
        }
    }
    return 0;
}
