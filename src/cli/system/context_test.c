/* context_test.c - the choice of server and token: precedence, and tokens that are never sent to another server. */
#include "cli/system/context.h"

#include <errno.h>
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

/* A separate folder for each test. */
struct test_folder {
    char folder[64], config[128], token[128];
};

static int setup(void **state)
{
    struct test_folder *p = mem_zalloc(sizeof *p);

    snprintf(p->folder, sizeof p->folder, "/tmp/context_test.XXXXXX");
    if (!mkdtemp(p->folder))
        return -1;
    snprintf(p->config, sizeof p->config, "%s/deep/er/config.yaml", p->folder);
    snprintf(p->token, sizeof p->token, "%s/token", p->folder);
    *state = p;
    return 0;
}

static int teardown(void **state)
{
    struct test_folder *p = *state;
    char path[192];

    unlink(p->config);
    unlink(p->token);
    snprintf(path, sizeof path, "%s/deep/er", p->folder);
    rmdir(path);
    snprintf(path, sizeof path, "%s/deep", p->folder);
    rmdir(path);
    int rc = rmdir(p->folder); /* fails if a file is left over */
    mem_free(p);
    return rc;
}

static void file_make(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fputs(text, file) >= 0, 1);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

static void contexts_make(struct contexts *c)
{
    struct context lab = {.name = mem_strdup("lab"),
                          .server = mem_strdup("https://lab:3980"),
                          .token = mem_strdup("berth_lab"),
                          .ca = mem_strdup("/lab.pem"),
                          .pin = mem_strdup("sha256//lab")};
    struct context home = {.name = mem_strdup("home"), .token = mem_strdup("berth_home")};

    *c = (struct contexts){.current = mem_strdup("lab")};
    contexts_put(c, &lab);
    contexts_put(c, &home);
}

static void options_override_environment_and_file(void **state)
{
    static const struct {
        const char *label;
        struct connect_values values;
        struct context_env env;
        bool contexts;
        const char *server, *token, *pin;
    } rows[] = {
        {"nothing",              {0},                             {0},                                  false, SERVER_DEFAULT,      NULL,         NULL         },
        {"environment",          {0},                             {.server = "http://e", .token = "t"}, false, "http://e",          "t",          NULL         },
        {"option over it",       {.server = "http://o"},          {.server = "http://e"},               false, "http://o",          NULL,         NULL         },
        {"the current context",  {0},                             {0},                                  true,  "https://lab:3980",  "berth_lab",  "sha256//lab"},
        {"a named one",          {.context = "home"},             {0},                                  true,  SERVER_DEFAULT,      "berth_home", NULL         },
        {"named by environment", {0},                             {.context = "home"},                  true,  SERVER_DEFAULT,      "berth_home", NULL         },
        {"option over that",
         {.context = "lab"},
         {.context = "home"},
         true,                                                                                                 "https://lab:3980",
         "berth_lab",                                                                                                                             "sha256//lab"},
        {"token over context's", {0},                             {.token = "t"},                       true,  "https://lab:3980",  "t",          "sha256//lab"},
        {"pin over context's",   {.pin = "sha256//o"},            {0},                                  true,  "https://lab:3980",  "berth_lab",  "sha256//o"  },
        {"another server",       {.server = "https://evil"},      {0},                                  true,  "https://evil",      NULL,         NULL         },
        {"that by environment",  {0},                             {.server = "https://evil"},           true,  "https://evil",      NULL,         NULL         },
        {"the same, a slash",
         {.server = "https://lab:3980/"},
         {0},
         true,                                                                                                 "https://lab:3980/",
         "berth_lab",                                                                                                                             "sha256//lab"},
        {"nearly the same",      {.server = "https://lab:39800"}, {0},                                  true,  "https://lab:39800", NULL,         NULL         },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct contexts contexts = {0};
        struct connection got;
        struct berth_err err;
        if (rows[i].contexts)
            contexts_make(&contexts);
        if (connection_choose(&rows[i].values, &rows[i].env, &contexts, &got, &err) != 0)
            fail_msg("%s: %s", rows[i].label, err.text);
        if (strcmp(got.server, rows[i].server) != 0 || (got.token != NULL) != (rows[i].token != NULL) ||
            (got.token && strcmp(got.token, rows[i].token) != 0) || (got.pin != NULL) != (rows[i].pin != NULL) ||
            (got.pin && strcmp(got.pin, rows[i].pin) != 0))
            fail_msg("%s: %s, %s, %s", rows[i].label, got.server, got.token ? got.token : "-", got.pin ? got.pin : "-");
        connection_done(&got);
        contexts_done(&contexts);
    }
}

static void invalid_choices_are_rejected(void **state)
{
    static const struct {
        struct connect_values values;
        struct context_env env;
        int code;
        const char *says;
    } rows[] = {
        {{.context = "lba"},             {0},                      ENOENT, "did you mean 'lab'?"          },
        {{0},                            {.context = "elsewhere"}, ENOENT, "no context 'elsewhere'"       },
        {{.token_file = "/nonexistent"}, {0},                      ENOENT, "cannot read the token file"   },
        {{.token_file = "/"},            {0},                      EISDIR, "cannot read the token file"   },
        {{0},                            {.token = "a b"},         EINVAL, "BERTH_TOKEN contains no token"},
        {{0},                            {.token = "a\r\nX: y"},   EINVAL, "BERTH_TOKEN contains no token"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct contexts contexts;
        struct connection got = {.server = "untouched"};
        struct berth_err err = {0};
        contexts_make(&contexts);
        assert_int_equal(connection_choose(&rows[i].values, &rows[i].env, &contexts, &got, &err), -rows[i].code);
        if (!strstr(err.text, rows[i].says))
            fail_msg("row %zu: %s", i, err.text);
        assert_string_equal(got.server, "untouched");
        contexts_done(&contexts);
    }
}

static void token_files_are_trimmed_and_checked(void **state)
{
    struct test_folder *p = *state;
    static const struct {
        const char *text, *token; /* token NULL: rejected */
        mode_t mode;
        bool exposed;
    } rows[] = {
        {"berth_a_b\n",     "berth_a_b", 0600, false},
        {"  berth_a_b\r\n", "berth_a_b", 0640, true },
        {"berth_a_b",       "berth_a_b", 0604, true },
        {"",                NULL,        0600, false},
        {"\n\n",            NULL,        0600, false},
        {"two words",       NULL,        0600, false},
        {"a\nb\n",          NULL,        0600, false},
        {"caf\xc3\xa9",     NULL,        0600, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CLEANUP(mem) char *token = NULL;
        bool exposed = false;
        struct berth_err err;
        file_make(p->token, rows[i].text, rows[i].mode);
        int rc = token_file_read(p->token, &token, &exposed, &err);
        assert_int_equal(rc, rows[i].token ? 0 : -EINVAL);
        if (rows[i].token)
            assert_string_equal(token, rows[i].token);
        else
            assert_null(token);
        assert_int_equal(exposed, rows[i].exposed);
    }
    char long_line[8192];
    memset(long_line, 'x', sizeof long_line - 1);
    long_line[sizeof long_line - 1] = '\0';
    file_make(p->token, long_line, 0600);
    char *token = NULL;
    bool exposed;
    assert_int_equal(token_file_read(p->token, &token, &exposed, NULL), -EINVAL);
    assert_null(token);
}

static void contexts_survive_write_and_read(void **state)
{
    struct test_folder *p = *state;
    struct contexts contexts, again;
    struct berth_err err;
    struct stat st;

    assert_int_equal(contexts_read(p->config, &again, &err), 0); /* does not exist yet */
    assert_int_equal(again.len, 0);
    contexts_make(&contexts);
    assert_int_equal(contexts_write(p->config, &contexts, &err), 0);
    assert_int_equal(stat(p->config, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    assert_int_equal(contexts_read(p->config, &again, &err), 0);
    assert_int_equal(again.len, 2);
    assert_string_equal(again.current, "lab");
    assert_string_equal(again.at[0].name, "home"); /* sorted */
    assert_string_equal(again.at[0].token, "berth_home");
    assert_null(again.at[0].server);
    assert_string_equal(again.at[1].ca, "/lab.pem");
    contexts_remove(&again, "home");
    contexts_remove(&again, "nothing");
    assert_int_equal(contexts_write(p->config, &again, &err), 0); /* replaces the first file */
    contexts_done(&again);
    assert_int_equal(contexts_read(p->config, &again, &err), 0);
    assert_int_equal(again.len, 1);
    assert_null(contexts_find(&again, "home"));
    assert_non_null(contexts_find(&again, "lab"));
    contexts_done(&again);
    contexts_done(&contexts);
    assert_int_not_equal(contexts_write("/proc/nowhere/config.yaml", &contexts, &err), 0);
}

static void malformed_files_are_rejected(void **state)
{
    struct test_folder *p = *state;
    static const struct {
        const char *text, *says;
    } rows[] = {
        {"[]",                                "expected the keys current and contexts"},
        {"current: 5",                        "current: expected the name"            },
        {"kontexts: {}",                      "unknown key \"kontexts\""              },
        {"contexts: []",                      "unknown key \"contexts\""              },
        {"contexts: {a: b}",                  "a: expected keys such as server"       },
        {"contexts: {a: {server: 5}}",        "a: server: expected text"              },
        {"contexts: {a: {tokenfile: x}}",     "did you mean \"token_file\"?"          },
        {"contexts: {a: {completely: x}}",    "unknown key \"completely\""            },
        {"contexts: {a: {server: x}, a: {}}", "is listed twice"                       },
        {"contexts: [",                       ":1:"                                   },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct contexts contexts;
        struct berth_err err = {0};
        file_make(p->token, rows[i].text, 0600);
        assert_int_not_equal(contexts_read(p->token, &contexts, &err), 0);
        if (!strstr(err.text, rows[i].says) || !strstr(err.text, p->token))
            fail_msg("row %zu: %s", i, err.text);
        assert_int_equal(contexts.len, 0);
    }
}

static void config_path_follows_the_environment(void **state)
{
    static const struct {
        struct context_env env;
        const char *want;
    } rows[] = {
        {{.config = "/c", .xdg_config_home = "/x", .home = "/h"}, "/c"                          },
        {{.xdg_config_home = "/x", .home = "/h"},                 "/x/berth/config.yaml"        },
        {{.home = "/h"},                                          "/h/.config/berth/config.yaml"},
        {{0},                                                     NULL                          },
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CLEANUP(str) struct str path = {0};
        assert_int_equal(contexts_path(&rows[i].env, &path, NULL), rows[i].want ? 0 : -ENOENT);
        assert_string_equal(str_text(&path), rows[i].want ? rows[i].want : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_override_environment_and_file),
        cmocka_unit_test(invalid_choices_are_rejected),
        cmocka_unit_test_setup_teardown(token_files_are_trimmed_and_checked, setup, teardown),
        cmocka_unit_test_setup_teardown(contexts_survive_write_and_read, setup, teardown),
        cmocka_unit_test_setup_teardown(malformed_files_are_rejected, setup, teardown),
        cmocka_unit_test(config_path_follows_the_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
