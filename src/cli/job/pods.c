#include "cli/job/pods.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"

bool pod_split(const char *text, size_t *ret_workload_len, uint32_t *ret_ordinal)
{
    const char *slash = strrchr(text, '/');
    uint64_t n = 0;

    if (!slash || slash == text || slash[1] == '\0')
        return false;
    for (const char *p = slash + 1; *p; p++) {
        if (*p < '0' || *p > '9')
            return false;
        n = n * 10 + (uint64_t)(*p - '0');
        if (n > UINT32_MAX)
            return false;
    }
    *ret_workload_len = (size_t)(slash - text);
    *ret_ordinal = (uint32_t)n;
    return true;
}

const char *ranges_print(const uint32_t *ordinals, size_t len, char *buf, size_t size)
{
    size_t at = 0;

    buf[0] = '\0';
    for (size_t i = 0; i < len;) {
        char part[32];
        size_t end = i + 1;
        while (end < len && ordinals[end] == ordinals[end - 1] + 1)
            end++;
        const char *comma = i ? "," : "";
        int part_len =
            end - i > 1 ? snprintf(part, sizeof part, "%s%" PRIu32 "-%" PRIu32, comma, ordinals[i], ordinals[end - 1])
                        : snprintf(part, sizeof part, "%s%" PRIu32, comma, ordinals[i]);
        /* Reserves room for ",..." until the last range is written. */
        if (at + (size_t)part_len + (end < len ? 4 : 0) >= size) {
            snprintf(buf + at, size - at, "%s...", comma);
            break;
        }
        memcpy(buf + at, part, (size_t)part_len + 1);
        at += (size_t)part_len;
        i = end;
    }
    return buf;
}

const char *bits_print(uint64_t bits, char *buf, size_t size)
{
    uint32_t members[64];
    size_t len = 0;

    BITS_EACH (i, bits)
        members[len++] = (uint32_t)i;
    return ranges_print(members, len, buf, size);
}
