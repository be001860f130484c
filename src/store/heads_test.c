/* heads_test.c - tests undo of a batch, and rejection of contradictory history. */
#include "store/heads.h"

#include "store/store_test.h"

static char *heads_text(const struct heads *h)
{
    struct str text = {0};
    struct versions found;
    versions_init(&found);
    heads_collect(h, "", UINT64_MAX, &found);
    versions_sort(&found);
    for (size_t i = 0; i < found.list.len; i++)
        str_addf(&text, "%s%s/%" PRIu64, i ? " " : "", found.list.at[i].key, place_revision(found.list.at[i].place));
    versions_done(&found);
    return str_take(&text);
}

static bool apply(struct heads *h, uint64_t next, const struct store_txn *txn)
{
    struct queued *q = queued_new(txn, NULL, NULL);
    bool took_effect = heads_apply(h, q, next);
    assert_int_equal(took_effect, q->took_effect);
    queued_free(q);
    return took_effect;
}

static void batch_can_be_undone(void **state)
{
    (void)state;
    struct heads h = {0};
    assert_true(apply(&h, 1, &(struct store_txn){OPS(PUT("a", ""), PUT("b", ""))}));
    heads_keep(&h);
    for (int turn = 0; turn < 3; turn++) {
        assert_true(apply(&h, 2, &(struct store_txn){OPS(PUT("a", ""), DROP("b"), PUT("c", ""))}));
        assert_true(apply(&h, 3, &(struct store_txn){GUARDS({"b", 0}, {"c", 2}), OPS(PUT("b", ""), DROP("c"))}));
        assert_false(apply(&h, 4, &(struct store_txn){GUARDS({"b", 1}), OPS(PUT("a", ""))}));
        assert_false(apply(&h, 4, &(struct store_txn){OPS(DROP("c"))}));
        assert_text(heads_text(&h), "a/2 b/3");
        if (turn == 2)
            break;
        heads_undo(&h);
        assert_text(heads_text(&h), "a/1 b/1");
        assert_int_equal(h.map.len, 2); /* the key that was never created uses no slot */
    }
    heads_keep(&h);
    heads_undo(&h);
    assert_text(heads_text(&h), "a/2 b/3");
    heads_done(&h);
}

static void contradictory_history_is_rejected(void **state)
{
    (void)state;
    /* Before each row: key a was created by revision 5 and written by 6; changes up to revision 4 are swept. */
    static const struct {
        const char *label;
        uint64_t revision, replaced, created;
        const char *key;
        bool gone, good;
    } rows[] = {
        {"next",                       7, 6, 5, "a", false, true },
        {"deleted",                    7, 6, 5, "a", true,  true },
        {"new key",                    7, 0, 7, "b", false, true },
        {"swept",                      4, 2, 1, "b", false, true }, /* the replaced change was deleted */
        {"skips one",                  7, 5, 5, "a", false, false},
        {"replaces nothing",           7, 0, 7, "a", false, false},
        {"replaces what is not there", 7, 6, 5, "b", false, false},
        {"created elsewhere",          7, 6, 6, "a", false, false},
        {"new key, old creation",      7, 0, 6, "b", false, false},
        {"deletes nothing",            7, 0, 7, "b", true,  false},
        {"swept deletion",             4, 0, 4, "b", true,  false},
        {"swept twice",                4, 0, 4, "a", false, false},
        {"swept, created later",       4, 0, 5, "b", false, false},
        {"swept, never created",       4, 0, 0, "b", false, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct heads h = {0};
        uint64_t swept = place_of(5, 0) - 1;
        const struct history_row first = {place_of(5, 0), 0, 5, "a", false},
                                 second = {place_of(6, 0), place_of(5, 0), 5, "a", false};
        assert_null(heads_load(&h, &first, swept));
        assert_null(heads_load(&h, &second, swept));
        heads_keep(&h);
        const struct history_row row = {place_of(rows[i].revision, 0), place_of(rows[i].replaced, 0), rows[i].created,
                                        rows[i].key, rows[i].gone};
        const char *wrong = heads_load(&h, &row, swept);
        if (!wrong != rows[i].good)
            fail_msg("%s: %s", rows[i].label, wrong ? wrong : "no objection");
        if (wrong)
            assert_text(heads_text(&h), "a/6");
        heads_done(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batch_can_be_undone),
        cmocka_unit_test(contradictory_history_is_rejected),
    };
    return cmocka_run_group_tests_name("heads", tests, NULL, NULL);
}
