/* reason_test.c - every reason, filter and score has a word and a sentence of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "berth.h"
#include "core/explain/reason.h"

enum { ROWS_MAX = 64 };

/* Checks all entries of a list of words and sentences; returns their number. */
static size_t vocabulary(const char *(*at)(size_t, const char **))
{
    const char *words[ROWS_MAX], *sentences[ROWS_MAX], *word;
    size_t len = 0;
    while ((word = at(len, &sentences[len])) != NULL) {
        words[len] = word;
        assert_true(strlen(word) > 1 && strlen(sentences[len]) > 5);
        assert_ptr_equal(at(len, NULL), word);
        for (const char *p = word; *p; p++)
            assert_true((*p >= 'a' && *p <= 'z') || *p == '-' || *p == '_');
        for (size_t j = 0; j < len; j++) {
            assert_string_not_equal(words[j], word);
            assert_string_not_equal(sentences[j], sentences[len]);
        }
        assert_true(++len < ROWS_MAX);
    }
    assert_null(at(SIZE_MAX, NULL));
    return len;
}

static void reasons_have_unique_words_and_sentences(void **state)
{
    (void)state;
    assert_int_equal(vocabulary(berth_reason_at), REASONS_LEN);
    assert_string_equal(reasons[REASON_SHORT].word, "short");
    assert_string_equal(berth_reason_at(REASON_ANTI_AFFINITY, NULL), "anti-affinity");
}

static void filters_and_scores_have_unique_words(void **state)
{
    (void)state;
    assert_true(vocabulary(berth_filter_at) >= 19);
    assert_true(vocabulary(berth_score_at) >= 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reasons_have_unique_words_and_sentences),
        cmocka_unit_test(filters_and_scores_have_unique_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
