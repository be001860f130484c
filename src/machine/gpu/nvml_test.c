/* nvml_test.c - reading GPUs from the fake library: models, MIG devices, links, processes, and failures. */
#include "machine/gpu/nvml.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"
#include "machine/launch/folder_test.h"

#define MIB (INT64_C(1) << 20)
#define H200 "gpu uuid=GPU-a model=NVIDIA_H200 minor=0 memory=143771 used=1000 busy=40 nvlinks=18\n"
#define H200_B "gpu uuid=GPU-b model=NVIDIA_H200 minor=1 memory=143771 nvlinks=18\n"
#define T4 "gpu uuid=GPU-t model=Tesla_T4 minor=2 memory=15360\n"

struct world {
    struct folder folder;
    struct nvml *nvml;
};

static void world_put(struct world *w, const char *text)
{
    folder_put(&w->folder, "world", text);
    assert_int_equal(setenv("BERTH_NVML_WORLD", folder_at(&w->folder, "world"), 1), 0);
}

static int setup(void **state)
{
    struct world *w = mem_zalloc(sizeof *w);
    CLEANUP(str) struct str path = {0};
    const char *build = getenv("BERTH_BUILD");
    w->folder = folder_new();
    str_addf(&path, "%s/tests/nvml_fake.so", build ? build : ".");
    w->nvml = nvml_new(path.at);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    nvml_free(w->nvml);
    folder_cleanup(&w->folder);
    mem_free(w);
    return 0;
}

static void gpu_properties_are_read(void **state)
{
    struct world *w = *state;
    CLEANUP(nvml_snapshot) struct nvml_snapshot look;
    world_put(w, "driver 580.159\n" H200 H200_B T4 "process on=GPU-a pid=11 memory=600 busy=30\n"
                 "process on=GPU-a pid=12 memory=-1\nlink a=GPU-a b=GPU-b level=nvlink\n"
                 "link a=GPU-a b=GPU-t level=50\nlink a=GPU-t b=GPU-b level=30\n");
    nvml_snapshot_take(w->nvml, &look);
    assert_true(look.there);
    assert_string_equal(look.trouble, "");
    assert_string_equal(look.driver, "580.159");
    assert_int_equal(look.gpus_len, 3);
    const struct nvml_gpu *a = &look.gpus[0];
    assert_string_equal(a->uuid, "GPU-a");
    assert_string_equal(a->model, "NVIDIA H200");
    assert_string_equal(a->bus, "00000000:01:00.0");
    assert_int_equal(a->memory_bytes, 143771 * MIB);
    assert_int_equal(a->used_bytes, 1000 * MIB);
    assert_int_equal(a->milli, 400);
    assert_int_equal(a->nvlinks, 18);
    assert_true(a->healthy && !a->split);
    assert_int_equal(a->processes_len, 2);
    assert_int_equal(a->processes[0].pid, 11);
    assert_int_equal(a->processes[0].memory_bytes, 600 * MIB);
    assert_int_equal(a->processes[0].milli, 300);
    assert_int_equal(a->processes[1].memory_bytes, -1);
    assert_int_equal(a->processes[1].milli, 0);
    assert_string_equal(look.gpus[2].model, "Tesla T4");
    assert_int_equal(look.gpus[2].minor, 2);
    assert_string_equal(nvml_link_name(look.link[0][1]), "nvlink");
    assert_string_equal(nvml_link_name(look.link[2][0]), "system");
    assert_string_equal(nvml_link_name(look.link[1][2]), "bridge");
}

static void mig_devices_are_listed(void **state)
{
    struct world *w = *state;
    CLEANUP(nvml_snapshot) struct nvml_snapshot look;
    world_put(w, "gpu uuid=GPU-a model=NVIDIA_H200 minor=3 memory=143771 mig=1\n" T4
                 "part of=GPU-a uuid=MIG-1 model=NVIDIA_H200_MIG_3g.71gb memory=71424 gi=1 ci=0 used=10\n"
                 "part of=GPU-a uuid=MIG-2 model=NVIDIA_H200_MIG_1g.18gb memory=16384 gi=9 ci=2\n"
                 "process on=MIG-2 pid=7 memory=100\n");
    nvml_snapshot_take(w->nvml, &look);
    assert_int_equal(look.gpus_len, 4);
    assert_true(look.gpus[0].split);
    assert_int_equal(look.gpus[0].processes_len, 0);
    const struct nvml_gpu *part = &look.gpus[2];
    assert_string_equal(part->uuid, "MIG-2");
    assert_string_equal(part->parent, "GPU-a");
    assert_string_equal(part->model, "NVIDIA H200 MIG 1g.18gb");
    assert_int_equal(part->memory_bytes, 16384 * MIB);
    assert_int_equal(part->minor, 3);
    assert_int_equal(part->instance, 9);
    assert_int_equal(part->compute, 2);
    assert_int_equal(part->processes_len, 1);
    assert_string_equal(look.gpus[3].uuid, "GPU-t");
}

/* The second state follows the first; `want` is the problem of GPU-b then. */
static void failures_are_reported_and_the_rest_is_read(void **state)
{
    static const struct {
        const char *label, *then, *want;
    } rows[] = {
        {"fallen off the bus", H200 "gpu uuid=GPU-b model=NVIDIA_H200 minor=1 memory=143771 lost=15\n" T4,
         "the GPU no longer responds: GPU is lost"                                                                                                    },
        {"not counted",        H200 "gpu uuid=GPU-b model=NVIDIA_H200 minor=1 memory=1 lost=1000\n" T4,
         "the GPU no longer responds: Unknown Error"                                                                                                  },
        {"not there",          H200 T4,                                                                    "the GPU no longer responds: Unknown Error"},
        {"to be reset",        H200 "gpu uuid=GPU-b minor=1 memory=1 lost=16\n" T4,
         "the GPU no longer responds: GPU requires reset"                                                                                             },
        {"memory errors",      H200 "gpu uuid=GPU-b model=NVIDIA_H200 minor=1 memory=143771 ecc=2\n" T4,
         "its memory has uncorrectable ECC errors; reset the GPU or restart the machine"                                                              },
        {"no rows left",       H200 "gpu uuid=GPU-b model=NVIDIA_H200 minor=1 memory=143771 remap=1\n" T4,
         "remapping of its memory rows failed; replace the GPU"                                                                                       },
        {"for nobody",         H200 "gpu uuid=GPU-b model=NVIDIA_H200 minor=1 memory=143771 mode=2\n" T4,
         "its compute mode is Prohibited; allow it with 'nvidia-smi -c 0'"                                                                            },
        {"well again",         H200 H200_B T4,                                                             ""                                         },
    };
    struct world *w = *state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(nvml_snapshot) struct nvml_snapshot before, look;
        world_put(w, H200 H200_B T4);
        nvml_snapshot_take(w->nvml, &before);
        assert_int_equal(before.gpus_len, 3);
        world_put(w, rows[i].then);
        nvml_snapshot_take(w->nvml, &look);
        if (look.gpus_len != 3 || strcmp(look.gpus[1].uuid, "GPU-b") != 0 ||
            strcmp(look.gpus[1].trouble, rows[i].want) != 0 || look.gpus[1].healthy != !*rows[i].want)
            fail_msg("%s: %zu, %s: %s", rows[i].label, look.gpus_len, look.gpus[1].uuid, look.gpus[1].trouble);
        assert_int_equal(look.gpus[1].memory_bytes, 143771 * MIB);
        assert_true(look.gpus[0].healthy && look.gpus[2].healthy);
        assert_string_equal(look.trouble, "");
        assert_string_equal(look.gpus[2].uuid, "GPU-t");
    }
}

static void gpu_that_never_answered_is_reported(void **state)
{
    struct world *w = *state;
    CLEANUP(nvml_snapshot) struct nvml_snapshot look;
    world_put(w, H200 "gpu uuid=GPU-b model=NVIDIA_H200 minor=1 memory=1 lost=15\n");
    nvml_snapshot_take(w->nvml, &look);
    assert_int_equal(look.gpus_len, 1);
    assert_string_equal(look.trouble, "a GPU does not report its UUID: GPU is lost");
}

static void failed_driver_is_retried(void **state)
{
    struct world *w = *state;
    CLEANUP(nvml_snapshot) struct nvml_snapshot failed, look;
    world_put(w, "fails 18\n" H200);
    nvml_snapshot_take(w->nvml, &failed);
    assert_true(failed.there);
    assert_int_equal(failed.gpus_len, 0);
    assert_string_equal(failed.trouble, "the NVIDIA driver does not answer: Driver/library version mismatch; the "
                                        "driver was replaced under a running one: restart the machine");
    world_put(w, H200);
    nvml_snapshot_take(w->nvml, &look);
    assert_int_equal(look.gpus_len, 1);
    assert_string_equal(look.trouble, "");
}

/* Known GPUs stay in the list and are unhealthy. */
static void gpus_of_failed_driver_stay_listed(void **state)
{
    static const struct {
        const char *then, *want;
    } rows[] = {
        {"miscounts 18\n" H200 T4,
         "the NVIDIA driver does not report the number of GPUs: Driver/library version mismatch"                        },
        {"fails 9\n",              "the NVIDIA driver does not answer: Unknown Error; load the driver (modprobe nvidia)"},
    };
    struct world *w = *state;
    CLEANUP(nvml_snapshot) struct nvml_snapshot before;
    world_put(w, H200 T4);
    nvml_snapshot_take(w->nvml, &before);
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(nvml_snapshot) struct nvml_snapshot look;
        world_put(w, rows[i].then);
        nvml_snapshot_take(w->nvml, &look);
        assert_true(look.there);
        assert_string_equal(look.trouble, rows[i].want);
        assert_int_equal(look.gpus_len, 2);
        for (size_t k = 0; k < look.gpus_len; k++) {
            assert_string_equal(look.gpus[k].uuid, before.gpus[k].uuid);
            assert_int_equal(look.gpus[k].minor, before.gpus[k].minor);
            assert_string_equal(look.gpus[k].trouble, rows[i].want);
            assert_false(look.gpus[k].healthy);
        }
    }
}

static void missing_or_incomplete_library_is_handled(void **state)
{
    static const struct {
        const char *path;
        bool there;
        const char *want;
    } rows[] = {
        {"/nowhere/libnvidia-ml.so.1", false, ""                           },
        {"libm.so.6",                  true,  "has no nvmlInit_v2; install"},
    };
    (void)state;
    for (size_t i = 0; i < ROWS(rows); i++) {
        CLEANUP(nvml_snapshot) struct nvml_snapshot look;
        struct nvml *n = nvml_new(rows[i].path);
        nvml_snapshot_take(n, &look);
        assert_int_equal(look.gpus_len, 0);
        assert_int_equal(look.there, rows[i].there);
        assert_non_null(strstr(look.trouble, rows[i].want));
        nvml_free(n);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    static const struct CMUnitTest tests[] = {
        CASE(gpu_properties_are_read),
        CASE(mig_devices_are_listed),
        CASE(failures_are_reported_and_the_rest_is_read),
        CASE(gpu_that_never_answered_is_reported),
        CASE(failed_driver_is_retried),
        CASE(gpus_of_failed_driver_stay_listed),
        CASE(missing_or_incomplete_library_is_handled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
