/* script_fuzz.c - any text as a script, and any word as a duration, time or range: accepted or rejected; accepted text
 * must parse again to the same value.
 */
#include "cli/job/script.h"

#include <assert.h>
#include <string.h>

#include "base/mem.h"
#include "cli/slurm/time_text.h"
#include "wire/text/document.h"

enum { FUZZ_BYTES_MAX = 4096 };

static void words_try(const char *text)
{
    char first[SPAN_TEXT_MAX], again[SPAN_TEXT_MAX], range[RANGE_TEXT_MAX], same[RANGE_TEXT_MAX];

    if (duration_text_read(text, 60, first, NULL) == 0)
        assert(duration_text_read(first, 60, again, NULL) == 0 && strcmp(first, again) == 0);
    if (range_read(text, range, NULL) == 0)
        assert(range_read(range, same, NULL) == 0 && strcmp(range, same) == 0);
    (void)time_text_read(text, INT64_C(1773151200000000000), first, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    CLEANUP(json) json_t *document = json_object();

    if (size > FUZZ_BYTES_MAX)
        return 0;
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    struct cli cli = {.out = nowhere, .err = nowhere};
    CLEANUP(mem) char *text = mem_alloc(size + 1);
    memcpy(text, data, size);
    text[size] = '\0';
    words_try(text);
    (void)script_parse(&cli, "fuzz.sh", text, NULL, document);
    return 0;
}
