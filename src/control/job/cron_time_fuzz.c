/* cron_time_fuzz.c - any parsed cron expression has a next time that is later and on a full minute, or none. */
#include <assert.h>
#include <string.h>

#include "berth.h"
#include "control/job/cron_time.h"

enum { TEXT_MAX = 200 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const int64_t minute_ns = INT64_C(60000000000);
    char text[TEXT_MAX + 1];
    struct cron_time t;
    struct berth_err err = {0};
    int64_t at_ns = 0;
    if (size < sizeof at_ns || size - sizeof at_ns > TEXT_MAX)
        return 0;
    memcpy(&at_ns, data, sizeof at_ns);
    at_ns = (int64_t)((uint64_t)at_ns % (uint64_t)INT64_C(4102444800000000000)); /* up to the year 2100 */
    size -= sizeof at_ns;
    memcpy(text, data + sizeof at_ns, size);
    text[size] = 0;
    int rc = cron_parse(text, &t, &err);
    assert(rc == -err.code);
    if (rc < 0) {
        assert(err.text[0]);
        return 0;
    }
    int64_t next_ns = cron_next(&t, at_ns);
    assert(next_ns == BERTH_NEVER_NS || (next_ns > at_ns && next_ns % minute_ns == 0));
    assert(next_ns == BERTH_NEVER_NS || cron_next(&t, next_ns - 1) == next_ns);
    return 0;
}
