/* mem_test.c - tests that an allocation succeeds or ends the process. */
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { STATUS_NO_MEMORY = 71 };

/* Makes the address sanitizer return NULL for a failed allocation, as malloc does without the sanitizer. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static volatile size_t huge = SIZE_MAX / 2 + 2; /* volatile: the compiler cannot evaluate it */

static void ask_alloc(void)
{
    mem_free(mem_alloc(huge));
}

static void ask_zalloc(void)
{
    mem_free(mem_zalloc(huge));
}

static void ask_aligned(void)
{
    mem_free(mem_alloc_aligned(64, huge));
}

static void ask_aligned_past_the_end(void)
{
    mem_free(mem_alloc_aligned(64, huge + (huge - 6)));
}

static void ask_array(void)
{
    mem_free(mem_array(huge, 2)); /* the product wraps around to 2 bytes */
}

static void ask_zarray(void)
{
    mem_free(mem_zarray(huge, 2));
}

static void ask_resize(void)
{
    mem_free(mem_resize(NULL, huge, 2));
}

static void failed_allocation_ends_the_process(void **state)
{
    (void)state;
    static void (*const asks[])(void) = {
        ask_alloc, ask_zalloc, ask_aligned, ask_aligned_past_the_end, ask_array, ask_zarray, ask_resize,
    };
    for (size_t i = 0; i < sizeof asks / sizeof *asks; i++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            (void)close(STDERR_FILENO);
            asks[i]();
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFEXITED(status) || WEXITSTATUS(status) != STATUS_NO_MEMORY)
            fail_msg("ask %zu: wait status 0x%x", i, (unsigned)status);
    }
}

static void memory_is_sized_zeroed_and_aligned(void **state)
{
    (void)state;
    CLEANUP(mem) unsigned char *zeroed = mem_zarray(100, 3);
    for (size_t i = 0; i < 300; i++)
        assert_int_equal(zeroed[i], 0);

    CLEANUP(mem) uint32_t *grown = mem_array(4, sizeof *grown);
    for (uint32_t i = 0; i < 4; i++)
        grown[i] = i;
    grown = mem_resize(grown, 1000, sizeof *grown);
    grown[999] = 9;
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(grown[i], i);

    for (size_t align = 16; align <= 4096; align *= 2)
        for (size_t size = 1; size < 200; size += 33) {
            CLEANUP(mem) unsigned char *p = mem_alloc_aligned(align, size);
            assert_int_equal((uintptr_t)p % align, 0);
            memset(p, 1, size);
        }
    mem_free(mem_alloc(0)); /* an allocation of 0 bytes is not a failure */
    mem_free(mem_array(0, 8));
    mem_free(NULL);
}

static void take_moves_ownership(void **state)
{
    (void)state;
    CLEANUP(mem) char *local = mem_strdup("owned");
    CLEANUP(mem) char *moved = take_ptr(&local);
    assert_null(local);
    assert_string_equal(moved, "owned");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_allocation_ends_the_process),
        cmocka_unit_test(memory_is_sized_zeroed_and_aligned),
        cmocka_unit_test(take_moves_ownership),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
