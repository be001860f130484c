/* price_fuzz.c - any text as a file of prices, and as a page of records: rejected with a message, or usable for a bill.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "bill/bill.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct berth_err err = {0};
    struct prices p = {0};
    bool more = false;
    CLEANUP(book) struct usage_book b = {0};
    char *text = mem_alloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;

    json_t *page = json_loadb(text, size, 0, NULL);
    if (page)
        (void)book_add_page(&b, page, &more, NULL);
    json_decref(page);
    if (prices_parse(text, "fuzz", &p, &err) < 0) {
        assert(err.text[0]);
    } else {
        char money[MONEY_TEXT_MAX];
        CLEANUP(bill) struct bill bill;
        bill_make(&b, &p, &(struct bill_question){0}, &bill);
        for (size_t i = 0; i < p.resources_len; i++)
            (void)money_text(prices_of(&p, p.resources[i].name, "", HOURS_ONE), money);
        prices_done(&p);
    }
    mem_free(text);
    return 0;
}
