/* words.h - helpers for error messages: quotes the wrong text and suggests the nearest word. */
#pragma once

#include <stddef.h>

enum { QUOTE_MAX = 64 };

/* Writes the text in quotes, shortened at the end of a character; returns buf. */
const char *quote(const char *text, char buf[static QUOTE_MAX]);

/* Like quote, without the quotes. */
const char *shorten(const char *text, char buf[static QUOTE_MAX]);

/* Returns the candidate nearest to the word; NULL if none is near. `candidate` returns the i-th candidate, NULL past
 * the end. */
const char *suggest(const char *word, const char *(*candidate)(const void *ctx, size_t i), const void *ctx);
