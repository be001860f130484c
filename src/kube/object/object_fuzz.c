/* object_fuzz.c - arbitrary objects of the API server: the cluster stays consistent whatever they contain.
 *
 * The first byte of each piece selects the kind and whether it is put or dropped; the second and third give its length.
 * The stripped object must parse like the object itself.
 */
#include <assert.h>
#include <string.h>

#include "base/str.h"
#include "kube/cache/cache_internal.h"

enum { HEADER = 3, DROP = 0x80 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"berth"};
    struct cache *p = cache_new(&(struct cache_config){.schedulers = names, .schedulers_len = 1});
    while (size >= HEADER) {
        enum cache_kind kind = (enum cache_kind)((data[0] & ~DROP) % (CACHE_POD_GROUP + 1));
        size_t len = (size_t)data[1] << 8 | data[2];
        len = len < size - HEADER ? len : size - HEADER;
        struct kube_object o = {.namespace = kind == CACHE_NODE ? "" : "n",
                                .name = "a",
                                .uid = "u",
                                .raw = proto_reader(data + HEADER, len)};
        if (data[0] & DROP)
            cache_object_drop(p, kind, &o);
        else
            cache_object_put(p, kind, &o);
        data += HEADER + len;
        size -= HEADER + len;
    }
    struct berth_cluster *c = cache_cluster(p);
    assert(berth_audit(c, NULL) == 0);
    uint64_t instance = cache_assume_pod(p, "n:a", "a", 0, NULL, 0);
    assert(berth_audit(cache_cluster(p), NULL) == 0);
    cache_forget_pod(p, instance, 0);
    assert(berth_audit(cache_cluster(p), NULL) == 0);
    cache_free(p);
    return 0;
}
