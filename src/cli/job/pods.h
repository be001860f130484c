/* pods.h - how pods are named on the command line and in tables: WORKLOAD/ORDINAL, and many of them together. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Splits at the last '/' if only digits follow it; false: the whole text names a workload. */
bool pod_split(const char *text, size_t *ret_workload_len, uint32_t *ret_ordinal);

/* Writes "0-3,7"; what does not fit becomes "0-3,...". Ordinals ascend. Returns buf. */
const char *ranges_print(const uint32_t *ordinals, size_t len, char *buf, size_t size);

/* The same for the bits of a word. */
const char *bits_print(uint64_t bits, char *buf, size_t size);
