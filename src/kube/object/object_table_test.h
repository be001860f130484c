/* object_table_test.h - field names and numbers of API objects, as far as tests of the cache use them; included only by
 * object_kit_test.h.
 *
 * Names and numbers are those of k8s.io/api. To add a field: a row; a kind: a table, and a row in the last table.
 */
#pragma once

#include "kube/cache/cache.h"

enum kit_type {
    KIT_TEXT,
    KIT_INT,
    KIT_BOOL,
    KIT_TIME,  /* seconds */
    KIT_TEXTS, /* map of texts */
    KIT_QUANTITY,
    KIT_QUANTITIES, /* map of quantities */
    KIT_MESSAGE,
    KIT_INLINE, /* the fields of the message are in the same object */
};

struct kit_field {
    const char *name;
    uint32_t number;
    enum kit_type type;
    const struct kit_field *of;
};

static const struct kit_field kit_owner[] = {
    {"uid", 4},
    {"controller",     6, KIT_BOOL},
    {"kind",1},
    {"apiVersion",     5},
    {0    }
};
static const struct kit_field kit_meta[] = {
    {"name",              1},
    {"namespace",                   3},
    {"uid",5},
    {"resourceVersion",               6},
    {"creationTimestamp",                   8, KIT_TIME},
    {"deletionTimestamp",    9, KIT_TIME},
    {"labels", 11, KIT_TEXTS},
    {"annotations",           12, KIT_TEXTS},
    {"ownerReferences", 13, KIT_MESSAGE, kit_owner},
    {0          }
};
static const struct kit_field kit_expr[] = {
    {"key",    1},
    {"operator",        2},
    {"values",3},
    {0}
};
static const struct kit_field kit_selector[] = {
    {"matchLabels",      1, KIT_TEXTS},
    {"matchExpressions",         2, KIT_MESSAGE, kit_expr},
    {0}
};
static const struct kit_field kit_resources[] = {
    {"limits",        1, KIT_QUANTITIES},
    {"requests", 2, KIT_QUANTITIES},
    {0     }
};
static const struct kit_field kit_port[] = {
    {"hostPort",      2, KIT_INT},
    {"containerPort",        3, KIT_INT},
    {"protocol", 4},
    {"hostIP",        5},
    {0     }
};
static const struct kit_field kit_env[] = {
    {"name", 1},
    {"value",      2},
    {0}
};
static const struct kit_field kit_container[] = {
    {"name",       1},
    {"image",            2},
    {"ports",6, KIT_MESSAGE, kit_port},
    {"env",      7, KIT_MESSAGE, kit_env},
    {"resources", 8, KIT_MESSAGE, kit_resources},
    {"restartPolicy",            24},
    {0     }
};
static const struct kit_field kit_node_term[] = {
    {"matchExpressions", 1, KIT_MESSAGE, kit_expr},
    {"matchFields",       2, KIT_MESSAGE, kit_expr},
    {0                 }
};
static const struct kit_field kit_node_selector[] = {
    {"nodeSelectorTerms", 1, KIT_MESSAGE, kit_node_term},
    {0       }
};
static const struct kit_field kit_preferred[] = {
    {"weight",     1, KIT_INT},
    {"preference",     2, KIT_MESSAGE, kit_node_term},
    {0}
};
static const struct kit_field kit_node_affinity[] = {
    {"required",   1, KIT_MESSAGE, kit_node_selector},
    {"preferred", 2, KIT_MESSAGE, kit_preferred},
    {0           }
};
static const struct kit_field kit_near[] = {
    {"labelSelector", 1, KIT_MESSAGE, kit_selector},
    {"namespaces",    2},
    {"topologyKey",               3},
    {"namespaceSelector",           4, KIT_MESSAGE, kit_selector},
    {0  }
};
static const struct kit_field kit_weighted[] = {
    {"weight",          1, KIT_INT},
    {"podAffinityTerm",          2, KIT_MESSAGE, kit_near},
    {0}
};
static const struct kit_field kit_nears[] = {
    {"required",   1, KIT_MESSAGE, kit_near},
    {"preferred", 2, KIT_MESSAGE, kit_weighted},
    {0           }
};
static const struct kit_field kit_affinity[] = {
    {"nodeAffinity", 1, KIT_MESSAGE, kit_node_affinity},
    {"podAffinity",   2, KIT_MESSAGE, kit_nears},
    {"podAntiAffinity",              3, KIT_MESSAGE, kit_nears},
    {0          }
};
static const struct kit_field kit_toleration[] = {
    {"key",   1},
    {"operator",       2},
    {"value",3},
    {"effect", 4},
    {0      }
};
static const struct kit_field kit_spread[] = {
    {"maxSkew",       1, KIT_INT},
    {"topologyKey",        2},
    {"whenUnsatisfiable",   3},
    {"labelSelector",               4, KIT_MESSAGE, kit_selector},
    {"minDomains",            5, KIT_INT},
    {"nodeAffinityPolicy", 6},
    {"nodeTaintsPolicy",    7},
    {"matchLabelKeys",               8},
    {0  }
};
static const struct kit_field kit_claim_source[] = {
    {"claimName", 1},
    {0          }
};
static const struct kit_field kit_claim_spec[] = {
    {"accessModes",  1},
    {"resources",              2, KIT_MESSAGE, kit_resources},
    {"volumeName",3},
    {"selector", 4, KIT_MESSAGE, kit_selector},
    {"storageClassName",   5},
    {"volumeMode",              6},
    {0            }
};
static const struct kit_field kit_claim_template[] = {
    {"spec",       2, KIT_MESSAGE, kit_claim_spec},
    {0}
};
static const struct kit_field kit_ephemeral[] = {
    {"volumeClaimTemplate", 1, KIT_MESSAGE, kit_claim_template},
    {0         }
};
static const struct kit_field kit_gce[] = {
    {"pdName", 1},
    {"readOnly",        4, KIT_BOOL},
    {0}
};
static const struct kit_field kit_aws[] = {
    {"volumeID", 1},
    {"readOnly",          4, KIT_BOOL},
    {0}
};
static const struct kit_field kit_iscsi[] = {
    {"targetPortal", 1},
    {"iqn",              2},
    {"lun",3, KIT_INT},
    {"readOnly",          6, KIT_BOOL},
    {0      }
};
static const struct kit_field kit_rbd[] = {
    {"monitors", 1},
    {"image",          2},
    {"pool",4},
    {"readOnly",     8, KIT_BOOL},
    {0         }
};
static const struct kit_field kit_azure[] = {
    {"diskName", 1},
    {"diskURI",          2},
    {0}
};
static const struct kit_field kit_volume_source[] = {
    {"azureDisk",            22, KIT_MESSAGE, kit_azure},
    {"gcePersistentDisk",           3, KIT_MESSAGE, kit_gce},
    {"awsElasticBlockStore",                      4, KIT_MESSAGE, kit_aws},
    {"iscsi",           8, KIT_MESSAGE, kit_iscsi},
    {"rbd",               11, KIT_MESSAGE, kit_rbd},
    {"persistentVolumeClaim", 10, KIT_MESSAGE, kit_claim_source},
    {"ephemeral",           29, KIT_MESSAGE, kit_ephemeral},
    {0                     }
};
static const struct kit_field kit_volume[] = {
    {"name", 1},
    {"",      2, KIT_INLINE, kit_volume_source},
    {0}
};
static const struct kit_field kit_gate[] = {
    {"name", 1},
    {0     }
};
static const struct kit_field kit_pod_group[] = {
    {"podGroupName", 1},
    {0             }
};
static const struct kit_field kit_pod_spec[] = {
    {"volumes",       1, KIT_MESSAGE, kit_volume},
    {"containers",    2, KIT_MESSAGE, kit_container},
    {"nodeSelector",               7, KIT_TEXTS},
    {"nodeName",           10},
    {"affinity",  18, KIT_MESSAGE, kit_affinity},
    {"schedulerName",  19},
    {"initContainers",      20, KIT_MESSAGE, kit_container},
    {"tolerations",      22, KIT_MESSAGE, kit_toleration},
    {"priority",               25, KIT_INT},
    {"preemptionPolicy",            31},
    {"overhead",   32, KIT_QUANTITIES},
    {"topologySpreadConstraints", 33, KIT_MESSAGE, kit_spread},
    {"schedulingGates",               38, KIT_MESSAGE, kit_gate},
    {"resourceClaims",        39, KIT_MESSAGE, kit_gate},
    {"resources",  40, KIT_MESSAGE, kit_resources},
    {"schedulingGroup",   43, KIT_MESSAGE, kit_pod_group},
    {0   }
};
static const struct kit_field kit_condition[] = {
    {"type",               1},
    {"status",                    2},
    {"lastTransitionTime",4, KIT_TIME},
    {"reason", 5},
    {"message",            6},
    {0            }
};
static const struct kit_field kit_container_status[] = {
    {"name", 1},
    {"allocatedResources",      10, KIT_QUANTITIES},
    {"resources",11, KIT_MESSAGE, kit_resources},
    {0     }
};
static const struct kit_field kit_pod_status[] = {
    {"phase",             1},
    {"conditions",                   2, KIT_MESSAGE, kit_condition},
    {"containerStatuses",8, KIT_MESSAGE, kit_container_status},
    {"nominatedNodeName",      11},
    {0}
};
static const struct kit_field kit_taint[] = {
    {"key",    1},
    {"value",        2},
    {"effect",3},
    {0}
};
static const struct kit_field kit_node_spec[] = {
    {"unschedulable", 4, KIT_BOOL},
    {"taints",       5, KIT_MESSAGE, kit_taint},
    {0       }
};
static const struct kit_field kit_image[] = {
    {"names", 1},
    {"sizeBytes",       2, KIT_INT},
    {0}
};
static const struct kit_field kit_node_status[] = {
    {"allocatable",   2, KIT_QUANTITIES},
    {"phase", 3},
    {"images",         8, KIT_MESSAGE, kit_image},
    {0              }
};
static const struct kit_field kit_csi[] = {
    {"driver", 1},
    {"volumeHandle",        2},
    {0}
};
static const struct kit_field kit_pv_source[] = {
    {"gcePersistentDisk", 1, KIT_MESSAGE, kit_gce},
    {"awsElasticBlockStore",        2, KIT_MESSAGE, kit_aws},
    {"azureDisk",                   16, KIT_MESSAGE, kit_azure},
    {"csi",           22, KIT_MESSAGE, kit_csi},
    {0           }
};
static const struct kit_field kit_reference[] = {
    {"namespace", 2},
    {"name",           3},
    {"uid",4},
    {0      }
};
static const struct kit_field kit_pv_affinity[] = {
    {"required",   1, KIT_MESSAGE, kit_node_selector},
    {0}
};
static const struct kit_field kit_pv_spec[] = {
    {"capacity",      1, KIT_QUANTITIES},
    {"", 2, KIT_INLINE, kit_pv_source},
    {"accessModes",              3},
    {"claimRef",     4, KIT_MESSAGE, kit_reference},
    {"storageClassName",               6},
    {"volumeMode", 8},
    {"nodeAffinity",      9, KIT_MESSAGE, kit_pv_affinity},
    {0   }
};
static const struct kit_field kit_phase[] = {
    {"phase", 1},
    {0      }
};
static const struct kit_field kit_topology_expr[] = {
    {"key", 1},
    {"values",     2},
    {0}
};
static const struct kit_field kit_topology[] = {
    {"matchLabelExpressions", 1, KIT_MESSAGE, kit_topology_expr},
    {0           }
};
static const struct kit_field kit_csi_count[] = {
    {"count",  1, KIT_INT},
    {0}
};
static const struct kit_field kit_csi_driver[] = {
    {"name",        1},
    {"nodeID",             2},
    {"allocatable",4, KIT_MESSAGE, kit_csi_count},
    {0}
};
static const struct kit_field kit_csi_spec[] = {
    {"drivers",    1, KIT_MESSAGE, kit_csi_driver},
    {0}
};
static const struct kit_field kit_budget_spec[] = {
    {"selector",   2, KIT_MESSAGE, kit_selector},
    {0}
};
static const struct kit_field kit_budget_status[] = {
    {"disruptionsAllowed", 3, KIT_INT},
    {0            }
};
static const struct kit_field kit_gang[] = {
    {"minCount", 1, KIT_INT},
    {0  }
};
static const struct kit_field kit_group_policy[] = {
    {"gang",       2, KIT_MESSAGE, kit_gang},
    {0}
};
static const struct kit_field kit_group_spec[] = {
    {"schedulingPolicy", 2, KIT_MESSAGE, kit_group_policy},
    {0      }
};

static const struct kit_field kit_Pod[] = {
    {"metadata",   1, KIT_MESSAGE, kit_meta},
    {"spec", 2, KIT_MESSAGE, kit_pod_spec},
    {"status",            3, KIT_MESSAGE, kit_pod_status},
    {0          }
};
static const struct kit_field kit_Node[] = {
    {"metadata",   1, KIT_MESSAGE, kit_meta},
    {"spec", 2, KIT_MESSAGE, kit_node_spec},
    {"status",            3, KIT_MESSAGE, kit_node_status},
    {0          }
};
static const struct kit_field kit_Volume[] = {
    {"metadata",   1, KIT_MESSAGE, kit_meta},
    {"spec", 2, KIT_MESSAGE, kit_pv_spec},
    {"status",            3, KIT_MESSAGE, kit_phase},
    {0          }
};
static const struct kit_field kit_Claim[] = {
    {"metadata",   1, KIT_MESSAGE, kit_meta},
    {"spec", 2, KIT_MESSAGE, kit_claim_spec},
    {0           }
};
static const struct kit_field kit_Class[] = {
    {"metadata",          1, KIT_MESSAGE, kit_meta},
    {"provisioner",        2},
    {"volumeBindingMode",                   7},
    {"allowedTopologies",           8, KIT_MESSAGE, kit_topology},
    {0}
};
static const struct kit_field kit_CsiNode[] = {
    {"metadata",   1, KIT_MESSAGE, kit_meta},
    {"spec", 2, KIT_MESSAGE, kit_csi_spec},
    {0           }
};
static const struct kit_field kit_driver_spec[] = {
    {"attachRequired",  1, KIT_BOOL},
    {"storageCapacity",         4, KIT_BOOL},
    {0}
};
static const struct kit_field kit_Driver[] = {
    {"metadata",   1, KIT_MESSAGE, kit_meta},
    {"spec", 2, KIT_MESSAGE, kit_driver_spec},
    {0           }
};
static const struct kit_field kit_Capacity[] = {
    {"metadata",         1, KIT_MESSAGE, kit_meta},
    {"nodeTopology",       2, KIT_MESSAGE, kit_selector},
    {"storageClassName",                  3},
    {"capacity",           4, KIT_QUANTITY},
    {"maximumVolumeSize",      5, KIT_QUANTITY},
    {0}
};
static const struct kit_field kit_attachment_source[] = {
    {"persistentVolumeName", 1},
    {0                     }
};
static const struct kit_field kit_attachment_spec[] = {
    {"attacher",             1},
    {"source",                      2, KIT_MESSAGE, kit_attachment_source},
    {"nodeName",3},
    {0}
};
static const struct kit_field kit_Attachment[] = {
    {"metadata",   1, KIT_MESSAGE, kit_meta},
    {"spec", 2, KIT_MESSAGE, kit_attachment_spec},
    {0           }
};
static const struct kit_field kit_limit[] = {
    {"type", 1},
    {"default",      4, KIT_QUANTITIES},
    {"defaultRequest",5, KIT_QUANTITIES},
    {0     }
};
static const struct kit_field kit_limits[] = {
    {"limits",     1, KIT_MESSAGE, kit_limit},
    {0}
};
static const struct kit_field kit_LimitRange[] = {
    {"metadata",   1, KIT_MESSAGE, kit_meta},
    {"spec", 2, KIT_MESSAGE, kit_limits},
    {0           }
};
static const struct kit_field kit_overhead[] = {
    {"podFixed",      1, KIT_QUANTITIES},
    {0}
};
static const struct kit_field kit_RuntimeClass[] = {
    {"metadata",   1, KIT_MESSAGE, kit_meta},
    {"overhead", 3, KIT_MESSAGE, kit_overhead},
    {0           }
};
static const struct kit_field kit_Budget[] = {
    {"metadata",   1, KIT_MESSAGE, kit_meta},
    {"spec", 2, KIT_MESSAGE, kit_budget_spec},
    {"status",            3, KIT_MESSAGE, kit_budget_status},
    {0          }
};
static const struct kit_field kit_Group[] = {
    {"metadata",   1, KIT_MESSAGE, kit_meta},
    {"spec", 2, KIT_MESSAGE, kit_group_spec},
    {0           }
};
static const struct kit_field kit_Namespace[] = {
    {"metadata",   1, KIT_MESSAGE, kit_meta},
    {0}
};

static const struct kit_field *const kit_kinds[CACHE_POD_GROUP + 1] = {
    [CACHE_NAMESPACE] = kit_Namespace,
    [CACHE_NODE] = kit_Node,
    [CACHE_STORAGE_CLASS] = kit_Class,
    [CACHE_CSI_NODE] = kit_CsiNode,
    [CACHE_VOLUME] = kit_Volume,
    [CACHE_CLAIM] = kit_Claim,
    [CACHE_CSI_DRIVER] = kit_Driver,
    [CACHE_STORAGE_CAPACITY] = kit_Capacity,
    [CACHE_ATTACHMENT] = kit_Attachment,
    [CACHE_BUDGET] = kit_Budget,
    [CACHE_POD] = kit_Pod,
    [CACHE_POD_GROUP] = kit_Group,
    [CACHE_LIMIT_RANGE] = kit_LimitRange,
    [CACHE_RUNTIME_CLASS] = kit_RuntimeClass,
};
