/* arena_test.c - tests alignment, zeroing, blocks of all sizes, and overflow. */
#include "base/arena.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"

enum { STATUS_NO_MEMORY = 71, BLOCKS = 2000, BIG = 40 * 1024 * 1024 };

static void blocks_are_aligned_and_do_not_overlap(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    static struct {
        unsigned char *at;
        size_t size;
    } blocks[BLOCKS];

    for (size_t i = 0; i < BLOCKS; i++) {
        uint64_t random = hash_u64(i + 1);
        size_t size = i % 100 == 99 ? random % 100000 : random % 300;
        unsigned char *p;
        switch (i % 3) {
        case 0: p = arena_alloc(&a, size); break;
        case 1: p = arena_zalloc(&a, size); break;
        default: p = arena_column(&a, size, 1); assert_int_equal((uintptr_t)p % 64, 0);
        }
        assert_int_equal((uintptr_t)p % 16, 0);
        for (size_t b = 0; i % 3 != 0 && b < size; b++)
            assert_int_equal(p[b], 0);
        memset(p, (int)(i % 251), size); /* fills the memory, which later zeroed blocks must clear */
        blocks[i].at = p;
        blocks[i].size = size;
    }
    for (size_t i = 0; i < BLOCKS; i++)
        for (size_t b = 0; b < blocks[i].size; b++)
            if (blocks[i].at[b] != i % 251)
                fail_msg("block %zu was overwritten", i);
    arena_done(&a);
    assert_null(a.chunk);
    assert_int_equal(a.bytes, 0);
}

static void large_block_is_usable(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    unsigned char *small = arena_alloc(&a, 16);
    memset(small, 3, 16);
    size_t before = a.bytes;
    unsigned char *big = arena_column(&a, BIG / 8, 8);
    assert_true(a.bytes >= before + BIG);
    assert_true(big[0] == 0 && big[BIG - 1] == 0);
    memset(arena_alloc(&a, 100), 2, 100);
    assert_int_equal(small[15], 3);
    assert_int_equal(big[BIG - 1], 0);
    arena_done(&a);
}

static void rewind_frees_everything_since_the_mark(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 100, BIG};
    struct arena a;
    arena_init(&a);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct arena_mark mark = arena_mark(&a);
        size_t bytes = a.bytes;
        unsigned char *first = arena_alloc(&a, 16);
        (void)arena_alloc(&a, sizes[i]);
        arena_rewind(&a, mark);
        if (mark.chunk) { /* otherwise the rewind freed the first chunk */
            assert_int_equal(a.bytes, bytes);
            assert_ptr_equal(arena_alloc(&a, 16), first);
        }
        (void)arena_alloc(&a, 16); /* puts the next mark inside a chunk */
    }
    arena_done(&a);
}

static void copies_and_texts(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    assert_string_equal(arena_strdup(&a, "node"), "node");
    assert_string_equal(arena_strndup(&a, "node", 2), "no");
    assert_string_equal(arena_strndup(&a, NULL, 0), "");
    assert_string_equal(arena_fmt(&a, "%s-%d", "n", 7), "n-7");
    for (int len = 250; len < 260; len++) { /* lengths around the size of the local buffer */
        char *text = arena_fmt(&a, "%0*d", len, 7);
        assert_int_equal(strlen(text), len);
        assert_int_equal(text[len - 1], '7');
    }
    assert_int_equal(strlen(arena_fmt(&a, "%0*d", 100000, 7)), 100000);
    assert_memory_equal(arena_dup(&a, "abc", 3), "abc", 3);
    assert_non_null(arena_dup(&a, NULL, 0));
    uint64_t *many = ARENA_ARRAY(&a, uint64_t, 10);
    assert_true(many[0] == 0 && many[9] == 0);
    assert_int_equal(arena_product(6, 7), 42);
    arena_done(&a);
}

static volatile size_t most = SIZE_MAX; /* volatile: the compiler cannot evaluate it */

static void ask_column(struct arena *a)
{
    (void)arena_column(a, most / 4, 8);
}

static void ask_array(struct arena *a)
{
    (void)ARENA_ARRAY(a, uint64_t, most / 8 + 2);
}

static void ask_all(struct arena *a)
{
    (void)arena_alloc(a, most);
}

static void ask_nearly_all(struct arena *a)
{
    (void)arena_alloc(a, most - 40);
}

static void overflow_ends_the_process(void **state)
{
    (void)state;
    static void (*const asks[])(struct arena *) = {ask_column, ask_array, ask_all, ask_nearly_all};
    for (size_t i = 0; i < 2 * sizeof asks / sizeof *asks; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            struct arena a;
            arena_init(&a);
            if (i % 2) /* both with and without a chunk that has room */
                (void)arena_alloc(&a, 16);
            (void)close(STDERR_FILENO);
            asks[i / 2](&a);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != STATUS_NO_MEMORY)
            fail_msg("ask %zu: wait status 0x%x", i / 2, (unsigned)status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_aligned_and_do_not_overlap),
        cmocka_unit_test(large_block_is_usable),
        cmocka_unit_test(rewind_frees_everything_since_the_mark),
        cmocka_unit_test(copies_and_texts),
        cmocka_unit_test(overflow_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
