/* quantity_fuzz.c - amounts, durations and times: every accepted text can be printed and parsed again. */
#include "wire/text/quantity.h"

#include <assert.h>
#include <string.h>

#include "wire/text/moment.h"

enum { TEXT_MAX = 256 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const resources[] = {"cpu", "memory", "licences"};
    char text[TEXT_MAX + 1];
    if (size > TEXT_MAX)
        return 0;
    memcpy(text, data, size);
    text[size] = 0;

    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
        int64_t amount = 77, again = 0;
        struct berth_err err = {0};
        int rc = quantity_parse_text(resources[i], text, &amount, &err);
        assert(rc == -err.code);
        if (rc < 0) {
            assert(amount == 77 && err.text[0]);
            continue;
        }
        char buf[QUANTITY_TEXT_MAX];
        quantity_print(resources[i], amount, buf);
        assert(quantity_parse_text(resources[i], buf, &again, NULL) == 0 && again == amount);
    }
    int64_t ns = -1;
    assert(duration_parse_text(text, &ns, NULL) < 0 || ns >= 0);
    (void)timestamp_parse_text(text, &ns, NULL);
    return 0;
}
