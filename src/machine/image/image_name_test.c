/* image_name_test.c - valid and invalid image references. */
#include "machine/image/image_name.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "machine/launch/folder_test.h"
#include "wire/text/document.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void image_names_are_parsed(void **state)
{
    (void)state;
    static const struct {
        const char *config;
        enum image_kind kind;
        const char *path, *repository, *tag, *digest;
        bool plain_http, always;
    } rows[] = {
        {"{\"rootfs\": \"/srv/a\"}",                                                               IMAGE_FOLDER, "/srv/a",     "",                     "",      "",            false, false},
        {"{\"image\": \"oci:/srv/a\"}",                                                            IMAGE_LAYOUT, "/srv/a",     "",                     "",      "",            false, false},
        {"{\"image\": \"oci:/srv/a:1.2\"}",                                                        IMAGE_LAYOUT, "/srv/a",     "",                     "1.2",   "",            false, false},
        {"{\"image\": \"oci:/srv:b/a\"}",                                                          IMAGE_LAYOUT, "/srv:b/a",   "",                     "",      "",            false, false},
        {"{\"image\": \"app\"}",                                                                   IMAGE_NAMED,  "",           "app",                  "",      "",            false, false},
        {"{\"image\": \"app:1\", \"pull\": \"always\"}",                                           IMAGE_NAMED,  "",           "app",                  "1",     "",            false, true },
        {"{\"image\": \"app:1\", \"pull\": \"missing\"}",                                          IMAGE_NAMED,  "",           "app",                  "1",     "",            false, false},
        {"{\"image\": \"team/app-2:V_1.x\"}",                                                      IMAGE_NAMED,  "",           "team/app-2",           "V_1.x", "",            false, false},
        {"{\"image\": \"localhost/app:1\"}",                                                       IMAGE_NAMED,  "",           "localhost/app",        "1",     "",            true,  false},
        {"{\"image\": \"localhost:5000/app:1\"}",                                                  IMAGE_NAMED,  "",           "localhost:5000/app",   "1",     "",            true,  false},
        {"{\"image\": \"127.0.0.1:5000/a/b\"}",                                                    IMAGE_NAMED,  "",           "127.0.0.1:5000/a/b",   "",      "",            true,  false},
        {"{\"image\": \"127.0.0.1.evil.org/a\"}",                                                  IMAGE_NAMED,  "",           "127.0.0.1.evil.org/a", "",      "",            false, false},
        {"{\"image\": \"localhost.evil.org/a\"}",                                                  IMAGE_NAMED,  "",           "localhost.evil.org/a", "",      "",            false, false},
        {"{\"image\": \"r.lab/app@sha256:" HEX "\"}",                                              IMAGE_NAMED,  "",           "r.lab/app",            "",      "sha256:" HEX, false, false},
        {"{\"runtime\": \"vm\"}",                                                                  IMAGE_NONE,   "",           "",                     "",      "",            false, false},
        {"{\"runtime\": \"vm\", \"image\": \"/srv/a.img\"}",                                       IMAGE_FILE,   "/srv/a.img", "",                     "",      "",            false, false},
        {"{\"runtime\": \"vm\", \"image\": \"https://a/b?c\", \"vm\": {\"sha256\": \"" HEX "\"}}", IMAGE_URL,
         "https://a/b?c",                                                                                                      "",                     "",      "sha256:" HEX, false, false},
        {"{\"image\": \"app:1@sha256:" HEX "\"}",                                                  IMAGE_NAMED,  "",           "app",                  "1",     "sha256:" HEX, false, false},
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(json) json_t *config = json_loads(rows[i].config, 0, NULL);
        struct image_name n;
        struct berth_err err;
        if (image_name_read(config, &n, &err) < 0)
            fail_msg("%s: %s", rows[i].config, err.text);
        assert_int_equal(n.kind, rows[i].kind);
        assert_string_equal(n.path, rows[i].path);
        assert_string_equal(n.repository, rows[i].repository);
        assert_string_equal(n.tag, rows[i].tag);
        assert_string_equal(n.digest, rows[i].digest);
        if (n.plain_http != rows[i].plain_http || n.pull_always != rows[i].always)
            fail_msg("%s", rows[i].config);
    }
}

static void invalid_image_names_are_rejected(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{}",
        "{\"image\": \"\"}",
        "{\"image\": 1}",
        "{\"image\": \"a\", \"rootfs\": \"/b\"}",
        "{\"image\": \"a\", \"pull\": \"never\"}",
        "{\"image\": \"App\"}",
        "{\"image\": \"--insecure\"}",
        "{\"image\": \"-a\"}",
        "{\"image\": \"a b\"}",
        "{\"image\": \"a\\nb\"}",
        "{\"image\": \"../a\"}",
        "{\"image\": \"a/../b\"}",
        "{\"image\": \"a//b\"}",
        "{\"image\": \"a/\"}",
        "{\"image\": \"/a\"}",
        "{\"image\": \"a:\"}",
        "{\"image\": \"a:-x\"}",
        "{\"image\": \"a:x y\"}",
        "{\"image\": \"a@sha256:12\"}",
        "{\"image\": \"a@md5:12\"}",
        "{\"image\": \"host:port/a\"}",
        "{\"image\": \":5000/a\"}",
        "{\"image\": \"docker://a\"}",
        "{\"image\": \"a;rm\"}",
        "{\"image\": \"$(a)\"}",
        "{\"image\": \"oci:\"}",
        "{\"image\": \"oci:a\"}",
        "{\"image\": \"oci:/a/../b\"}",
        "{\"image\": \"oci:/a:..\"}",
        "{\"runtime\": \"vm\", \"image\": \"a.img\"}",
        "{\"runtime\": \"vm\", \"image\": \"/a/../b\"}",
        "{\"runtime\": \"vm\", \"image\": \"http://a/b\"}",
        "{\"runtime\": \"vm\", \"image\": \"http://a/b\", \"vm\": {\"sha256\": \"0\"}}",
        ("{\"runtime\": \"vm\", \"image\": \"ftp://a/b\", \"vm\": {\"sha256\": \"" HEX "\"}}"),
        "{\"rootfs\": \"a\"}",
        "{\"rootfs\": \"/\"}",
        "{\"rootfs\": \"//\"}",
        "{\"rootfs\": \"/a/./b\"}",
        "{\"rootfs\": \"/a/..\"}",
        "{\"rootfs\": \"/a\\u0000b\"}",
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(json) json_t *config = json_loads(rows[i], JSON_ALLOW_NUL, NULL);
        struct image_name n = {.kind = IMAGE_NONE};
        struct berth_err err;
        assert_non_null(config);
        if (image_name_read(config, &n, &err) != -EINVAL)
            fail_msg("%s", rows[i]);
        assert_int_equal(n.kind, IMAGE_NONE);
    }
    char text[IMAGE_NAME_MAX + 64];
    (void)snprintf(text, sizeof text, "{\"image\": \"%0*d\"}", IMAGE_NAME_MAX, 1);
    CLEANUP(json) json_t *config = json_loads(text, 0, NULL);
    struct image_name n;
    assert_int_equal(image_name_read(config, &n, NULL), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(image_names_are_parsed),
        cmocka_unit_test(invalid_image_names_are_rejected),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
