/* image_registry_test.c - images pulled from a real registry on this machine: once, again, by digest, with credentials,
 * and from a broken one; then run.
 */
#include "machine/image/image_registry_kit_test.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/utsname.h>

/* ---- tests ---- */

static void image_name_is_resolved_once(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    NEEDS("umoci");
    CLEANUP(registry) struct registry r = {0};
    registry_start(k, &r, false);
    push(k, &r, "one", NULL);
    if (ensure(k, &r, ":1", false) < 0)
        fail_msg("%s", k->err.text);
    assert_version(k, &r, ":1", "one");
    push(k, &r, "two", NULL);
    assert_int_equal(ensure(k, &r, ":1", false), 0);
    assert_version(k, &r, ":1", "one");
    if (ensure(k, &r, ":1", true) < 0)
        fail_msg("%s", k->err.text);
    assert_version(k, &r, ":1", "two");
    /* A digest that is already local is not pulled; without a registry, local images suffice. */
    CLEANUP(json) json_t *config = config_of(&r, ":1", false);
    CLEANUP(close_fd) int root = -1;
    char digest[72], tail[80];
    assert_int_equal(image_open(k->state_dir, config, &root, NULL, digest, &k->err), 0);
    registry_cleanup(&r);
    (void)snprintf(tail, sizeof tail, "@%s", digest);
    assert_int_equal(ensure(k, &r, tail, false), 0);
    assert_version(k, &r, tail, "two");
    assert_int_equal(ensure(k, &r, ":1", false), 0);
    /* With `always` a broken registry is an error; the local image stays. */
    assert_true(ensure(k, &r, ":1", true) < 0);
    assert_non_null(strstr(k->err.text, "cannot pull image 127.0.0.1"));
    assert_version(k, &r, ":1", "two");
}

/* The registry stores blobs in files called "data"; small ones are documents, not layers. */
static int layer_spoil(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)flag;
    if (strcmp(path + at->base, "data") != 0 || st->st_size < 100000)
        return 0;
    return truncate(path, st->st_size - 1);
}

static void broken_registry_is_reported(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    NEEDS("umoci");
    CLEANUP(registry) struct registry r = {0};
    registry_start(k, &r, false);
    assert_true(ensure(k, &r, ":1", false) < 0); /* no such image */
    print_message("%s\n", k->err.text);
    assert_nothing_here(k);
    push(k, &r, "one", NULL);
    assert_true(ensure(k, &r, ":2", false) < 0); /* no such tag */
    assert_nothing_here(k);
    /* Layers that do not match their digests. */
    assert_int_equal(nftw(folder_at(&k->folder, "registry"), layer_spoil, 16, FTW_PHYS), 0);
    assert_true(ensure(k, &r, ":1", false) < 0);
    print_message("%s\n", k->err.text);
    assert_nothing_here(k);
}

static int secret_find(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    if (flag != FTW_F || strcmp(path + at->base, "registries.json") == 0)
        return 0;
    CLEANUP(mem) char *text = NULL;
    size_t len = 0;
    assert_int_equal(tree_read(AT_FDCWD, path, (size_t)16 << 20, &text, &len), 0);
    return memmem(text, len, "YW5uOnNlY3JldA==", 16) || memmem(text, len, "ann:secret", 10);
}

static void credentials_are_used(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    NEEDS("umoci");
    CLEANUP(registry) struct registry r = {0};
    registry_start(k, &r, true);
    push(k, &r, "one", "ann:secret");
    assert_true(ensure(k, &r, ":1", false) < 0);
    print_message("%s\n", k->err.text);
    assert_nothing_here(k);
    char text[256];
    (void)snprintf(text, sizeof text, "{\"auths\": {\"127.0.0.1:%u\": {\"auth\": \"YW5uOnNlY3JldA==\"}}}", r.port);
    folder_put(&k->folder, "state/registries.json", text);
    assert_int_equal(chmod(folder_at(&k->folder, "state/registries.json"), 0600), 0);
    if (ensure(k, &r, ":1", false) < 0)
        fail_msg("%s", k->err.text);
    assert_version(k, &r, ":1", "one");
    assert_int_equal(nftw(folder_at(&k->folder, "state"), secret_find, 16, FTW_PHYS), 0); /* and not stored anywhere */
}

struct puller {
    struct image_kit *k;
    const struct registry *r;
    bool always;
};

static void *pull_at_once(void *arg)
{
    const struct puller *p = arg;
    struct berth_err err;
    CLEANUP(json) json_t *config = config_of(p->r, ":1", p->always);
    return image_ensure(p->k->state_dir, config, &err) < 0 ? arg : NULL;
}

/* A script that replaces skopeo counts the calls and runs the real one. */
static void concurrent_pulls_are_one(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    NEEDS("umoci");
    CLEANUP(registry) struct registry r = {0};
    char path[PATH_MAX], text[PATH_MAX + 256];
    assert_int_equal(tool_find("skopeo", path), 0);
    registry_start(k, &r, false);
    push(k, &r, "one", NULL);
    /* The sleep of a second lets all threads send their requests. */
    (void)snprintf(
        text, sizeof text,
        "#!/bin/sh\nfor word; do case $word in inspect|copy) echo $word >>%s/count; sleep 1;; esac; done\nexec %s \"$@\"\n",
        k->folder.path, path);
    folder_put(&k->folder, "bin/skopeo", text);
    folder_put(&k->folder, "count", "");
    assert_int_equal(chmod(folder_at(&k->folder, "count"), 0666), 0); /* the fetch user is another user */
    assert_int_equal(chmod(folder_at(&k->folder, "bin/skopeo"), 0755), 0);
    CLEANUP(mem) char *before = mem_strdup(getenv("PATH"));
    assert_int_equal(setenv("PATH", folder_at(&k->folder, "bin"), 1), 0);
    for (int always = 0; always < 2; always++) {
        struct puller p = {.k = k, .r = &r, .always = always};
        pthread_t threads[3];
        for (size_t i = 0; i < ROWS(threads); i++)
            assert_int_equal(pthread_create(&threads[i], NULL, pull_at_once, &p), 0);
        for (size_t i = 0; i < ROWS(threads); i++) {
            void *failed;
            assert_int_equal(pthread_join(threads[i], &failed), 0);
            assert_null(failed);
        }
    }
    assert_int_equal(setenv("PATH", before, 1), 0);
    /* The first three threads share one inspect and one copy. With `always`, the first one's inspect serves the
     * others. */
    assert_string_equal(folder_get(&k->folder, "count"), "inspect\ncopy\ninspect\n");
}

/* Docker's manifest format, which umoci does not support. */
static void docker_schema_2_is_supported(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    NEEDS("umoci");
    CLEANUP(registry) struct registry r = {0};
    registry_start(k, &r, false);
    push_as(k, &r, "old", "2", "v2s2", NULL);
    if (ensure(k, &r, ":2", false) < 0)
        fail_msg("%s", k->err.text);
    assert_version(k, &r, ":2", "old");
    CLEANUP(json) json_t *config = config_of(&r, ":2", false), *image = NULL;
    CLEANUP(close_fd) int root = -1;
    char digest[72], tail[80];
    assert_int_equal(image_open(k->state_dir, config, &root, &image, digest, &k->err), 0);
    assert_string_equal(
        json_string_value(json_array_get(json_object_get(json_object_get(image, "config"), "Entrypoint"), 0)),
        "/bin/cat");
    digest_tail(k, &r, "2", tail);
    assert_string_equal(digest, tail + 1);
}

/* An index with images for two architectures, pulled by tag and by digest. */
static void matching_platform_is_pulled(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    NEEDS("umoci");
    NEEDS("curl");
    CLEANUP(registry) struct registry r = {0};
    CLEANUP(str) struct str doc = {0};
    char ours[80], others[80], index[80], url[128], file[128];
    struct utsname u;
    assert_int_equal(uname(&u), 0);
    registry_start(k, &r, false);
    push_as(k, &r, "ours", "ours", NULL, NULL);
    push_as(k, &r, "others", "others", NULL, NULL);
    digest_tail(k, &r, "ours", ours);
    digest_tail(k, &r, "others", others);
    const char *arch = strcmp(u.machine, "x86_64") == 0 ? "amd64" : "arm64";
#define MANIFEST "\"mediaType\": \"application/vnd.oci.image.manifest.v1+json\", \"size\": 500"
    str_addf(&doc,
             "{\"schemaVersion\": 2, \"mediaType\": \"application/vnd.oci.image.index.v1+json\", \"manifests\": ["
             "{" MANIFEST ", \"digest\": \"%s\", \"platform\": {\"os\": \"linux\", \"architecture\": \"mips64le\"}},"
             "{" MANIFEST ", \"digest\": \"%s\", \"platform\": {\"os\": \"linux\", \"architecture\": \"%s\"}}]}",
             others + 1, ours + 1, arch);
#undef MANIFEST
    folder_put(&k->folder, "index", doc.at);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%u/v2/team/app/manifests/multi", r.port);
    (void)snprintf(file, sizeof file, "@%s", folder_at(&k->folder, "index"));
    const char *argv[] = {
        "curl",          "-sSf", "-X", "PUT", "-H", "Content-Type: application/vnd.oci.image.index.v1+json",
        "--data-binary", file,   url,  NULL};
    if (tool_run(&(struct tool){.argv = argv, .dir = -1, .timeout_ns = INT64_C(60000000000), .what = "put"}, NULL,
                 &k->err) < 0)
        fail_msg("%s", k->err.text);
    digest_tail(k, &r, "multi", index);
    const char *const tails[] = {":multi", index};
    for (size_t i = 0; i < ROWS(tails); i++) {
        if (ensure(k, &r, tails[i], false) < 0)
            fail_msg("%s", k->err.text);
        assert_version(k, &r, tails[i], "ours");
        images_trim(k->state_dir, 0);
    }
}

/* From the registry to the output of the container. */
static void pulled_image_runs(void **state)
{
    struct image_kit *k = *state;
    NEEDS("skopeo");
    NEEDS("umoci");
    const char *runtime = oci_runtime_find();
    if (!runtime) {
        print_message("skip: there is neither crun nor runc that works here\n");
        skip();
    }
    CLEANUP(registry) struct registry r = {0};
    registry_start(k, &r, false);
    push(k, &r, "seven", NULL);
    if (ensure(k, &r, ":1", false) < 0)
        fail_msg("%s", k->err.text);
    const struct instance_user user = {.uid = 61234, .gid = 61235};
    uint64_t id = (uint64_t)getpid() * 100;
    CLEANUP(json) json_t *config = config_of(&r, ":1", false);
    assert_int_equal(instance_dir_create(k->state_dir, id, "{}", &k->err), 0);
    if (bundle_make(k->state_dir, id, config, &(struct bundle_options){.user = &user}, &k->err) < 0)
        fail_msg("%s", k->err.text);
    images_trim(k->state_dir, 0); /* in use, so it stays */
    char bundle[256], name[32];
    (void)snprintf(bundle, sizeof bundle, "%s/state/instances/%" PRIu64 "/bundle", k->folder.path, id);
    (void)snprintf(name, sizeof name, "berth-%" PRIu64, id);
    const char *argv[] = {runtime, "run", "--bundle", bundle, name, NULL};
    CLEANUP(str) struct str out = {0};
    if (tool_run(&(struct tool){.argv = argv, .dir = -1, .timeout_ns = INT64_C(60000000000), .what = "run"}, &out,
                 &k->err) < 0)
        fail_msg("%s", k->err.text);
    assert_string_equal(str_text(&out), "seven");
    assert_int_equal(bundle_end(k->state_dir, id, &k->err), 0);
    assert_int_equal(instance_dir_remove(k->state_dir, id, &k->err), 0);
    images_trim(k->state_dir, 0);
    CLEANUP(close_fd) int root_fd = -1;
    char digest[72];
    assert_int_equal(image_open(k->state_dir, config, &root_fd, NULL, digest, &k->err), -ENOENT);
    assert_int_equal(mounts_below_count(k->folder.path), 0);
}

static int surroundings(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return 0;
    return unshare(CLONE_NEWNS) < 0 ? -1 : mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, image_kit_setup, image_kit_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(docker_schema_2_is_supported),
        TEST(matching_platform_is_pulled),
        TEST(image_name_is_resolved_once),
        TEST(broken_registry_is_reported),
        TEST(credentials_are_used),
        TEST(concurrent_pulls_are_one),
        TEST(pulled_image_runs),
    };
    return cmocka_run_group_tests(tests, surroundings, NULL);
}
