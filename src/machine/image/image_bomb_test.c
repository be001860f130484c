/* image_bomb_test.c - images that are small to fetch but fill a disk when unpacked, and images with set-user-id files
 * and devices.
 */
#include "machine/image/image_kit_test.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include "wire/text/document.h"

enum { BOUND_BYTES = 32 << 20, BOUND_FILES = 2000 };
#define DISK_BYTES ((uint64_t)512 << 20)

static int ensure(struct image_kit *k, const char *layout)
{
    char path[256];
    (void)snprintf(path, sizeof path, "%s", folder_at(&k->folder, layout));
    CLEANUP(json) json_t *config = json_of("{\"image\": \"oci:%s:1\"}", path);
    return image_ensure(k->state_dir, config, &k->err);
}

/* ---- bombs ---- */

/* A GNU sparse file: its header declares this many bytes, but no data follows. */
static void tar_add_sparse(struct str *tar, const char *name, uint64_t bytes)
{
    struct str entry = {0};
    tar_add(&entry, &(struct entry){.type = 'S', .name = name, .mode = 0644});
    memcpy(entry.at + 257, "ustar  ", 8);
    (void)snprintf(entry.at + 386, 12, "%011" PRIo64, bytes); /* a single piece at the end, of length 0 */
    (void)snprintf(entry.at + 398, 12, "%011o", 0);
    (void)snprintf(entry.at + 483, 12, "%011" PRIo64, bytes);
    memset(entry.at + 148, ' ', 8);
    unsigned sum = 0;
    for (size_t i = 0; i < 512; i++)
        sum += (unsigned char)entry.at[i];
    (void)snprintf(entry.at + 148, 8, "%06o", sum);
    str_add_bytes(tar, entry.at, entry.len);
    str_done(&entry);
}

static void sparse(struct image_kit *k, struct str *layer)
{
    (void)k;
    tar_add_sparse(layer, "sparse", UINT64_C(64) << 20);
    tar_end(layer);
}

static void one_large_file(struct image_kit *k, struct str *layer)
{
    struct str plain = {0};
    enum { LARGE_BYTES = 64 << 20 };
    CLEANUP(mem) char *zeros = mem_zalloc(LARGE_BYTES);
    tar_add(&plain, &(struct entry){.type = '0', .name = "zeros", .mode = 0644, .data = zeros, .len = LARGE_BYTES});
    tar_end(&plain);
    bytes_write(folder_at(&k->folder, "plain"), plain.at, plain.len);
    str_done(&plain);
    char line[600], path[256];
    (void)snprintf(path, sizeof path, "%s", folder_at(&k->folder, "plain"));
    (void)snprintf(line, sizeof line, "gzip -1c %s >%s.gz", path, path);
    const char *const shell[] = {"sh", "-c", line, NULL};
    const struct tool t = {.argv = shell, .dir = -1, .timeout_ns = INT64_C(60000000000), .what = "gzip"};
    assert_int_equal(tool_run(&t, NULL, &k->err), 0);
    CLEANUP(mem) char *text = NULL;
    size_t len = 0;
    assert_int_equal(tree_read(AT_FDCWD, folder_at(&k->folder, "plain.gz"), 4 << 20, &text, &len), 0);
    str_add_bytes(layer, text, len);
}

static void many_small_files(struct image_kit *k, struct str *layer)
{
    (void)k;
    for (int i = 0; i < 40; i++) {
        static const char data[1 << 20];
        char name[32];
        (void)snprintf(name, sizeof name, "part%d", i);
        tar_add(layer, &(struct entry){.type = '0', .name = name, .mode = 0644, .data = data, .len = sizeof data});
    }
    tar_end(layer);
}

static void empty_files(struct image_kit *k, struct str *layer)
{
    (void)k;
    for (int i = 0; i < 3 * BOUND_FILES; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "f%d", i);
        tar_add(layer, &(struct entry){.type = '0', .name = name, .mode = 0644});
    }
    tar_end(layer);
}

static void deep_folders(struct image_kit *k, struct str *layer)
{
    (void)k;
    for (int i = 0; i < 3 * BOUND_FILES; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "d%d/e/", i);
        tar_add(layer, &(struct entry){.type = '5', .name = name, .mode = 0755});
    }
    tar_end(layer);
}

static uint64_t bytes_used(const char *path)
{
    struct statvfs v;
    assert_int_equal(statvfs(path, &v), 0);
    return (uint64_t)(v.f_blocks - v.f_bfree) * v.f_frsize;
}

/* Each image is rejected with the limits, and nothing is left. Uses its own file system, so that the test fills no
 * other. */
static void oversized_images_are_rejected(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    static const struct {
        const char *label;
        void (*make)(struct image_kit *k, struct str *layer);
        const char *want;
    } rows[] = {
        {"sparse",                              sparse,           "unknown typeflag"      },
        {"one large file",                      one_large_file,   "the limit of this node"},
        {"small files that are large together", many_small_files, "the limit of this node"},
        {"empty files",                         empty_files,      "the limit of this node"},
        {"folders",                             deep_folders,     "the limit of this node"},
    };
    char images[200];
    (void)snprintf(images, sizeof images, "%s", folder_at(&k->folder, "state/images"));
    if (mount("disk", images, "tmpfs", 0, "size=512m") < 0) {
        print_message("skip: no tmpfs can be mounted\n");
        skip();
    }
    state_dir_set_image_bounds(k->state_dir,
                               &(struct image_bounds){.image_bytes = BOUND_BYTES, .image_files = BOUND_FILES});
    for (size_t i = 0; i < ROWS(rows); i++) {
        struct str layer = {0};
        char digest[72], name[32];
        (void)snprintf(name, sizeof name, "bomb%zu", i);
        rows[i].make(k, &layer);
        layout_put(folder_at(&k->folder, name), "1", &layer, 1, "\"Cmd\":[\"x\"]", digest);
        uint64_t before = bytes_used(images);
        int rc = ensure(k, name);
        print_message("%s: %zu KiB of layers: %s\n", rows[i].label, layer.len >> 10, rc < 0 ? k->err.text : "unpacked");
        if (rc >= 0 || !strstr(k->err.text, rows[i].want))
            fail_msg("%s: %d %s", rows[i].label, rc, rc < 0 ? k->err.text : "");
        assert_true(bytes_used(images) <= before + (64 << 10)); /* only empty directories are left */
        str_done(&layer);
    }
    assert_int_equal(umount2(images, MNT_DETACH), 0);
}

/* Images within the limits are accepted. */
static void images_within_limits_are_accepted(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    struct str layer = {0};
    char digest[72];
    for (int i = 0; i < BOUND_FILES / 2; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "f%d", i);
        tar_add(&layer, &(struct entry){.type = '0', .name = name, .mode = 0644, .data = "text"});
    }
    tar_end(&layer);
    state_dir_set_image_bounds(k->state_dir,
                               &(struct image_bounds){.image_bytes = BOUND_BYTES, .image_files = BOUND_FILES});
    layout_put(folder_at(&k->folder, "layout"), "1", &layer, 1, "\"Cmd\":[\"x\"]", digest);
    if (ensure(k, "layout") < 0)
        fail_msg("%s", k->err.text);
    str_done(&layer);
}

/* ---- privileges ------------------------------------------------------------------------------------------------- */

#ifdef __x86_64__
/* A program that exits with 1 if its effective user is root, else with 0. */
/* clang-format off */
static const unsigned char is_root[] = {
    0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 62, 0, 1, 0, 0, 0, 0x78, 0, 0x40, 0, 0, 0, 0, 0,
    64, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0,
    /* load segment: readable, executable, the whole file */
    1, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0, 0, 0, 0,
    0x8e, 0, 0, 0, 0, 0, 0, 0, 0x8e, 0, 0, 0, 0, 0, 0, 0, 0, 0x10, 0, 0, 0, 0, 0, 0,
    /* geteuid; exit(euid == 0) */
    0xb8, 0x6b, 0, 0, 0, 0x0f, 0x05, 0x31, 0xff, 0x85, 0xc0, 0x40, 0x0f, 0x94, 0xc7, 0xb8, 0x3c, 0, 0, 0, 0x0f, 0x05,
};
/* clang-format on */

/* In a real container the user of an image gets neither root's privileges by a set-user-id file nor a device by a
 * device file in a layer. */
static void set_user_id_files_and_devices_have_no_effect(void **state)
{
    struct image_kit *k = *state;
    NEEDS("umoci");
    const char *runtime = oci_runtime_find();
    struct str layers[2] = {{0}};
    if (!runtime || !busybox_layer(&layers[0])) {
        print_message("skip: there is no runtime that works here, or no static busybox\n");
        skip();
    }
    tar_add(
        &layers[1],
        &(struct entry){
            .type = '0', .name = "bin/is-root", .mode = 06755, .data = (const char *)is_root, .len = sizeof is_root});
    tar_add(&layers[1],
            &(struct entry){
                .type = '0', .name = "bin/plain", .mode = 0755, .data = (const char *)is_root, .len = sizeof is_root});
    tar_add(&layers[1], &(struct entry){.type = '3', .name = "null", .mode = 0666});
    tar_end(&layers[1]);
    char digest[72];
    layout_put(folder_at(&k->folder, "layout"), "1", layers, 2,
               "\"Env\":[\"PATH=/bin\"],\"Cmd\":[\"/bin/sh\",\"-c\",\"plain && echo runs; is-root && echo nobody; "
               "(: </null) 2>/tmp/x && echo opened || echo refused\"]",
               digest);
    if (ensure(k, "layout") < 0)
        fail_msg("%s", k->err.text);
    const struct instance_user user = {.uid = 61234, .gid = 61235};
    uint64_t id = (uint64_t)getpid() * 100;
    char path[256], bundle[256], name[32];
    (void)snprintf(path, sizeof path, "%s", folder_at(&k->folder, "layout"));
    CLEANUP(json) json_t *config = json_of("{\"image\": \"oci:%s:1\"}", path);
    assert_int_equal(instance_dir_create(k->state_dir, id, "{}", &k->err), 0);
    if (bundle_make(k->state_dir, id, config, &(struct bundle_options){.user = &user}, &k->err) < 0)
        fail_msg("%s", k->err.text);
    (void)snprintf(bundle, sizeof bundle, "%s/state/instances/%" PRIu64 "/bundle", k->folder.path, id);
    (void)snprintf(name, sizeof name, "berth-%" PRIu64, id);
    const char *argv[] = {runtime, "run", "--bundle", bundle, name, NULL};
    CLEANUP(str) struct str out = {0};
    int rc = tool_run(&(struct tool){.argv = argv, .dir = -1, .timeout_ns = INT64_C(60000000000), .what = "run"}, &out,
                      &k->err);
    assert_int_equal(bundle_end(k->state_dir, id, &k->err), 0);
    assert_int_equal(instance_dir_remove(k->state_dir, id, &k->err), 0);
    assert_int_equal(rc, 0);
    assert_string_equal(str_text(&out), "runs\nnobody\nrefused\n");
    /* On the node only root can access them. */
    struct stat st;
    (void)snprintf(path, sizeof path, "state/images/unpacked/sha256-%s", digest + strlen("sha256:"));
    assert_int_equal(stat(folder_at(&k->folder, path), &st), 0);
    assert_int_equal(st.st_mode & 077, 0);
    str_done(&layers[0]);
    str_done(&layers[1]);
}
#endif

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
        TEST(oversized_images_are_rejected),
        TEST(images_within_limits_are_accepted),
#ifdef __x86_64__
        TEST(set_user_id_files_and_devices_have_no_effect),
#endif
    };
    return cmocka_run_group_tests(tests, surroundings, NULL);
}
