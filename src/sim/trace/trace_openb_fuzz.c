/* trace_openb_fuzz.c - fuzzes the three files: each is read, or rejected with a text. The files are separated by bytes
 * 255.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "sim/trace/trace_openb.h"

enum { PARTS = 3, PARTING = 255 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(openb_trace) struct openb_trace t;
    struct berth_err err = {0};
    char paths[PARTS][32];
    int files[PARTS];
    for (size_t i = 0; i < PARTS; i++) {
        const uint8_t *end = size ? memchr(data, PARTING, size) : NULL;
        size_t len = end ? (size_t)(end - data) : size;
        files[i] = memfd_create("part", 0);
        assert(files[i] >= 0 && write(files[i], data, len) == (ssize_t)len && lseek(files[i], 0, SEEK_SET) == 0);
        (void)snprintf(paths[i], sizeof paths[i], "/proc/self/fd/%d", files[i]);
        data += len + (end != NULL);
        size -= len + (end != NULL);
    }
    int rc = openb_trace_read(&t, paths[0], paths[1], paths[2], &err);
    assert(rc == 0 || err.text[0]);
    for (size_t i = 0; rc == 0 && i < t.arrivals_len; i++)
        assert(t.arrivals[i] < t.pods_len);
    for (size_t i = 0; i < PARTS; i++)
        (void)close(files[i]);
    return 0;
}
