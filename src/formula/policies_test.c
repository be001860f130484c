/* policies_test.c - docs/policies.md lists every factor and ranking with its sentence, and its example formulas work.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "formula/formula.h"

static char *reference(void)
{
    const char *root = getenv("BERTH_SOURCE");
    CLEANUP(str) struct str path = {0};
    str_addf(&path, "%s/docs/policies.md", root ? root : ".");
    FILE *file = fopen(path.at, "r");
    if (!file)
        fail_msg("cannot open %s", path.at);
    struct str s = {0};
    char buf[4096];
    for (size_t n; (n = fread(buf, 1, sizeof buf, file));)
        str_add_bytes(&s, buf, n);
    fclose(file);
    return str_take(&s);
}

static void policies_page_lists_every_name(void **state)
{
    (void)state;
    CLEANUP(mem) char *text = reference();
    const char *(*const tables[])(size_t, const char **) = {berth_factor_at, berth_ranking_at};
    for (size_t t = 0; t < 2; t++) {
        const char *sentence, *name;
        for (size_t i = 0; (name = tables[t](i, &sentence)); i++) {
            CLEANUP(str) struct str row = {0};
            str_addf(&row, "\n| `%s` | %s |\n", name, sentence);
            if (!strstr(text, row.at))
                fail_msg("docs/policies.md lacks:%s", row.at);
        }
    }
}

static void policies_page_examples_compile(void **state)
{
    (void)state;
    CLEANUP(mem) char *text = reference();
    int found = 0;
    for (const char *at = text; (at = strstr(at, "\n```lua\n")); at++, found++) {
        const char *from = at + 8, *to = strstr(from, "\n```");
        assert_non_null(to);
        CLEANUP(str) struct str block = {0};
        CLEANUP(formula) struct formula *f = NULL;
        struct berth_err err = {0};
        str_add_bytes(&block, from, (size_t)(to - from));
        if (formula_new(block.at, "example", &f, &err))
            fail_msg("%s\n%s", block.at, err.text);
    }
    assert_true(found >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(policies_page_lists_every_name),
        cmocka_unit_test(policies_page_examples_compile),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
