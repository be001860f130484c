/* answer_fuzz.c - fuzzes the answer parser: results lie within the input, and more bytes do not change them. */
#include "net/client/answer.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(mem) char *text = mem_alloc(size + 1);
    struct answer_head head = {0}, less = {0};
    size_t body = 0;

    memcpy(text, data, size);
    if (answer_head_read(text, size, &head) != 1) {
        assert(head.len == 0);
        return 0;
    }
    assert(head.len > 0 && head.len <= size && head.status >= 200 && head.status <= 999);
    assert(head.body_len >= -1 && head.retry_after_s >= 0 && !(head.chunked && head.body_len >= 0));
    assert(answer_head_read(text, head.len, &less) == 1 && less.len == head.len && less.body_len == head.body_len);
    assert(answer_head_read(text, head.len - 1, &less) == 0);
    if (head.chunked && answer_chunks_join(text + head.len, size - head.len, &body) == 1)
        assert(body <= size - head.len);
    return 0;
}
