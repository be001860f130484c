/* quantity_fuzz.c - an amount parsed in thousandths equals the amount parsed in units, up to rounding. */
#include "kube/object/quantity.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t units = 77, thousandths = 77;
    bool ok = kube_quantity_parse((const char *)data, size, 1, &units);
    assert(ok == kube_quantity_parse((const char *)data, size, 1000, &thousandths));
    assert(ok || (units == 77 && thousandths == 77));
    if (ok && thousandths >= 0 && thousandths < INT64_MAX)
        assert(units == thousandths / 1000 + (thousandths % 1000 != 0));
    return 0;
}
