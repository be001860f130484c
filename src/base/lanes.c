/* lanes.c - vectorised loops: one copy per instruction set; the dynamic loader chooses one. */
#include "base/lanes.h"

/* Disabled with sanitizers that do not support the loader's indirect functions, and on other architectures. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&               \
    !defined(__SANITIZE_THREAD__)
#define CLONES __attribute__((target_clones("avx2", "sse4.2", "default")))
#else
#define CLONES
#endif

typedef int64_t four __attribute__((vector_size(32), aligned(8)));

CLONES uint64_t lanes_at_least(const int64_t *column, int64_t amount)
{
    const four need = {amount, amount, amount, amount};
    four bit = {1, 2, 4, 8}, got = {0};
    for (unsigned i = 0; i < LANES; i += 4) {
        got |= (*(const four *)(const void *)(column + i) >= need) & bit;
        bit <<= 4;
    }
    return (uint64_t)(got[0] | got[1] | got[2] | got[3]);
}

CLONES int64_t lanes_max64(const int64_t *column)
{
    int64_t most = column[0];
    for (unsigned i = 0; i < LANES; i++)
        most = column[i] > most ? column[i] : most;
    return most;
}

CLONES int32_t lanes_max32(const int32_t *column)
{
    int32_t most = column[0];
    for (unsigned i = 0; i < LANES; i++)
        most = column[i] > most ? column[i] : most;
    return most;
}

typedef int32_t eight __attribute__((vector_size(32), aligned(4)));

CLONES uint32_t lanes_find32(const int32_t *column, int32_t x)
{
    const eight want = {x, x, x, x, x, x, x, x};
    for (uint32_t i = 0; i < LANES; i += 8) {
        const eight hit = *(const eight *)(const void *)(column + i) == want;
        const four any = (four)hit;
        if ((any[0] | any[1] | any[2] | any[3]) == 0)
            continue;
        for (uint32_t k = 0; k < 8; k++)
            if (column[i + k] == x)
                return i + k;
    }
    return LANES;
}
