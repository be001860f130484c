/* logfile_test.c - reading logs that are written and rotated, by real shims and by hand. */
#include <pthread.h>

#include "machine/launch/launch_kit_test.h"

static void read_all(struct logfile *l, struct str *ret, size_t step)
{
    char buf[8192];
    ssize_t n;

    assert_true(step <= sizeof buf);
    while ((n = logfile_read(l, buf, step)) > 0)
        str_add_bytes(ret, buf, (size_t)n);
    assert_int_equal(n, 0);
}

static void put(struct kit *k, uint64_t id, const char *name, const char *text, bool append)
{
    char path[160];
    int fd;

    (void)snprintf(path, sizeof path, "%s/logs/%" PRIu64, k->root, id);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof path, "%s/logs/%" PRIu64 "/%s", k->root, id, name);
    fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | (append ? O_APPEND : O_TRUNC), 0600);
    assert_true(fd >= 0);
    assert_int_equal(fd_write(fd, text, strlen(text)), 0);
    close(fd);
}

static void move(struct kit *k, uint64_t id, const char *from, const char *to)
{
    char a[160], b[160];

    (void)snprintf(a, sizeof a, "%s/logs/%" PRIu64 "/%s", k->root, id, from);
    (void)snprintf(b, sizeof b, "%s/logs/%" PRIu64 "/%s", k->root, id, to);
    assert_int_equal(rename(a, b), 0);
}

static void tail_returns_last_lines(void **state)
{
    static const struct {
        int64_t tail;
        const char *want;
    } rows[] = {
        {-1, "a\nb\nc\nd\ne\nf"},
        {0,  ""                },
        {1,  "f"               },
        {2,  "e\nf"            },
        {3,  "d\ne\nf"         },
        {4,  "c\nd\ne\nf"      },
        {6,  "a\nb\nc\nd\ne\nf"},
        {9,  "a\nb\nc\nd\ne\nf"},
    };
    struct kit *k = *state;

    put(k, 1, "log.2", "a\nb\n", false);
    put(k, 1, "log.1", "c\nd\n", false);
    put(k, 1, "log", "e\nf", false);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CLEANUP(str) struct str all = {0};
        struct logfile *l;
        struct berth_err err;

        assert_int_equal(logfile_open(k->state_dir, 1, rows[i].tail, &l, &err), 0);
        read_all(l, &all, 1 + i);
        assert_string_equal(str_text(&all), rows[i].want);
        /* Then lines that are appended later. */
        str_clear(&all);
        put(k, 1, "log", "!", true);
        read_all(l, &all, 3);
        assert_string_equal(str_text(&all), "!");
        logfile_free(l);
        put(k, 1, "log", "e\nf", false);
    }
}

static void tail_of_a_long_log_is_read(void **state)
{
    struct kit *k = *state;
    CLEANUP(str) struct str text = {0};
    CLEANUP(str) struct str all = {0};
    struct logfile *l;
    struct berth_err err;
    size_t from = 0;

    for (int i = 0; i < 20000; i++) {
        if (i == 20000 - 9000)
            from = text.len;
        str_addf(&text, "line %d\n", i);
    }
    put(k, 1, "log", text.at, false);
    assert_int_equal(logfile_open(k->state_dir, 1, 9000, &l, &err), 0);
    read_all(l, &all, 8192);
    assert_string_equal(str_text(&all), text.at + from);
    logfile_free(l);
}

static void reader_follows_rotations(void **state)
{
    struct kit *k = *state;
    CLEANUP(str) struct str all = {0};
    struct logfile *l;
    struct berth_err err;

    assert_int_equal(logfile_open(k->state_dir, 1, -1, &l, &err), -ENOENT);
    put(k, 1, "log", "a", false);
    assert_int_equal(logfile_open(k->state_dir, 1, -1, &l, &err), 0);
    read_all(l, &all, 100);
    /* Two writes and rotations before the reader continues. */
    put(k, 1, "log", "b", true);
    move(k, 1, "log", "log.1");
    put(k, 1, "log", "c", false);
    move(k, 1, "log.1", "log.2");
    move(k, 1, "log", "log.1");
    read_all(l, &all, 100); /* in the middle of a rotation there is no "log" */
    put(k, 1, "log", "d", false);
    read_all(l, &all, 100);
    assert_string_equal(str_text(&all), "abcd");
    /* Rotated until the reader's file was removed: it continues with the oldest file. */
    move(k, 1, "log.1", "log.2");
    move(k, 1, "log", "log.1");
    put(k, 1, "log", "e", false);
    move(k, 1, "log", "log.1");
    put(k, 1, "log", "f", false);
    move(k, 1, "log.1", "log.2");
    move(k, 1, "log", "log.1");
    put(k, 1, "log", "g", false);
    read_all(l, &all, 100);
    assert_string_equal(str_text(&all), "abcdefg");
    logfile_free(l);
}

/* Continues from a cursor with another reader, as after a lost connection. */
static void read_from(struct kit *k, const char *cursor, bool want_gap, const char *want)
{
    CLEANUP(str) struct str all = {0};
    struct logfile *l;
    struct berth_err err;
    bool gap = !want_gap;

    assert_int_equal(logfile_open_at(k->state_dir, 1, cursor, &l, &gap, &err), 0);
    read_all(l, &all, 3);
    assert_string_equal(str_text(&all), want);
    assert_int_equal(gap, want_gap);
    logfile_free(l);
}

static void log_is_read_from_a_cursor(void **state)
{
    static const char *const bad[] = {
        "", "1", "1.2", "1.2.3.4", "-1.2.3", "1.2.3 ", "x.y.z", "1.2.ffffffffffffffff", "11111111111111111111.2.3"};
    struct kit *k = *state;
    struct logfile *l;
    struct berth_err err;
    char cursor[LOGFILE_CURSOR_MAX], none[LOGFILE_CURSOR_MAX], buf[2];
    bool gap;

    assert_int_equal(logfile_open_at(k->state_dir, 1, "0.0.0", &l, &gap, &err), -ENOENT);
    put(k, 1, "keep", "", false);
    assert_int_equal(logfile_open(k->state_dir, 1, -1, &l, &err), 0);
    logfile_cursor(l, none); /* no file exists yet */
    put(k, 1, "log", "abcd\n", false);
    assert_int_equal(logfile_read(l, buf, 2), 2);
    logfile_cursor(l, cursor);
    logfile_free(l);
    read_from(k, none, false, "abcd\n");
    read_from(k, cursor, false, "cd\n");
    put(k, 1, "log", "ef\n", true);
    move(k, 1, "log", "log.1");
    put(k, 1, "log", "gh\n", false);
    read_from(k, cursor, false, "cd\nef\ngh\n");
    move(k, 1, "log.1", "log.2");
    move(k, 1, "log", "log.1");
    read_from(k, cursor, false, "cd\nef\ngh\n"); /* in the middle of a rotation */
    put(k, 1, "log", "ij\n", false);
    move(k, 1, "log.2", "removed"); /* the oldest file */
    read_from(k, cursor, true, "gh\nij\n");
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(logfile_open_at(k->state_dir, 1, bad[i], &l, &gap, &err), -EINVAL);
}

enum { ROTATIONS = 60 };

static void *rotates(void *ctx)
{
    for (int i = 0; i < ROTATIONS; i++) {
        char text[16], from[16], to[16];

        for (int n = i; n > 0; n--) {
            (void)snprintf(to, sizeof to, "log.%d", n);
            (void)snprintf(from, sizeof from, n > 1 ? "log.%d" : "log", n - 1);
            move(ctx, 1, from, to);
        }
        (void)snprintf(text, sizeof text, "%d\n", i);
        put(ctx, 1, "log", text, true);
    }
    return NULL;
}

/* No byte is skipped, at whichever step of a rotation the reader continues. */
static void rotation_during_read_loses_nothing(void **state)
{
    struct kit *k = *state;
    CLEANUP(str) struct str want = {0};

    for (int i = 0; i < ROTATIONS; i++)
        str_addf(&want, "%d\n", i);
    for (int round = 0; round < 20; round++) {
        CLEANUP(str) struct str all = {0};
        struct logfile *l = NULL;
        struct berth_err err;
        pthread_t thread;
        char path[160];

        assert_int_equal(pthread_create(&thread, NULL, rotates, k), 0);
        while (!l)
            (void)logfile_open(k->state_dir, 1, -1, &l, &err);
        while (all.len < want.len && strncmp(str_text(&all), want.at, all.len) == 0)
            read_all(l, &all, 100);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_string_equal(str_text(&all), want.at);
        logfile_free(l);
        (void)snprintf(path, sizeof path, "%s/logs/1", k->root);
        kit_remove(path);
    }
}

/* A reader that keeps up sees every byte once and in order, however often the shim rotates. */
static void reader_follows_live_shim(void **state)
{
    struct kit *k = *state;
    struct launch *l = kit_script(
        k, "i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); [ $((i % 50)) = 0 ] && sleep 0.01; done");
    CLEANUP(str) struct str all = {0};
    CLEANUP(str) struct str want = {0};
    struct launch_result run;
    struct logfile *reader = NULL;
    struct pollfd gone;
    struct berth_err err;

    l->log_bytes = 4096;
    l->log_files = 10; /* so that no file is removed, however late the reader is */
    run = kit_start(k, l);
    gone = (struct pollfd){.fd = run.pidfd, .events = POLLIN};
    while (poll(&gone, 1, 1) == 0)
        if (reader || logfile_open(k->state_dir, l->id, -1, &reader, &err) == 0)
            read_all(reader, &all, 1000);
    close(run.pidfd);
    read_all(reader, &all, 1000);
    logfile_free(reader);
    for (int i = 0; i < 3000; i++)
        str_addf(&want, "line %d\n", i);
    assert_string_equal(str_text(&all), want.at);
}

static bool there(struct kit *k, uint64_t id)
{
    char path[128];

    (void)snprintf(path, sizeof path, "%s/logs/%" PRIu64, k->root, id);
    return access(path, F_OK) == 0;
}

static void age(struct kit *k, uint64_t id, int64_t seconds)
{
    char path[160];
    struct timespec at[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};

    (void)snprintf(path, sizeof path, "%s/logs/%" PRIu64 "/log", k->root, id);
    assert_int_equal(utimensat(AT_FDCWD, path, at, 0), 0);
    *strrchr(path, '/') = 0;
    assert_int_equal(utimensat(AT_FDCWD, path, at, 0), 0);
}

static void old_logs_are_removed(void **state)
{
    struct kit *k = *state;
    struct berth_err err;
    char text[5000];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    for (uint64_t id = 1; id <= 6; id++) {
        put(k, id, "log", text, false);
        age(k, id, 1000000 + (int64_t)id);
    }
    assert_int_equal(instance_dir_create(k->state_dir, 1, "{}", &err), 0); /* not forgotten yet */
    logs_trim(k->state_dir, UINT64_MAX, INT64_C(1000000000) * 100, INT64_C(1000000000) * 1000103);
    assert_true(there(k, 1));
    assert_false(there(k, 2));
    assert_true(there(k, 3));
    logs_trim(k->state_dir, 20000, INT64_MAX, INT64_C(1000000000) * 1000103); /* each has two blocks of 4096 */
    assert_true(there(k, 1));
    assert_false(there(k, 3));
    assert_false(there(k, 4));
    assert_true(there(k, 5));
    assert_true(there(k, 6));
    assert_int_equal(instance_dir_remove(k->state_dir, 1, &err), 0);
    logs_trim(k->state_dir, 0, INT64_MAX, 0);
    for (uint64_t id = 1; id <= 6; id++)
        assert_false(there(k, id));
}

static void logs_are_kept_for_retention_time(void **state)
{
    struct kit *k = *state;
    struct berth_err err;

    for (uint64_t id = 1; id <= 3; id++)
        put(k, id, "log", "hello", false);
    assert_int_equal(log_keep(k->state_dir, 1, INT64_C(1000000000) * 50, &err), 0);
    assert_int_equal(log_keep(k->state_dir, 2, INT64_C(1000000000) * 500, &err), 0);
    assert_int_equal(log_keep(k->state_dir, 99, 1, &err), 0); /* it has no log */
    struct timespec now;
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
    int64_t now_ns = (int64_t)now.tv_sec * 1000000000;
    logs_trim(k->state_dir, UINT64_MAX, INT64_MAX, now_ns + INT64_C(1000000000) * 40);
    assert_true(there(k, 1) && there(k, 2) && there(k, 3));
    logs_trim(k->state_dir, UINT64_MAX, INT64_MAX, now_ns + INT64_C(1000000000) * 200);
    assert_true(!there(k, 1) && there(k, 2) && there(k, 3));
    logs_trim(k->state_dir, UINT64_MAX, INT64_MAX, now_ns + INT64_C(1000000000) * 2000);
    assert_true(!there(k, 2) && there(k, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tail_returns_last_lines, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(tail_of_a_long_log_is_read, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(reader_follows_rotations, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(log_is_read_from_a_cursor, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(rotation_during_read_loses_nothing, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(reader_follows_live_shim, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(old_logs_are_removed, kit_setup, kit_teardown),
        cmocka_unit_test_setup_teardown(logs_are_kept_for_retention_time, kit_setup, kit_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
