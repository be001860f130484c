#include "cli/app/instance_choice.h"

#include <assert.h>

size_t choice_weighted(const uint32_t *weights, size_t len, uint64_t random)
{
    uint64_t sum = 0, at = 0;

    assert(len > 0);
    for (size_t i = 0; i < len; i++)
        sum += weights[i];
    uint64_t places = sum ? sum : len;
    uint64_t x = (uint64_t)((unsigned __int128)random * places >> 64);
    for (size_t i = 0; i + 1 < len; i++) {
        at += sum ? weights[i] : 1;
        if (x < at)
            return i;
    }
    return len - 1;
}
