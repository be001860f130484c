/* pods.h - names of pods on the command line and in tables, WORKLOAD/ORDINAL, and short forms for many ordinals. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Splits at the last '/' if only digits follow; false: the whole text names a workload. */
bool pod_split(const char *text, size_t *ret_workload_len, uint32_t *ret_ordinal);

/* Writes ascending ordinals as "0-3,7"; if the buffer is too small "0-3,...". Returns buf. */
const char *ranges_print(const uint32_t *ordinals, size_t len, char *buf, size_t size);

/* Writes the numbers of the set bits of a word in the same form. */
const char *bits_print(uint64_t bits, char *buf, size_t size);
