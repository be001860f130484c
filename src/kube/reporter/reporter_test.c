/* reporter_test.c - GPUs of fake machines, and the resulting labels. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kube/reporter/reporter.h"

#define ROWS(rows) (sizeof(rows) / sizeof *(rows))
#define SMI "usr/bin/nvidia-smi"
#define PROC(i) "proc/driver/nvidia/gpus/0000:0" i ":00.0/information"
#define INFORMATION "Model: \t\t NVIDIA H200\nIRQ:   \t\t 41\nBus Type: \t PCIe\n"
#define DRM(i, file) "sys/class/drm/card" i "/device/" file

static void put(const char *root, const char *path, const char *text)
{
    char whole[256];
    (void)snprintf(whole, sizeof whole, "%s/%s", root, path);
    for (char *at = whole + strlen(root) + 1; (at = strchr(at, '/')); *at++ = '/') {
        *at = 0;
        assert_true(mkdir(whole, 0700) == 0 || errno == EEXIST);
    }
    FILE *f = fopen(whole, "w");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(whole, 0700), 0);
}

static int unlink_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
    (void)st, (void)flag, (void)at;
    return remove(path);
}

#define SCRIPT "#!/bin/sh\n"
/* The fake nvidia-smi accepts exactly these arguments. */
#define TWO                                                                                                            \
    SCRIPT "[ \"$1 $2\" = '--query-gpu=name,memory.total --format=csv,noheader,nounits' ] || exit 9\n"                 \
           "echo 'NVIDIA H200, 143771'; echo 'NVIDIA H200, 143771'\n"
#define MIXED SCRIPT "echo 'NVIDIA A100-SXM4-80GB, 81559'; echo 'NVIDIA A100-SXM4-40GB, 40536'\n"
#define BROKEN SCRIPT "echo 'NVIDIA X, 1'; exit 1\n"
#define EMPTY SCRIPT "echo 'No devices were found'\n"
#define SHARED SCRIPT "echo 'NVIDIA GB10, [N/A]'\n"
#define LONG SCRIPT "echo '  (NVIDIA) 0123456789 0123456789 0123456789 0123456789 0123456789 _._, 5'\n"
#define LONG_LABEL "NVIDIA-0123456789-0123456789-0123456789-0123456789-0123456789"

struct machine {
    const char *smi;         /* script used as nvidia-smi; NULL: none */
    unsigned cards;          /* shown by NVIDIA's driver */
    const char *vram, *name; /* of an AMD card; NULL: missing */
    const char *labels;      /* count, memory, model; "-": removed */
};

static const struct machine machines[] = {
    {NULL,   0, NULL,             NULL,                          "- - -"                           },
    {TWO,    1, NULL,             NULL,                          "2 143771 NVIDIA-H200"            },
    {MIXED,  0, NULL,             NULL,                          "2 40536 -"                       },
    {BROKEN, 2, NULL,             NULL,                          "2 - NVIDIA-H200"                 },
    {EMPTY,  0, NULL,             NULL,                          "- - -"                           },
    {NULL,   1, NULL,             NULL,                          "1 - NVIDIA-H200"                 },
    {SHARED, 0, NULL,             NULL,                          "1 - NVIDIA-GB10"                 },
    {NULL,   0, "206141652992\n", "AMD Instinct MI300X (OAM)\n", "1 196592 AMD-Instinct-MI300X-OAM"},
    {NULL,   0, "1073741824\n",   NULL,                          "1 1024 -"                        },
    {LONG,   0, NULL,             NULL,                          "1 5 " LONG_LABEL                 },
};

static void machine_make(const char *root, const struct machine *m)
{
    static const char *const cards[] = {PROC("1"), PROC("2")};
    if (m->smi)
        put(root, SMI, m->smi);
    for (unsigned i = 0; i < m->cards && i < ROWS(cards); i++)
        put(root, cards[i], INFORMATION);
    if (m->vram) {
        put(root, DRM("0", "mem_info_vram_total"), m->vram);
        put(root, DRM("0-DP-1", "mem_info_vram_total"), "1\n"); /* a connector */
        put(root, DRM("1", "vendor"), "0x1a03\n");
    }
    if (m->name)
        put(root, DRM("0", "product_name"), m->name);
}

static const char *label(const json_t *labels, const char *key)
{
    const json_t *value = json_object_get(labels, key);
    assert_true(json_is_string(value) || json_is_null(value));
    return json_is_null(value) ? "-" : json_string_value(value);
}

static void machine_labels_are_reported(void **state)
{
    (void)state;
    for (size_t i = 0; i < ROWS(machines); i++) {
        char root[] = "/tmp/berth-test-XXXXXX";
        assert_non_null(mkdtemp(root));
        machine_make(root, &machines[i]);
        const struct gpu_report report = gpu_report_probe(root);
        json_t *patch = gpu_report_patch(&report);
        const json_t *set = json_object_get(json_object_get(patch, "metadata"), "labels");
        const char *const got[] = {label(set, "berth.dev/gpu.count"), label(set, "berth.dev/gpu.memory"),
                                   label(set, "berth.dev/gpu.model")};
        char text[256];
        (void)snprintf(text, sizeof text, "%s %s %s", got[0], got[1], got[2]);
        if (strcmp(text, machines[i].labels) != 0)
            fail_msg("%zu: '%s', not '%s'", i, text, machines[i].labels);
        json_decref(patch);
        (void)nftw(root, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
    }
}

static void command_line_errors(void **state)
{
    (void)state;
    char *const nobody[] = {"report-node", "--once"}, *const path[] = {"report-node", "--node", "a/b"},
                *const odd[] = {"report-node", "--colour", "red"};
    assert_int_equal(kube_report_node(2, nobody, stdout), 2);
    assert_int_equal(kube_report_node(3, path, stdout), 2);
    assert_int_equal(kube_report_node(3, odd, stdout), 2);
    char *const nowhere[] = {"report-node", "--node", "a", "--kubeconfig", "/nonexistent"};
    assert_int_equal(kube_report_node(5, nowhere, stdout), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(machine_labels_are_reported),
                                       cmocka_unit_test(command_line_errors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
