/* vm_disk_test.c - disks on top of images: checked by qemu-img; accepted and rejected images. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "machine/image/oci_tool.h"
#include "machine/launch/folder_test.h"
#include "machine/launch/state_file.h"
#include "machine/vm/vm.h"

#define MIB (UINT64_C(1) << 20)

static int file_new(const struct folder *f, const char *name, const void *bytes, size_t len, uint64_t size)
{
    int fd = open(folder_at(f, name), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, len, 0), (ssize_t)len);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    return fd;
}

/* Returns the output of qemu-img for a file in the directory; false: it is not installed. */
static bool asked(const struct folder *f, const char *verb, const char *option, struct str *ret)
{
    char program[PATH_MAX];
    struct berth_err err;
    CLEANUP(close_fd) int dir = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tool_find("qemu-img", program) < 0)
        return false;
    const char *const argv[] = {"qemu-img", verb, option, "disk", NULL};
    const struct tool t = {.argv = argv, .dir = dir, .timeout_ns = 60000000000, .what = verb};
    if (tool_run(&t, ret, &err) < 0)
        fail_msg("%s: %s", verb, err.text);
    return true;
}

static void written_disk_is_valid_qcow2(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        bool raw;
    } rows[] = {
        {1 * MIB,                   true },
        {512 * MIB,                 false},
        {512 * MIB + 512,           true },
        {(UINT64_C(4) << 20) * MIB, true },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(folder) struct folder f = folder_new();
        assert_int_equal(close(file_new(&f, "base", "", 0, 65536)), 0);
        CLEANUP(close_fd) int fd = file_new(&f, "disk", "", 0, 0);
        CLEANUP(str) struct str info = {0}, checked = {0};
        uint64_t bytes = 0;
        bool raw = true;
        char want[64];
        assert_int_equal(vm_disk_write(fd, rows[i].bytes, folder_at(&f, "base"), rows[i].raw), 0);
        assert_int_equal(vm_disk_inspect(fd, &bytes, &raw), -EINVAL); /* an image that needs another file is rejected */
        if (!asked(&f, "info", "--output=json", &info)) {
            print_message("skip: there is no qemu-img\n");
            skip();
        }
        (void)snprintf(want, sizeof want, "\"virtual-size\": %llu", (unsigned long long)rows[i].bytes);
        assert_non_null(strstr(str_text(&info), want));
        assert_non_null(strstr(str_text(&info), folder_at(&f, "base")));
        assert_non_null(strstr(str_text(&info), rows[i].raw ? "\"backing-filename-format\": \"raw\""
                                                            : "\"backing-filename-format\": \"qcow2\""));
        if (rows[i].raw) {
            (void)asked(&f, "check", "-q", &checked);
            assert_int_equal(checked.len, 0);
        }
    }
    CLEANUP(folder) struct folder f = folder_new();
    CLEANUP(close_fd) int fd = file_new(&f, "disk", "", 0, 0);
    assert_int_equal(vm_disk_write(fd, (UINT64_C(4) << 20) * MIB + 512, "base", true), -EINVAL);
}

static void image_formats_are_detected(void **state)
{
    (void)state;
    enum { HEADER = 104 };
    static const struct {
        const char *label;
        unsigned char bytes[HEADER]; /* header of a qcow2 file of 1 MiB with the change of this row */
        size_t len;
        int rc;
        bool raw;
    } rows[] = {
        {"raw",          {0},                                                      0,      0,       true },
        {"short",        {'Q', 'F', 'I', 0xfb},                                    4,      0,       true },
        {"version 3",    {'Q', 'F', 'I', 0xfb, 0, 0, 0, 3, [29] = 0x10},           HEADER, 0,       false},
        {"version 2",    {'Q', 'F', 'I', 0xfb, 0, 0, 0, 2, [29] = 0x10},           72,     0,       false},
        {"version 4",    {'Q', 'F', 'I', 0xfb, 0, 0, 0, 4, [29] = 0x10},           HEADER, -EINVAL, false},
        {"encrypted",    {'Q', 'F', 'I', 0xfb, 0, 0, 0, 3, [29] = 0x10, [35] = 2}, HEADER, -EINVAL, false},
        {"another file", {'Q', 'F', 'I', 0xfb, 0, 0, 0, 3, [14] = 2, [29] = 0x10}, HEADER, -EINVAL, false},
        {"data outside", {'Q', 'F', 'I', 0xfb, 0, 0, 0, 3, [29] = 0x10, [79] = 4}, HEADER, -EINVAL, false},
        {"too large",    {'Q', 'F', 'I', 0xfb, 0, 0, 0, 3, [24] = 1},              HEADER, -EFBIG,  false},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(folder) struct folder f = folder_new();
        CLEANUP(close_fd) int fd = file_new(&f, "a", rows[i].bytes, rows[i].len, rows[i].len > 4 ? rows[i].len : MIB);
        uint64_t bytes = 7;
        bool raw = !rows[i].raw;
        if (rows[i].len == 4)
            assert_int_equal(ftruncate(fd, 4), 0);
        int rc = vm_disk_inspect(fd, &bytes, &raw);
        if (rc != rows[i].rc)
            fail_msg("%s: %d", rows[i].label, rc);
        if (rc < 0)
            continue;
        assert_int_equal(raw, rows[i].raw);
        assert_int_equal(bytes, rows[i].len == 4 ? 4 : MIB);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_disk_is_valid_qcow2),
        cmocka_unit_test(image_formats_are_detected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
