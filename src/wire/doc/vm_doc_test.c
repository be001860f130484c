/* vm_doc_test.c - keys of virtual machines, and rejected values. */
#include <errno.h>

#include "wire/doc/doc_kit_test.h"

#define SUM "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define FLAVOR "resources: {cpu: 2, memory: 1Gi}"

static void every_key_has_its_field(void **state)
{
    (void)state;
    CLEANUP(given)
    struct given g =
        given("{id: a, " FLAVOR ", image: /srv/a.qcow2, endpoints: [{name: ssh, guest: 22}, {name: dns, protocol: udp, "
              "guest: 53}], vm: {disk: 10Gi, kernel: /boot/k, initrd: /boot/i, append: quiet, accel: tcg}}");
    struct work_doc d = {0};
    READ(&g, work_doc_read, &d);
    assert_int_equal(vm_check(&d, &g.err), 0);
    assert_string_equal(d.workload.shape.runtime, "vm");
    assert_int_equal(d.run.vm.disk_bytes, INT64_C(10) << 30);
    assert_string_equal(d.run.vm.kernel, "/boot/k");
    assert_string_equal(d.run.vm.initrd, "/boot/i");
    assert_string_equal(d.run.vm.append, "quiet");
    assert_string_equal(vm_accel_name(d.run.vm.accel), "tcg");
    assert_int_equal(d.endpoints[0].guest, 22);
    assert_int_equal(d.endpoints[1].guest, 53);
}

static void defaults_make_a_valid_vm(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "{id: a, " FLAVOR ", image: /srv/a.qcow2, runtime: vm}",
        "{id: a, " FLAVOR ", image: /srv/a.qcow2, vm: {}}",
        "{id: a, " FLAVOR ", image: /srv/a.qcow2, runtime: vm, vm: {}}",
        "{id: a, " FLAVOR ", image: 'https://images.lab/a.qcow2', vm: {sha256: " SUM "}}",
        "{id: a, " FLAVOR ", vm: {kernel: /boot/k}}",
        "{id: a, " FLAVOR ", image: /a, vm: {}, endpoints: [{name: web, guest: 80}], health: {tcp: web}}",
        "{id: a, command: [x], runtime: process}",
        "{id: a, image: 'app:1', endpoints: [web]}",
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given g = given(rows[i]);
        struct work_doc d = {0};
        READ(&g, work_doc_read, &d);
        if (vm_check(&d, &g.err) < 0)
            fail_msg("%s: %s", rows[i], g.err.text);
    }
}

static void errors_name_the_key(void **state)
{
    (void)state;
    static const struct refusal rows[] = {
        {"{id: a, vm: {disk: 1}}",                                                                   "vm: disk: expected a size"          },
        {"{id: a, vm: {disk: 5Ti}}",                                                                 "vm: disk: expected a size"          },
        {"{id: a, vm: {sha256: abc}}",                                                               "sha256: expected 64"                },
        {"{id: a, vm: {kernel: k}}",                                                                 "kernel: expected an absolute path"  },
        {"{id: a, vm: {initrd: /a/../b}}",                                                           "must not have '..'"                 },
        {"{id: a, vm: {append: \"a\\nb\"}}",                                                         "append: expected one line"          },
        {"{id: a, vm: {accel: fast}}",                                                               "accel: expected one of"             },
        {"{id: a, vm: {cpus: 2}}",                                                                   "cpus"                               },
        {"{id: a, vm: 1}",                                                                           "vm: expected"                       },
        {"{id: a, endpoints: [{name: a, guest: 0}]}",                                                "guest: expected a port"             },
        {"{id: a, endpoints: [{name: a, guest: 65536}]}",                                            "guest: expected a port"             },
        {"{id: a, endpoints: [{name: a, guest: 22}]}",                                               "guest: is only for virtual machines"},
        {"{id: a, runtime: oci, vm: {}, " FLAVOR "}",                                                "vm: the runtime is oci"             },
        {"{id: a, image: /a, vm: {}}",                                                               "resources: a virtual machine"       },
        {"{id: a, vm: {}, " FLAVOR "}",                                                              "needs an image"                     },
        {"{id: a, image: 'app:1', vm: {}, " FLAVOR "}",                                              "a URL or a path on"                 },
        {"{id: a, image: 'http://a/b', vm: {}, " FLAVOR "}",                                         "sha256: must be given"              },
        {"{id: a, image: /a, vm: {sha256: " SUM "}, " FLAVOR "}",                                    "is only for an image that is a URL" },
        {"{id: a, image: /a, vm: {append: x}, " FLAVOR "}",                                          "append: needs vm.kernel"            },
        {"{id: a, image: /a, vm: {initrd: /i}, " FLAVOR "}",                                         "initrd: needs vm.kernel"            },
        {"{id: a, vm: {kernel: /k, disk: 1Gi}, " FLAVOR "}",                                         "disk: needs an image"               },
        {"{id: a, image: /a, vm: {}, command: [x], " FLAVOR "}",                                     "command: not supported for"         },
        {"{id: a, image: /a, vm: {}, workdir: /x, " FLAVOR "}",                                      "workdir: not supported for"         },
        {"{id: a, image: /a, vm: {}, run_as: owner, " FLAVOR "}",                                    "run_as: not supported for"          },
        {"{id: a, image: /a, vm: {}, mounts: [{path: /x, tmpfs: 1Mi}], " FLAVOR "}",                 "mounts: not supported for"          },
        {"{id: a, image: /a, vm: {}, files: [{path: /x, text: y}], " FLAVOR "}",                     "files: not supported for"           },
        {"{id: a, image: /a, vm: {}, settings: {x: 1}, " FLAVOR "}",                                 "settings: not supported for"        },
        {"{id: a, image: /a, vm: {}, health: {exec: [x]}, " FLAVOR "}",                              "health: not supported for"          },
        {"{id: a, image: /a, vm: {}, checkpoint: {}, " FLAVOR "}",                                   "checkpoint: not supported for"      },
        {"{id: a, image: /a, vm: {}, gpu: 1, " FLAVOR "}",                                           "gpu: not supported for"             },
        {"{id: a, image: /a, vm: {}, gpu: 0.5, " FLAVOR "}",                                         "gpu: not supported for"             },
        {"{id: a, image: /a, vm: {}, resources: {memory: 1Gi, hugepages-2Mi: 4Mi}}",                 "hugepages-2Mi: not supported"       },
        {"{id: a, image: /a, vm: {}, limits: {hugepages-1Gi: 1Gi}, " FLAVOR "}",                     "hugepages-1Gi: not supported"       },
        {"{id: a, image: /a, vm: {}, endpoints: [web], " FLAVOR "}",                                 "needs the port of the guest"        },
        {"{id: a, image: /a, vm: {}, endpoints: [{name: w, guest: 1, listen: socket}], " FLAVOR "}",
         "sockets are not supported"                                                                                                      },
        {"{id: a, image: /a, vm: {}, endpoints: [{name: w, guest: 1, protocol: sctp}], " FLAVOR "}",
         "only tcp and udp"                                                                                                               },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        CLEANUP(given) struct given g = given(rows[i].doc);
        struct work_doc d = {0};
        int rc = work_doc_read(g.doc, &g.arena, &d, &g.err);
        REFUSED(&rows[i], &g, rc < 0 ? rc : vm_check(&d, &g.err));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_has_its_field),
        cmocka_unit_test(defaults_make_a_valid_vm),
        cmocka_unit_test(errors_name_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
