/* image_manifest_test.c - valid and invalid manifests of registries. */
#include "machine/image/image_kit_test.h"

#include "machine/image/image_layout.h"
#include "wire/text/document.h"

#define HEX_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define PART(type, hex, size) "{\"mediaType\": \"" type "\", \"digest\": \"sha256:" hex "\", \"size\": " size "}"
#define DOCKER "application/vnd.docker."
#define OCI "application/vnd.oci.image."
#define CONFIG PART(OCI "config.v1+json", HEX_A, "7")
#define DOC(config, layers) "{\"schemaVersion\": 2, \"config\": " config ", \"layers\": [" layers "]}"

struct asked {
    struct str text;
    int rc; /* result of the callback */
};

static int part(void *ctx, const char *digest, uint64_t size, int blobs)
{
    struct asked *a = ctx;
    str_addf(&a->text, "%.8s %" PRIu64 ", ", digest + strlen("sha256:"), size);
    return a->rc < 0 ? a->rc : tree_write(blobs, digest + strlen("sha256:"), "x", 1, geteuid(), getegid(), 0600);
}

static int make(struct image_kit *k, const char *text, struct asked *a, char digest[static IMAGE_DIGEST_MAX])
{
    CLEANUP(close_fd) int to = open(k->folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(tree_remove(to, "blobs"), 0);
    memset(&k->err, 0, sizeof k->err);
    str_clear(&a->text);
    *digest = '\0';
    return layout_make(text, strlen(text), to, "app:1", part, a, digest, &k->err);
}

static void each_blob_is_requested_once(void **state)
{
    static const struct {
        const char *text, *type;
    } rows[] = {
        {DOC(CONFIG,                                PART(OCI "layer.v1.tar+gzip", HEX_B, "9") "," PART(OCI "layer.v1.tar+gzip", HEX_B,                          "9")),
         OCI "layer.v1.tar+gzip"                                                                                                                                                                                                                       },
        {DOC(PART(DOCKER "container.image.v1+json", HEX_A,                        "7"),
         PART(DOCKER "image.rootfs.diff.tar.gzip",                                                                              HEX_B,                          "9") "," PART(DOCKER "image.rootfs.diff.tar.gzip",           HEX_B,
         "9")),
         OCI "layer.v1.tar+gzip"},
        {DOC(CONFIG,                   PART(DOCKER "image.rootfs.diff.tar.zstd",                                               HEX_B,                                           "9") "," PART("x",                      HEX_B, "9")),
         OCI "layer.v1.tar+zstd"},
    };
    struct image_kit *k = *state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct asked a = {0};
        char digest[IMAGE_DIGEST_MAX], path[128];
        if (make(k, rows[i].text, &a, digest) < 0)
            fail_msg("%zu: %s", i, k->err.text);
        assert_string_equal(str_text(&a.text), "aaaaaaaa 7, bbbbbbbb 9, ");
        (void)snprintf(path, sizeof path, "blobs/sha256/%s", digest + strlen("sha256:"));
        CLEANUP(json) json_t *doc = json_of("%s", folder_get(&k->folder, path));
        const json_t *layers = json_object_get(doc, "layers");
        assert_int_equal(json_array_size(layers), 2);
        assert_string_equal(json_string_value(json_object_get(json_array_get(layers, 0), "mediaType")), rows[i].type);
        assert_string_equal(json_string_value(json_object_get(json_object_get(doc, "config"), "mediaType")),
                            OCI "config.v1+json");
        str_done(&a.text);
    }
}

static void invalid_manifests_are_rejected(void **state)
{
    static const char *const rows[] = {
        "",
        "[]",
        "{}",
        "{\"schemaVersion\": 1, \"fsLayers\": []}",
        "{\"schemaVersion\": 1, \"config\": " CONFIG ", \"layers\": []}",
        "{\"schemaVersion\": 2, \"schemaVersion\": 2, \"config\": " CONFIG ", \"layers\": []}",
        "{\"schemaVersion\": 2, \"config\": " CONFIG "}",
        DOC("{}", ""),
        DOC("7", ""),
        DOC(PART(OCI "config.v1+json", HEX_A, "-1"), ""),
        DOC(PART(OCI "config.v1+json", HEX_A, "1.5"), ""),
        DOC(PART(OCI "config.v1+json", HEX_A "a", "7"), ""),
        DOC(PART(OCI "config.v1+json", "../../../../../../../../etc/shadow", "7"), ""),
        DOC(CONFIG, "{\"digest\": \"sha256:" HEX_B "\", \"size\": 7}"),
        DOC(CONFIG, "{\"mediaType\": \"x\", \"digest\": \"sha512:" HEX_B HEX_B "\", \"size\": 7}"),
    };
    struct image_kit *k = *state;
    char digest[IMAGE_DIGEST_MAX];
    struct asked a = {0};
    for (size_t i = 0; i < ROWS(rows); i++) {
        assert_int_equal(make(k, rows[i], &a, digest), -EINVAL);
        assert_string_equal(digest, "");
        assert_non_null(strstr(k->err.text, "image app:1: "));
    }
    CLEANUP(str) struct str many = {0};
    str_addf(&many, "{\"schemaVersion\": 2, \"config\": %s, \"layers\": [%s", CONFIG, CONFIG);
    for (int i = 0; i < 512; i++)
        str_addf(&many, ",%s", CONFIG);
    str_add(&many, "]}");
    assert_int_equal(make(k, many.at, &a, digest), -EINVAL);
    a.rc = -EBADMSG; /* an error of the callback ends the call */
    assert_int_equal(make(k, DOC(CONFIG, CONFIG), &a, digest), -EBADMSG);
    assert_string_equal(str_text(&a.text), "aaaaaaaa 7, ");
    str_done(&a.text);
}

static void index_lists_only_matching_platforms(void **state)
{
#define ENTRY(more) "{\"manifests\": [{\"digest\": \"sha256:" HEX_A "\"" more "}]}"
    static const struct {
        const char *text;
        bool want;
    } rows[] = {
        {ENTRY(""),                                                                       true },
        {ENTRY(", \"platform\": {\"os\": \"plan9\", \"architecture\": \"amd64\"}"),       false},
        {ENTRY(", \"platform\": {\"os\": \"linux\", \"architecture\": \"of nobody's\"}"), false},
        {"{\"manifests\": [{\"digest\": \"sha256:" HEX_B "\"}]}",                         false},
        {"{\"manifests\": {\"digest\": \"sha256:" HEX_A "\"}}",                           false},
        {"{\"digest\": \"sha256:" HEX_A "\"}",                                            false},
        {"\"sha256:" HEX_A "\"",                                                          false},
        {"",                                                                              false},
    };
#undef ENTRY
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++)
        assert_int_equal(index_lists(rows[i].text, strlen(rows[i].text), "sha256:" HEX_A), rows[i].want);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, image_kit_setup, image_kit_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(each_blob_is_requested_once),
        TEST(invalid_manifests_are_rejected),
        TEST(index_lists_only_matching_platforms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
