/* formula_fuzz.c - any text is either rejected with a reason, or is a function of its row. */
#include "formula/formula.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"

enum { LEN = 3, FACTORS = 64 };

/* Sets the rows: way 0 in order, way 1 reversed. */
static void set_rows(struct berth_factors *in, int32_t values[2][LEN], double numbers[2][LEN],
                     const char *texts[2][LEN], const int32_t **columns, const char *const **words, int way)
{
    for (size_t i = 0; i < in->names_len; i++)
        columns[i] = values[way];
    words[0] = texts[way];
    in->waited = in->runtime = in->pods = in->size = in->created = numbers[way];
}

static void run(struct formula *f)
{
    static const char *const word_names[] = {"class"};
    int32_t values[2][LEN] = {
        {0,       333333, 1000000},
        {1000000, 333333, 0      }
    };
    double numbers[2][LEN] = {
        {1,   60, 1e9},
        {1e9, 60, 1  }
    };
    const char *texts[2][LEN] = {
        {"",  "b", "a"},
        {"a", "b", "" }
    };
    const int32_t *columns[FACTORS];
    const char *const *words[1];
    const char *names[FACTORS];
    struct berth_factors in = {
        .len = LEN, .names = names, .columns = columns, .word_names = word_names, .word_names_len = 1, .words = words};
    for (size_t i = 0; i < FACTORS && berth_factor_at(i, NULL); i++, in.names_len++)
        names[i] = berth_factor_at(i, NULL);

    int64_t there[LEN] = {7, 7, 7}, back[LEN] = {7, 7, 7};
    struct berth_err err = {0};
    set_rows(&in, values, numbers, texts, columns, words, 0);
    int rc = formula_run(f, &in, there, &err);
    set_rows(&in, values, numbers, texts, columns, words, 1);
    int again = formula_run(f, &in, back, NULL);
    assert((rc == 0) == (again == 0));
    for (size_t i = 0; i < LEN; i++)
        assert(rc ? there[i] == 7 : there[i] == back[LEN - 1 - i]);
    assert(rc == 0 || err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(formula) struct formula *f = NULL;
    struct berth_err err = {0};
    if (size > FORMULA_TEXT_MAX)
        return 0;
    CLEANUP(mem) char *text = mem_alloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    int rc = formula_new(text, "fuzz", &f, &err);
    assert(rc == -err.code);
    if (rc == 0)
        run(f);
    else
        assert(!f && strncmp(err.text, "fuzz: ", 6) == 0);
    return 0;
}
