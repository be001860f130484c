/* image_name_fuzz.c - arbitrary image references: results are safe as file names and as program arguments. */
#include "machine/image/image_name.h"

#include <assert.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    json_t *config = json_object();
    json_t *text = json_stringn((const char *)data, size);
    struct image_name n = {0};
    struct berth_err err = {0};
    (void)json_object_set_new(config, size & 1 ? "image" : "rootfs", text ? text : json_null());
    int rc = image_name_read(config, &n, &err);
    assert(rc == -err.code);
    if (rc < 0)
        assert(n.kind == IMAGE_NONE && err.text[0]);
    else if (n.kind == IMAGE_NAMED)
        assert(n.name[0] != '-' && n.name[0] != '.' && !strchr(n.name, ' ') && !strchr(n.name, '+') &&
               strlen(n.name) < IMAGE_NAME_MAX && n.repository[0]);
    else
        assert(image_path_valid(n.path));
    json_decref(config);
    return 0;
}
