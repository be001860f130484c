/* image_test.c - images from layouts: content, hostile and broken layouts, removal. */
#include "machine/image/image_kit_test.h"

#include <dirent.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/time.h>

#include "machine/image/image_layout.h"
#include "wire/text/document.h"

static const char *root_of(struct image_kit *k, const char *digest, const char *file)
{
    char name[512];
    (void)snprintf(name, sizeof name, "state/images/unpacked/sha256-%s/rootfs/%s", digest + 7, file);
    return folder_at(&k->folder, name);
}

static int ensure(struct image_kit *k, const char *layout, const char *tag)
{
    CLEANUP(json)
    json_t *config = json_of("{\"image\": \"oci:%s%s%s\"}", folder_at(&k->folder, layout), *tag ? ":" : "", tag);
    memset(&k->err, 0, sizeof k->err);
    return image_ensure(k->state_dir, config, &k->err);
}

/* Checks the number of unpacked images, and that no temporary directory is left. */
static void assert_images(struct image_kit *k, size_t want)
{
    CLEANUP(close_fd) int images = open(folder_at(&k->folder, "state/images"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    size_t unpacked = 0;
    for (int folder = 0; folder < 2; folder++) {
        int fd = openat(images, folder ? "unpacked" : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *dir = fd < 0 ? NULL : fdopendir(fd);
        const struct dirent *e;
        while (dir && (e = readdir(dir))) {
            assert_true(strncmp(e->d_name, "tmp-", 4) != 0);
            unpacked += strncmp(e->d_name, "sha256-", 7) == 0;
        }
        if (dir)
            closedir(dir);
    }
    assert_int_equal(unpacked, want);
}

/* ---- content ---------------------------------------------------------------------------------------------------- */

static void layers_are_applied_in_order(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    struct str layers[2] = {{0}, {0}};
    char digest[72];
    static const struct entry first[] = {
        {.type = '5',         .name = "etc/", .mode = 0755 },
        {           .type = '0',    .name = "etc/a",   .mode = 0644, .data = "old"},
        {           .type = '0', .name = "etc/gone",   .mode = 0644,   .data = "x"},
        {           .type = '5',    .name = "full/",   .mode = 0755             },
        { .type = '0',       .name = "full/one",          .mode = 0644,              .data = "x"},
        { .type = '0',      .name = "suid",        .mode = 04755,              .data = "#!"},
    };
    static const struct entry second[] = {
        {.type = '0',                  .name = "etc/a",        .mode = 0600, .data = "new"},
        {.type = '0',                  .name = "etc/.wh.gone", .mode = 0644},
        {.type = '0', .name = "full/.wh..wh..opq",           .mode = 0644            },
        {.type = '0',                .name = "full/two",                           .mode = 0644,             .data = "y"             },
    };
    for (size_t i = 0; i < ROWS(first); i++)
        tar_add(&layers[0], &first[i]);
    for (size_t i = 0; i < ROWS(second); i++)
        tar_add(&layers[1], &second[i]);
    tar_end(&layers[0]);
    tar_end(&layers[1]);
    layout_put(folder_at(&k->folder, "layout"), "1", layers, 2, "\"Cmd\":[\"/suid\"]", digest);
    if (ensure(k, "layout", "1") < 0)
        fail_msg("%s", k->err.text);

    CLEANUP(mem) char *text = NULL;
    assert_int_equal(tree_read(AT_FDCWD, root_of(k, digest, "etc/a"), 100, &text, NULL), 0);
    assert_string_equal(text, "new");
    assert_int_equal(access(root_of(k, digest, "etc/gone"), F_OK), -1);
    assert_int_equal(access(root_of(k, digest, "full/one"), F_OK), -1);
    assert_int_equal(access(root_of(k, digest, "full/two"), F_OK), 0);
    struct stat st;
    assert_int_equal(stat(root_of(k, digest, "suid"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 04755);
    assert_int_equal(stat(folder_at(&k->folder, "state/images/unpacked"), &st), 0);
    assert_int_equal(st.st_mode & 077, 0); /* set-user-id files in it are not accessible to others */
    assert_images(k, 1);

    /* Without a tag, an unpacked image is found although the layout is broken now. */
    char path[512];
    (void)snprintf(path, sizeof path, "%s/blobs/sha256/%s", folder_at(&k->folder, "layout"), digest + 7);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(ensure(k, "layout", ""), 0);
    str_done(&layers[0]);
    str_done(&layers[1]);
}

/* ---- hostile and broken ---- */

/* Each layer tries to leave its root, or to bring in a forbidden file. The file "victim" is outside. */
static void hostile_layers_cannot_leave_root(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    char victim[128], outside[160], up[200];
    (void)snprintf(victim, sizeof victim, "%s/victim", k->folder.path);
    (void)snprintf(outside, sizeof outside, "%s/evil", k->folder.path);
    (void)snprintf(up, sizeof up, "../../../../../../../..%s/evil", k->folder.path);
    const struct {
        const char *label;
        struct entry entries[3];
    } rows[] = {
        {"dots",                        {{.type = '0', .name = up, .mode = 0666, .data = "evil"}}     },
        {"absolute",                    {{.type = '0', .name = outside, .mode = 0666, .data = "evil"}}},
        {"link to a folder outside",
         {{.type = '2', .name = "out", .link = k->folder.path, .mode = 0777},
          {.type = '0', .name = "out/evil", .mode = 0666, .data = "evil"}}                            },
        {"relative link outside",
         {{.type = '2', .name = "out", .link = "../../../../../../..", .mode = 0777},
          {.type = '0', .name = "out/evil", .mode = 0666, .data = "evil"}}                            },
        {"link to a file outside",
         {{.type = '2', .name = "f", .link = victim, .mode = 0777},
          {.type = '0', .name = "f", .mode = 0666, .data = "evil"}}                                   },
        {"hard link to a file outside",
         {{.type = '1', .name = "f", .link = victim, .mode = 0777},
          {.type = '0', .name = "f", .mode = 0666, .data = "evil"}}                                   },
        {"whiteout outside",
         {{.type = '2', .name = "out", .link = k->folder.path, .mode = 0777},
          {.type = '0', .name = "out/.wh.victim", .mode = 0644}}                                      },
        {"opaque outside",
         {{.type = '2', .name = "out", .link = k->folder.path, .mode = 0777},
          {.type = '0', .name = "out/.wh..wh..opq", .mode = 0644}}                                    },
        {"whiteout of dots",            {{.type = '0', .name = ".wh...", .mode = 0644}}               },
        {"whiteout of dot",             {{.type = '0', .name = ".wh..", .mode = 0644}}                },
        {"mode of what is outside",
         {{.type = '2', .name = "out", .link = k->folder.path, .mode = 0777},
          {.type = '5', .name = "out/", .mode = 0777}}                                                },
    };
    folder_put(&k->folder, "victim", "whole");
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct str layer = {0};
        char digest[72], name[32];
        struct stat before, after;
        for (size_t j = 0; j < 3 && rows[i].entries[j].name; j++)
            tar_add(&layer, &rows[i].entries[j]);
        tar_end(&layer);
        (void)snprintf(name, sizeof name, "hostile%zu", i);
        layout_put(folder_at(&k->folder, name), "1", &layer, 1, "\"Cmd\":[\"x\"]", digest);
        assert_int_equal(stat(k->folder.path, &before), 0);
        int rc = ensure(k, name, "1"); /* rejecting the image is as good as staying inside */
        print_message("%s: %s\n", rows[i].label, rc < 0 ? k->err.text : "unpacked inside");
        assert_string_equal(folder_get(&k->folder, "victim"), "whole");
        assert_int_equal(access(outside, F_OK), -1);
        assert_int_equal(access("/evil", F_OK), -1);
        assert_int_equal(stat(k->folder.path, &after), 0);
        assert_int_equal(before.st_mode, after.st_mode);
        assert_int_equal(stat(victim, &after), 0);
        assert_int_equal(after.st_nlink, 1);
        str_done(&layer);
    }
}

/* Errors are reported, and no usable image is left. */
static void broken_layouts_are_rejected(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    static const struct {
        const char *label, *file, *text, *want;
    } rows[] = {
        {"no index",                                    "index.json", NULL,                  "cannot read index.json"},
        {"an index that is a pipe",                     "index.json", "|",                   "cannot read index.json"},
        {"an index that is no JSON",                    "index.json", "{",                   "not JSON"              },
        {"nothing in it",                               "index.json", "{\"manifests\": []}", "no image with this tag"},
        {"a digest that is a path",                     "index.json",
         "{\"manifests\": [{\"digest\": \"sha256:../../../../etc/passwd\", \"annotations\": "
         "{\"org.opencontainers.image.ref.name\": \"1\"}}]}",                                "no sha256 digest"      },
        {"an index of itself",                          "index.json",
         "{\"manifests\": [{\"mediaType\": \"application/vnd.oci.image.index.v1+json\", \"digest\": \"x\", \"annotations\": "
         "{\"org.opencontainers.image.ref.name\": \"1\"}}]}",                                "invalid index"         },
        {"another machine's",                           "index.json",
         "{\"manifests\": [{\"platform\": {\"os\": \"linux\", \"architecture\": \"vax\"}, \"digest\": \"x\", \"annotations\": "
         "{\"org.opencontainers.image.ref.name\": \"1\"}}]}",                                "no image with this tag"},
        {"other bytes than the manifest's digest says", "MANIFEST",   NULL,                  "cannot unpack"         },
        {"other bytes than the layer's digest says",    "LAYER",      NULL,                  "cannot unpack"         },
    };
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct str layer = {0};
        char digest[72], layer_digest[72], file[160];
        tar_add(&layer, &(struct entry){.type = '0', .name = "a", .mode = 0644, .data = "a"});
        tar_end(&layer);
        layout_put(folder_at(&k->folder, "layout"), "1", &layer, 1, "\"Cmd\":[\"x\"]", digest);
        sha256_of(layer.at, layer.len, layer_digest);
        (void)snprintf(file, sizeof file, "layout/%s", rows[i].file);
        if (strcmp(rows[i].file, "MANIFEST") == 0 || strcmp(rows[i].file, "LAYER") == 0) {
            bool manifest = rows[i].file[0] == 'M';
            (void)snprintf(file, sizeof file, "layout/blobs/sha256/%s", (manifest ? digest : layer_digest) + 7);
            CLEANUP(mem) char *text = NULL;
            size_t len = 0;
            assert_int_equal(tree_read(AT_FDCWD, folder_at(&k->folder, file), 1 << 20, &text, &len), 0);
            if (manifest) /* an additional blank: the same meaning, other bytes */
                text[len] = ' ';
            else
                text[512] ^= 1;
            bytes_write(folder_at(&k->folder, file), text, len + manifest);
        } else if (rows[i].text && *rows[i].text != '|') {
            folder_put(&k->folder, file, rows[i].text);
        } else {
            assert_int_equal(unlink(folder_at(&k->folder, file)), 0);
            if (rows[i].text)
                assert_int_equal(mkfifo(folder_at(&k->folder, file), 0644), 0);
        }
        int rc = ensure(k, "layout", "1");
        if (rc >= 0 || !strstr(k->err.text, rows[i].want))
            fail_msg("%s: %d %s", rows[i].label, rc, k->err.text);
        assert_images(k, 0);
        CLEANUP(close_fd) int top = open(k->folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_int_equal(tree_remove(top, "layout"), 0);
        str_done(&layer);
    }
}

static void full_disk_is_reported(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    CLEANUP(mem) char *large = mem_zalloc(8 << 20);
    struct str layer = {0};
    char digest[72];
    memset(large, 'x', 8 << 20);
    tar_add(&layer, &(struct entry){.type = '0', .name = "large", .mode = 0644, .data = large, .len = 8 << 20});
    tar_end(&layer);
    layout_put(folder_at(&k->folder, "layout"), "1", &layer, 1, "\"Cmd\":[\"x\"]", digest);
    str_done(&layer);
    if (mount("small", folder_at(&k->folder, "state/images"), "tmpfs", 0, "size=4m") < 0) {
        print_message("skip: no tmpfs can be mounted\n");
        skip();
    }
    assert_int_equal(ensure(k, "layout", "1"), -ENOSPC);
    assert_non_null(strstr(k->err.text, "the disk is full"));
    assert_images(k, 0);
    assert_int_equal(umount2(folder_at(&k->folder, "state/images"), MNT_DETACH), 0);
}

/* ---- removal ---------------------------------------------------------------------------------------------------- */

static void make_image(struct image_kit *k, const char *name, char digest[static 72], int age_s)
{
    struct str layer = {0};
    char path[256];
    tar_add(&layer, &(struct entry){.type = '0', .name = "name", .mode = 0644, .data = name});
    tar_end(&layer);
    layout_put(folder_at(&k->folder, name), "1", &layer, 1, "\"Cmd\":[\"x\"]", digest);
    str_done(&layer);
    if (ensure(k, name, "1") < 0)
        fail_msg("%s", k->err.text);
    (void)snprintf(path, sizeof path, "state/images/unpacked/sha256-%s/used", digest + 7);
    struct timeval now;
    gettimeofday(&now, NULL);
    struct timeval times[2] = {{.tv_sec = now.tv_sec - age_s}, {.tv_sec = now.tv_sec - age_s}};
    assert_int_equal(utimes(folder_at(&k->folder, path), times), 0);
}

static void unused_images_are_removed_oldest_first(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    char oldest[72], used[72], locked[72], newest[72];
    make_image(k, "used", used, 5000);
    make_image(k, "locked", locked, 4000);
    make_image(k, "oldest", oldest, 3000);
    make_image(k, "newest", newest, 1000);
    assert_int_equal(instance_dir_create(k->state_dir, 7, "{}", &k->err), 0);
    folder_put(&k->folder, "state/instances/7/bundle/image", used);
    CLEANUP(close_fd) int hold = open(root_of(k, locked, "."), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(hold, LOCK_SH), 0);
    folder_put(&k->folder, "state/images/tmp-0-3/left", "by a crash");
    folder_make(&k->folder, "state/images/refs");
    folder_put(&k->folder, "state/images/refs/app:1", oldest);
    folder_put(&k->folder, "state/images/refs/app:2", newest);

    images_trim(k->state_dir, UINT64_MAX);
    assert_images(k, 4); /* within the bound; leftovers of a crash are removed */
    images_trim(k->state_dir, 3 * 4096);
    assert_int_equal(access(root_of(k, oldest, "."), F_OK), -1);
    assert_images(k, 3);
    assert_string_equal(folder_get(&k->folder, "state/images/refs/app:1"), "(none)");
    assert_string_equal(folder_get(&k->folder, "state/images/refs/app:2"), newest);
    images_trim(k->state_dir, 0);
    assert_int_equal(access(root_of(k, newest, "."), F_OK), -1);
    assert_int_equal(access(root_of(k, used, "."), F_OK), 0);
    assert_int_equal(access(root_of(k, locked, "."), F_OK), 0);
    assert_images(k, 2);
}

static void *ensure_at_once(void *arg)
{
    struct image_kit *k = arg;
    struct berth_err err;
    CLEANUP(json) json_t *config = json_of("{\"image\": \"oci:%s/layout:1\"}", k->folder.path);
    return image_ensure(k->state_dir, config, &err) < 0 ? k : NULL;
}

static void concurrent_unpacks_are_one(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    struct str layer = {0};
    char digest[72];
    pthread_t threads[4];
    tar_add(&layer, &(struct entry){.type = '0', .name = "a", .mode = 0644, .data = "a"});
    tar_end(&layer);
    layout_put(folder_at(&k->folder, "layout"), "1", &layer, 1, "\"Cmd\":[\"x\"]", digest);
    str_done(&layer);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, ensure_at_once, k), 0);
    for (size_t i = 0; i < 4; i++) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_images(k, 1);
}

/* A script that replaces curl prints its arguments: they make curl give up a stalled download before the timeout. */
static void stalled_download_is_aborted(void **state)
{
    struct image_kit *k = *state;
    const char *path = getenv("PATH");
    CLEANUP(str) struct str script = {0}, before = {0}, after = {0};
    str_addf(&script, "#!/bin/sh\necho \"$*\" >'%s'\necho too slow >&2\nexit 28\n", folder_at(&k->folder, "words"));
    folder_put(&k->folder, "bin/curl", script.at);
    folder_put(&k->folder, "words", "");
    assert_int_equal(chmod(folder_at(&k->folder, "words"), 0666), 0); /* the fetch user is another user */
    assert_int_equal(chmod(folder_at(&k->folder, "bin/curl"), 0755), 0);
    str_add(&before, path ? path : "");
    str_addf(&after, "%s:%s", folder_at(&k->folder, "bin"), before.at);
    assert_int_equal(setenv("PATH", after.at, 1), 0);
    CLEANUP(json)
    json_t *config = json_of("{\"runtime\": \"vm\", \"image\": \"http://127.0.0.1:1/a\", \"vm\": {\"sha256\": "
                             "\"0123456789012345678901234567890123456789012345678901234567890123\"}}");
    int rc = image_ensure(k->state_dir, config, &k->err);
    assert_int_equal(setenv("PATH", before.at, 1), 0);
    assert_true(rc < 0);
    assert_non_null(strstr(k->err.text, "too slow"));
    assert_non_null(strstr(folder_get(&k->folder, "words"), "--speed-limit 4096 --speed-time 60"));
    assert_images(k, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(layers_are_applied_in_order, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(hostile_layers_cannot_leave_root, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(broken_layouts_are_rejected, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(full_disk_is_reported, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(unused_images_are_removed_oldest_first, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(concurrent_unpacks_are_one, image_kit_setup, image_kit_teardown),
        cmocka_unit_test_setup_teardown(stalled_download_is_aborted, image_kit_setup, image_kit_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
