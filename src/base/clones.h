/* clones.h - hot loops compiled for several generations of CPU, chosen at start.
 *
 * Integer code only: the result is the same on all. Left out where the loader's indirect functions and a sanitizer do
 * not get along, and on other architectures.
 */
#pragma once

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&                \
    !defined(__SANITIZE_THREAD__)
#define CLONES __attribute__((target_clones("avx2", "sse4.2", "default")))
#else
#define CLONES
#endif
