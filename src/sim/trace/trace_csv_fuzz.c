/* trace_csv_fuzz.c - fuzzes the CSV reader: a file is read, or rejected with a text; writing and reading again gives
 * the same trace.
 */
#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "sim/protocol/muri.h"
#include "sim/trace/fleet.h"
#include "sim/trace/trace_csv.h"

/* Creates an anonymous file, and returns its path. */
static int file_of(const void *data, size_t size, char path[static 32])
{
    int fd = memfd_create("trace", 0);
    assert(fd >= 0 && write(fd, data, size) == (ssize_t)size && lseek(fd, 0, SEEK_SET) == 0);
    (void)snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}

static char *written(const struct sim_trace *t, size_t *ret_len)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, ret_len);
    sim_trace_csv_write(t, to);
    (void)fclose(to);
    return text;
}

static void again(const struct sim_trace *t)
{
    CLEANUP(sim_trace) struct sim_trace back;
    struct berth_err err = {0};
    char path[32];
    size_t len, len_again;
    char *first = written(t, &len);
    int fd = file_of(first, len, path);
    sim_trace_init(&back);
    assert(sim_trace_csv_read(path, &back, &err) == 0);
    char *second = written(&back, &len_again);
    assert(len == len_again && memcmp(first, second, len) == 0);
    free(first);
    free(second);
    (void)close(fd);
}

static void fleet_try(const uint8_t *data, size_t size)
{
    enum { FLEET_BYTES_MAX = 64 };
    CLEANUP(sim_fleet) struct sim_fleet fleet;
    struct berth_err err = {0};
    char text[FLEET_BYTES_MAX + 1] = "";
    sim_fleet_init(&fleet);
    if (size > FLEET_BYTES_MAX)
        return;
    memcpy(text, data, size);
    assert(sim_fleet_add(&fleet, text, &err) == 0 || err.text[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(sim_trace) struct sim_trace t;
    CLEANUP(muri_trace) struct muri_trace muri = {0};
    struct berth_err err = {0};
    char path[32];
    int fd = file_of(data, size, path);
    sim_trace_init(&t);
    int rc = sim_trace_csv_read(path, &t, &err);
    assert(rc == 0 || err.text[0]);
    if (rc == 0)
        again(&t);
    (void)lseek(fd, 0, SEEK_SET);
    err.text[0] = '\0';
    assert(muri_trace_read(path, &muri, &err) == 0 || err.text[0]);
    fleet_try(data, size);
    (void)close(fd);
    return 0;
}
