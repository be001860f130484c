/* words.h - text in error messages: quoting what was found, guessing what was meant. */
#pragma once

#include <stddef.h>

enum { QUOTE_MAX = 64 };

/* "text" in quotes, a long one cut at the end of a character; returns buf. */
const char *quote(const char *text, char buf[static QUOTE_MAX]);

/* The same without the quotes. */
const char *shorten(const char *text, char buf[static QUOTE_MAX]);

/* The candidate closest to the word, or NULL when none is close. `candidate` gives the i-th, NULL past the end. */
const char *suggest(const char *word, const char *(*candidate)(const void *ctx, size_t i), const void *ctx);
