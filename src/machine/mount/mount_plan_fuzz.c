/* mount_plan_fuzz.c - arbitrary mounts and files: parsed paths stay below their root. */
#include "machine/mount/mount_plan.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

static void path_check(const char *path)
{
    assert(path[0] == '/' && path[1] && path[1] != '/' && path[strlen(path) - 1] != '/');
    assert(!strstr(path, "/../") && !strstr(path, "/./") && !strstr(path, "//"));
    size_t len = strlen(path);
    assert(len < 3 || strcmp(path + len - 3, "/..") != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *config = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
    struct mount_plan plan = {0};
    struct berth_err err = {0};
    struct arena arena;
    arena_init(&arena);
    int rc = config ? mount_plan_read(config, &arena, &plan, &err) : 0;
    assert(rc == -err.code);
    for (size_t i = 0; i < plan.mounts_len; i++) {
        path_check(plan.mounts[i].path);
        if (plan.mounts[i].source)
            path_check(plan.mounts[i].source);
        assert(!plan.mounts[i].volume || !strchr(plan.mounts[i].volume, '/'));
    }
    for (size_t i = 0; i < plan.files_len; i++) {
        path_check(plan.files[i].path);
        assert(!strchr(plan.files[i].name, '/') && plan.files[i].mode <= 0777);
    }
    arena_done(&arena);
    json_decref(config);
    return 0;
}
