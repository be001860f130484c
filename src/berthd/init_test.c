#include "berthd/init.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

struct folders {
    char root[64], data[96], token[96];
};

static int64_t clock_now(void *ctx)
{
    (void)ctx;
    return INT64_C(1800000000) * 1000000000;
}

static void random_fill(void *ctx, void *buf, size_t len)
{
    (void)ctx;
    memset(buf, 7, len);
}

static const struct log silent = {0};
static const struct control_env env = {.clock_ns = clock_now,
                                       .steady_ns = clock_now,
                                       .random = random_fill,
                                       .log = &silent};

static int setup(void **state)
{
    struct folders *p = mem_zalloc(sizeof *p);

    (void)snprintf(p->root, sizeof p->root, "/tmp/berth-init-XXXXXX");
    assert_non_null(mkdtemp(p->root));
    (void)snprintf(p->data, sizeof p->data, "%s/data", p->root);
    (void)snprintf(p->token, sizeof p->token, "%s/token", p->root);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct folders *p = *state;
    CLEANUP(str) struct str command = {0};

    str_addf(&command, "rm -rf '%s'", p->root);
    assert_int_equal(system(command.at), 0);
    mem_free(p);
    return 0;
}

static void read_text(const char *path, char *ret, size_t size)
{
    FILE *f = fopen(path, "r");

    assert_non_null(f);
    ret[fread(ret, 1, size - 1, f)] = '\0';
    (void)fclose(f);
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

static bool is_there(const char *dir, const char *name)
{
    CLEANUP(str) struct str path = {0};
    struct stat found;

    str_addf(&path, "%s/%s", dir, name);
    return lstat(path.at, &found) == 0;
}

/* Checks that the token in the file is valid for the store in the folder. */
static void token_opens(const struct folders *p)
{
    const struct store_options options = {0};
    struct store *store = NULL;
    struct state *s = NULL;
    struct berth_err err = {0};
    struct caller caller;
    char text[TOKEN_TEXT_MAX + 2];

    read_text(p->token, text, sizeof text);
    assert_int_equal(text[strlen(text) - 1], '\n');
    text[strlen(text) - 1] = '\0';
    if (store_sqlite_open(p->data, &options, &store, &err) < 0 || state_load(store, &s, &err) < 0)
        fail_msg("%s", err.text);
    assert_int_equal(caller_find(s, text, NULL, clock_now(NULL), &caller, &err), 0);
    assert_string_equal(caller.user, "admin");
    assert_int_equal(caller.scope[PERMIT_SYSTEM], SCOPE_ALL);
    state_free(s);
    store_close(store);
}

static void cluster_is_created_once(void **state)
{
    const struct folders *p = *state;
    struct berth_err err = {0};
    struct stat mode;
    bool made = false;

    if (cluster_init(p->data, p->token, &env, &made, &err) < 0)
        fail_msg("%s", err.text);
    assert_true(made);
    assert_true(cluster_exists(p->data));
    assert_false(is_there(p->data, "init.tmp"));
    assert_int_equal(stat(p->token, &mode), 0);
    assert_int_equal(mode.st_mode & 0777, 0600);
    assert_int_equal(stat(p->data, &mode), 0);
    assert_int_equal(mode.st_mode & 0777, 0700);
    token_opens(p);

    write_text(p->token, "mine"); /* a second start changes nothing */
    assert_int_equal(cluster_init(p->data, p->token, &env, &made, &err), 0);
    assert_false(made);
    char text[16];
    read_text(p->token, text, sizeof text);
    assert_string_equal(text, "mine");
}

/* After any failure there is no cluster without a usable token, and the next try succeeds. */
static void interrupted_start_can_be_repeated(void **state)
{
    const struct folders *p = *state;
    struct berth_err err = {0};
    char nowhere[128], aside[128], left[160];
    bool made = true;

    (void)snprintf(nowhere, sizeof nowhere, "%s/no/such/token", p->root);
    assert_int_equal(cluster_init(p->data, nowhere, &env, &made, &err), -ENOENT);
    assert_non_null(strstr(err.text, nowhere));
    assert_false(cluster_exists(p->data));
    assert_false(is_there(p->data, "init.tmp"));

    (void)snprintf(aside, sizeof aside, "%s/init.tmp", p->data); /* the folder that a crash leaves */
    (void)snprintf(left, sizeof left, "%s/store.db", aside);
    assert_int_equal(mkdir(aside, 0700), 0);
    write_text(left, "half of a store");
    write_text(p->token, "of a cluster that never was");
    assert_int_equal(cluster_init(p->data, p->token, &env, &made, &err), 0);
    assert_true(made);
    token_opens(p);
}

static void unusable_folders_are_rejected(void **state)
{
    const struct folders *p = *state;
    struct berth_err err = {0};
    char path[160];
    bool made = true;

    (void)snprintf(path, sizeof path, "%s/a/b", p->root);
    assert_int_equal(cluster_init(path, p->token, &env, &made, &err), -ENOENT);
    assert_non_null(strstr(err.text, path));
    write_text(p->data, "a file");
    assert_true(cluster_init(p->data, p->token, &env, &made, &err) < 0);
    assert_false(is_there(p->root, "token"));
    assert_true(made); /* untouched */
}

static void secret_write_is_atomic(void **state)
{
    const struct folders *p = *state;
    struct berth_err err = {0};
    char path[128], text[32], target[160];
    struct stat mode;

    (void)snprintf(path, sizeof path, "%s/secret", p->root);
    (void)snprintf(target, sizeof target, "%s/target", p->root);
    write_text(path, "a longer text of before");
    assert_int_equal(chmod(path, 0644), 0);
    assert_int_equal(secret_write(path, "new\n", &err), 0);
    read_text(path, text, sizeof text);
    assert_string_equal(text, "new\n");
    assert_int_equal(stat(path, &mode), 0);
    assert_int_equal(mode.st_mode & 0777, 0600);
    assert_false(is_there(p->root, "secret.new"));

    /* A link is replaced, not followed. */
    write_text(target, "untouched");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(secret_write(path, "new\n", &err), 0);
    read_text(target, text, sizeof text);
    assert_string_equal(text, "untouched");
    assert_int_equal(lstat(path, &mode), 0);
    assert_true(S_ISREG(mode.st_mode));
    assert_true(secret_write(p->root, "x", &err) < 0); /* a folder */
    assert_non_null(strstr(err.text, p->root));
}

static void secret_key_is_created_once(void **state)
{
    const struct folders *p = *state;
    struct berth_err err = {0};
    unsigned char first[32] = {0}, second[32] = {0};
    char path[160];
    struct stat found;

    (void)snprintf(path, sizeof path, "%s/secret.key", p->root);
    bool there = true;
    assert_int_equal(secret_key_read(p->root, &env, first, &there, &err), 0);
    assert_false(there);
    assert_int_equal(stat(path, &found), -1);
    assert_int_equal(secret_key_write(p->root, first, &err), 0);
    assert_int_equal(stat(path, &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    assert_int_equal(secret_key_read(p->root, &env, second, &there, &err), 0);
    assert_true(there);
    assert_memory_equal(first, second, sizeof first);

    static const char *const bad[] = {"", "short\n",
                                      "zz00000000000000000000000000000000000000000000000000000000000000\n",
                                      "0000000000000000000000000000000000000000000000000000000000000000more"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        write_text(path, bad[i]);
        assert_int_equal(secret_key_read(p->root, &env, second, &there, &err), -EBADMSG);
        assert_non_null(strstr(err.text, path));
    }
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    assert_true(secret_key_read(p->root, &env, second, &there, &err) < 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(cluster_is_created_once), CASE(interrupted_start_can_be_repeated), CASE(unusable_folders_are_rejected),
        CASE(secret_write_is_atomic),  CASE(secret_key_is_created_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
