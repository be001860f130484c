#include "control/kind/kind.h"

#include <stdio.h>
#include <string.h>

const struct kind_info kinds[KINDS] = {
    [KIND_SETTING] = {"setting",      "settings",      ID_FREE,   false, false},
    [KIND_SPENT] = {"spent",        "spents",        ID_FREE,   false, false},
    [KIND_GROUP] = {"group",        "groups",        ID_LABEL,  false, true },
    [KIND_ROLE] = {"role",         "roles",         ID_LABEL,  false, true },
    [KIND_USER] = {"user",         "users",         ID_LABEL,  false, true },
    [KIND_TOKEN] = {"token",        "tokens",        ID_FREE,   false, true },
    [KIND_RESOURCE] = {"resource",     "resources",     ID_FREE,   false, true },
    [KIND_PROFILE] = {"profile",      "profiles",      ID_LABEL,  false, true },
    [KIND_POLICY] = {"policy",       "policies",      ID_LABEL,  false, true },
    [KIND_DOMAIN] = {"domain",       "domains",       ID_LABEL,  false, true },
    [KIND_QUEUE] = {"queue",        "queues",        ID_LABEL,  false, true },
    [KIND_PREDICTION] = {"prediction",   "predictions",   ID_FREE,   false, false},
    [KIND_NODE] = {"node",         "nodes",         ID_LABEL,  false, true },
    [KIND_WINDOW] = {"window",       "windows",       ID_LABEL,  false, true },
    [KIND_OPTASK] = {"optask",       "optasks",       ID_LABEL,  false, true },
    [KIND_OPSTEP] = {"opstep",       "opsteps",       ID_FREE,   false, false},
    [KIND_VOLUME] = {"volume",       "volumes",       ID_LABEL,  true,  true },
    [KIND_SECRET] = {"secret",       "secrets",       ID_OWNED,  true,  true },
    [KIND_APP] = {"app",          "apps",          ID_OWNED,  true,  true },
    [KIND_JOB] = {"job",          "jobs",          ID_NUMBER, true,  true },
    [KIND_VM] = {"vm",           "vms",           ID_OWNED,  true,  true },
    [KIND_CRON] = {"cron",         "crons",         ID_OWNED,  true,  true },
    [KIND_SPEC] = {"spec",         "specs",         ID_FREE,   true,  false},
    [KIND_INSTANCE] = {"instance",     "instances",     ID_NUMBER, true,  true },
    [KIND_LAST_END] = {"last",         "lasts",         ID_FREE,   true,  false},
    [KIND_USAGE_RECORD] = {"usage_record", "usage_records", ID_NUMBER, true,  false},
    [KIND_NOTIFICATION] = {"notice",       "notices",       ID_NUMBER, true,  false},
    [KIND_FACT] = {"fact",         "facts",         ID_FREE,   false, false},
    [KIND_LEDGER] = {"ledger",       "ledgers",       ID_FREE,   false, false},
    [KIND_COUNTER] = {"counter",      "counters",      ID_FREE,   false, false},
    [KIND_REPLY] = {"reply",        "replies",       ID_FREE,   false, false},
};

enum kind kind_find(const char *word)
{
    static const struct {
        const char *word;
        enum kind kind;
    } others[] = {
        {"no",       KIND_NODE    },
        {"device",   KIND_NODE    },
        {"devices",  KIND_NODE    },
        {"svc",      KIND_APP     },
        {"service",  KIND_APP     },
        {"services", KIND_APP     },
        {"inst",     KIND_INSTANCE},
        {"pods",     KIND_INSTANCE},
        {"pod",      KIND_INSTANCE},
        {"vol",      KIND_VOLUME  },
        {"op",       KIND_OPTASK  },
    };

    for (unsigned k = 0; k < KINDS; k++)
        if (kinds[k].shown && (strcmp(word, kinds[k].name) == 0 || strcmp(word, kinds[k].plural) == 0))
            return (enum kind)k;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(word, others[i].word) == 0)
            return others[i].kind;
    return KINDS;
}

const char *object_key(enum kind kind, const char *id, char buf[static OBJECT_KEY_MAX])
{
    (void)snprintf(buf, OBJECT_KEY_MAX, "%s/%s", kinds[kind].plural, id);
    return buf;
}

enum kind object_key_split(const char *key, const char **ret_id)
{
    for (unsigned k = 0; k < KINDS; k++) {
        size_t len = strlen(kinds[k].plural);
        if (strncmp(key, kinds[k].plural, len) == 0 && key[len] == '/' && key[len + 1]) {
            *ret_id = key + len + 1;
            return (enum kind)k;
        }
    }
    return KINDS;
}

bool kind_journalled(enum kind k)
{
    return k != KINDS && k != KIND_TOKEN && k != KIND_SECRET && k != KIND_LAST_END && k != KIND_REPLY &&
           k != KIND_LEDGER && k != KIND_COUNTER && k != KIND_USAGE_RECORD && k != KIND_NOTIFICATION;
}

bool kind_recorded(enum kind k)
{
    return kind_journalled(k) || k == KIND_LAST_END || k == KIND_USAGE_RECORD;
}
