/* tar_test.c - archives: what is written can be read again, and unsafe entries are rejected. */
#include "cli/app/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/app/tar_block.h"

struct test_folder {
    char path[64];
    int fd;
    size_t skipped;
};

static void test_folder_open(struct test_folder *p)
{
    *p = (struct test_folder){.path = "/tmp/berth-tar-XXXXXX"};
    assert_non_null(mkdtemp(p->path));
    p->fd = open(p->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(p->fd >= 0);
}

static int one_remove(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(path);
}

static void test_folder_done(struct test_folder *p)
{
    (void)close(p->fd);
    assert_int_equal(nftw(p->path, one_remove, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static void on_skip(void *ctx, const char *path, const char *why)
{
    (void)path;
    (void)why;
    ((struct test_folder *)ctx)->skipped++;
}

static bool collect(void *ctx, const void *at, size_t len)
{
    str_add_bytes(ctx, at, len);
    return true;
}

static void file_put(int fd, const char *name, const char *text, size_t len)
{
    int file = openat(fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, len), len);
    assert_int_equal(close(file), 0);
}

static void expect_file(int fd, const char *name, const char *text, size_t len)
{
    struct stat st = {0};
    int file = openat(fd, name, O_RDONLY | O_CLOEXEC);
    if (file < 0 || fstat(file, &st) != 0)
        fail_msg("%s is not there", name);
    assert_int_equal(st.st_size, len);
    CLEANUP(mem) char *got = mem_alloc(len + 1);
    assert_int_equal(read(file, got, len), len);
    assert_memory_equal(got, text, len);
    (void)close(file);
}

/* Unpacks in pieces of `step` bytes. */
static int unpack(struct test_folder *to, const char *top, const char *as, const struct str *archive, size_t step,
                  struct berth_err *err)
{
    const struct tar_callbacks told = {.ctx = to, .skipped = on_skip};
    struct untar *u = untar_new(to->fd, top, as, &told);
    int rc = 0;
    for (size_t at = 0; at < archive->len && rc == 0; at += step)
        rc = untar_feed(u, archive->at + at, archive->len - at < step ? archive->len - at : step, err);
    if (rc == 0)
        rc = untar_end(u, err);
    untar_free(u);
    return rc;
}

static void folder_survives_a_round_trip(void **state)
{
    static const size_t steps[] = {1, 511, 512, 513, 100000};
    struct test_folder from;
    char name[161], big[3000];
    struct berth_err err = {0};
    CLEANUP(str) struct str archive = {0}, path = {0};
    (void)state;
    test_folder_open(&from);
    memset(name, 'n', 160);
    name[160] = '\0';
    memset(big, 'b', sizeof big);
    assert_int_equal(mkdirat(from.fd, "d", 0750), 0);
    assert_int_equal(mkdirat(from.fd, "d/empty", 0700), 0);
    int d = openat(from.fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    file_put(d, "small", "x", 1);
    file_put(d, "none", "", 0);
    file_put(d, name, big, sizeof big);
    assert_int_equal(symlinkat("small", d, "link"), 0);
    assert_int_equal(symlinkat("/etc/passwd", d, "away"), 0);
    assert_int_equal(mkfifoat(d, "pipe", 0600), 0);
    (void)close(d);
    str_addf(&path, "%s/d", from.path);
    const struct tar_callbacks told = {.ctx = &from, .skipped = on_skip};
    assert_int_equal(tar_write(path.at, "top", collect, &archive, &told, &err), 0);
    assert_int_equal(from.skipped, 1); /* the pipe */
    assert_int_equal(archive.len % TAR_BLOCK, 0);
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct test_folder to;
        struct stat st;
        char target[64] = "";
        test_folder_open(&to);
        if (unpack(&to, "top", "mine", &archive, steps[i], &err) < 0)
            fail_msg("%s", err.text);
        assert_int_equal(to.skipped, 1); /* the link that leads outside */
        expect_file(to.fd, "mine/small", "x", 1);
        expect_file(to.fd, "mine/none", "", 0);
        str_clear(&path);
        str_addf(&path, "mine/%s", name);
        expect_file(to.fd, path.at, big, sizeof big);
        assert_int_equal(fstatat(to.fd, "mine/empty", &st, 0), 0);
        assert_int_equal(fstatat(to.fd, "mine/small", &st, 0), 0);
        assert_int_equal(st.st_mode & 07777, 0640);
        assert_true(readlinkat(to.fd, "mine/link", target, sizeof target - 1) > 0);
        assert_string_equal(target, "small");
        assert_int_not_equal(fstatat(to.fd, "mine/away", &st, AT_SYMLINK_NOFOLLOW), 0);
        test_folder_done(&to);
    }
    test_folder_done(&from);
}

/* ---- malicious archives ----------------------------------------------------------------------------------------- */

static void entry_add(struct str *to, const char *name, char type, const char *target, const char *content)
{
    union tar_header h = {0};
    unsigned sum = 0;
    memcpy(h.name, name, strnlen(name, sizeof h.name));
    memcpy(h.target, target, strnlen(target, sizeof h.target));
    (void)snprintf(h.mode, sizeof h.mode, "%07o", 04755u);
    (void)snprintf(h.size, sizeof h.size, "%011o", (unsigned)strlen(content));
    h.type = type;
    memcpy(h.magic, "ustar", 6);
    memset(h.sum, ' ', sizeof h.sum);
    for (size_t i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char)h.block[i];
    (void)snprintf(h.sum, sizeof h.sum, "%06o", sum);
    str_add_bytes(to, h.block, TAR_BLOCK);
    char block[TAR_BLOCK] = {0};
    memcpy(block, content, strnlen(content, sizeof block));
    if (*content)
        str_add_bytes(to, block, TAR_BLOCK);
}

static void archive_end(struct str *to)
{
    static const char zeros[2 * TAR_BLOCK];
    str_add_bytes(to, zeros, sizeof zeros);
}

static void unsafe_entries_are_rejected(void **state)
{
    static const struct {
        const char *label;
        struct {
            const char *name;
            char type;
            const char *target, *content;
        } entries[3];
        int rc;
    } rows[] = {
        {"from the root",        {{"/tmp/berth-tar-evil", '0', "", "evil"}},                                         -EINVAL},
        {"upwards",              {{"top/../../x", '0', "", "evil"}},                                                 -EINVAL},
        {"upwards at once",      {{"../x", '0', "", "evil"}},                                                        -EINVAL},
        {"beside",               {{"other", '0', "", "evil"}},                                                       -EINVAL},
        {"a prefix of its name", {{"topper", '0', "", "evil"}},                                                      -EINVAL},
        {"nothing",              {{".", '5', "", ""}},                                                               -EINVAL},
        {"a long name upwards",  {{"././@LongLink", 'L', "", "top/../../x"}, {"top", '0', "", "evil"}},              -EINVAL},
        {"pax upwards",          {{"x", 'x', "", "20 path=top/../../x\n"}, {"top", '0', "", "evil"}},                -EINVAL},
        {"broken pax",           {{"x", 'x', "", "99 path=top\n"}, {"top", '0', "", "evil"}},                        -EINVAL},
        {"through a link",       {{"top/", '5', "", ""}, {"top/l", '2', "../..", ""}, {"top/l/x", '0', "", "evil"}}, 0      },
        {"over a link",          {{"top/", '5', "", ""}, {"top/l", '2', "/x", ""}, {"top/l", '0', "", "fine"}},      0      },
        {"another name of it",   {{"top/", '5', "", ""}, {"top/l", '1', "../x", ""}},                                -EINVAL},
        {"a device",             {{"top", '3', "", ""}},                                                             0      },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct test_folder outer;
        struct berth_err err = {0};
        CLEANUP(str) struct str archive = {0};
        struct stat st;
        test_folder_open(&outer);
        assert_int_equal(mkdirat(outer.fd, "in", 0700), 0);
        struct test_folder in = {.fd = openat(outer.fd, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        for (size_t e = 0; e < 3 && rows[i].entries[e].name; e++)
            entry_add(&archive, rows[i].entries[e].name, rows[i].entries[e].type, rows[i].entries[e].target,
                      rows[i].entries[e].content);
        archive_end(&archive);
        int rc = unpack(&in, "top", "as", &archive, 512, &err);
        if (rc != rows[i].rc)
            fail_msg("%s: %d instead of %d: %s", rows[i].label, rc, rows[i].rc, err.text);
        if (fstatat(outer.fd, "x", &st, 0) == 0 || access("/tmp/berth-tar-evil", F_OK) == 0)
            fail_msg("%s: it is outside", rows[i].label);
        (void)close(in.fd);
        test_folder_done(&outer);
    }
}

/* Links that leave the folder only through other links of the archive. None of them may be created, so that a later
 * open of the copy cannot lead outside. `secret` lies beside the target folder; `probe` would find it. */
static void links_through_other_links_are_skipped(void **state)
{
    static const struct {
        const char *label;
        struct {
            const char *name;
            char type;
            const char *target;
        } entries[4];
        const char *probe;
        size_t skipped;
    } rows[] = {
        {"down and up a link to itself",
         {{"top/", '5', ""}, {"top/d", '2', "."}, {"top/l", '2', "d/d/../../secret"}},
         "as/l",                                                                                                                      1},
        {"up a link that leads up",
         {{"top/a/b/", '5', ""}, {"top/a/b/u", '2', "../.."}, {"top/l", '2', "a/b/u/../../secret"}},
         "as/l",                                                                                                                      1},
        {"a folder through a link",
         {{"top/", '5', ""}, {"top/d", '2', "."}, {"top/l", '2', "d/d/../.."}},
         "as/l/secret",                                                                                                               1},
        {"the link comes first",                {{"top/l", '2', "d/d/../../secret"}, {"top/d", '2', "."}},                 "as/l",    1},
        {"the copy itself is a link beside it", {{"top", '2', "beside"}},                                                  "as",      1},
        {"a hard link of a link",
         {{"top/", '5', ""}, {"top/l", '2', "/etc/hostname"}, {"top/h", '1', "top/l"}},
         "as/h",                                                                                                                      2},
        {"links that stay",                     {{"top/a/f", '5', ""}, {"top/a/l", '2', "../a/f"}, {"top/m", '2', "a/f"}}, "as/none", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct test_folder outer;
        struct berth_err err = {0};
        CLEANUP(str) struct str archive = {0};
        test_folder_open(&outer);
        assert_int_equal(mkdirat(outer.fd, "in", 0700), 0);
        file_put(outer.fd, "secret", "kept", 4);
        struct test_folder in = {.fd = openat(outer.fd, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
        file_put(in.fd, "beside", "kept", 4);
        for (size_t e = 0; e < 4 && rows[i].entries[e].name; e++)
            entry_add(&archive, rows[i].entries[e].name, rows[i].entries[e].type, rows[i].entries[e].target, "");
        archive_end(&archive);
        int rc = unpack(&in, "top", "as", &archive, 512, &err);
        if (rc != 0)
            fail_msg("%s: %s", rows[i].label, err.text);
        if (faccessat(in.fd, rows[i].probe, F_OK, 0) == 0)
            fail_msg("%s: it leads out", rows[i].label);
        if (in.skipped != rows[i].skipped)
            fail_msg("%s: %zu entries were left out", rows[i].label, (size_t)in.skipped);
        (void)close(in.fd);
        test_folder_done(&outer);
    }
}

/* A symbolic link that existed before is not followed either. */
static void existing_links_are_not_followed(void **state)
{
    struct test_folder outer;
    struct berth_err err = {0};
    CLEANUP(str) struct str archive = {0}, file = {0};
    (void)state;
    test_folder_open(&outer);
    assert_int_equal(mkdirat(outer.fd, "in", 0700), 0);
    file_put(outer.fd, "secret", "kept", 4);
    struct test_folder in = {.fd = openat(outer.fd, "in", O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    assert_int_equal(symlinkat("..", in.fd, "as"), 0);
    entry_add(&archive, "top/secret", '0', "", "evil");
    archive_end(&archive);
    assert_true(unpack(&in, "top", "as", &archive, 512, &err) < 0);
    assert_int_equal(symlinkat("../secret", in.fd, "one"), 0);
    entry_add(&file, "top", '0', "", "evil");
    archive_end(&file);
    assert_true(unpack(&in, "top", "one", &file, 512, &err) < 0);
    assert_non_null(strstr(err.text, "symbolic link"));
    expect_file(outer.fd, "secret", "kept", 4);
    (void)close(in.fd);
    test_folder_done(&outer);
}

static void malformed_archives_are_rejected(void **state)
{
    struct test_folder to;
    struct berth_err err = {0};
    CLEANUP(str) struct str none = {0}, words = {0}, half = {0}, plain = {0};
    (void)state;
    test_folder_open(&to);
    assert_int_equal(unpack(&to, "top", "as", &none, 1, &err), -ENOENT);
    for (int i = 0; i < 100; i++)
        str_add(&words, "sh: tar: not found\n");
    assert_int_equal(unpack(&to, "top", "as", &words, 512, &err), -EINVAL);
    entry_add(&half, "top", '0', "", "text");
    half.len -= 100;
    assert_int_equal(unpack(&to, "top", "as", &half, 512, &err), -EPIPE);
    entry_add(&plain, "./a/b", '0', "", "text");
    archive_end(&plain);
    assert_int_equal(unpack(&to, NULL, "all", &plain, 512, &err), 0);
    expect_file(to.fd, "all/a/b", "text", 4);
    struct stat st;
    assert_int_equal(fstatat(to.fd, "all/a/b", &st, 0), 0);
    assert_int_equal(st.st_mode & 07000, 0); /* no set-user-id, set-group-id or sticky bit */
    test_folder_done(&to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folder_survives_a_round_trip),          cmocka_unit_test(unsafe_entries_are_rejected),
        cmocka_unit_test(links_through_other_links_are_skipped), cmocka_unit_test(existing_links_are_not_followed),
        cmocka_unit_test(malformed_archives_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
