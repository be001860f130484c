#include "wire/doc/optask_words.h"

#include "wire/doc/objects.h"

const struct enum_word optask_language_words[] = {
    {"shell",  OPTASK_SHELL },
    {"python", OPTASK_PYTHON},
    {NULL,     0            },
};

const struct enum_word opstep_state_words[] = {
    {"pending",  OPSTEP_PENDING },
    {"draining", OPSTEP_DRAINING},
    {"running",  OPSTEP_RUNNING },
    {"undoing",  OPSTEP_UNDOING },
    {"done",     OPSTEP_DONE    },
    {"failed",   OPSTEP_FAILED  },
    {"undone",   OPSTEP_UNDONE  },
    {NULL,       0              },
};

const struct enum_word opstep_fault_words[] = {
    {"",                OPFAULT_NONE           },
    {"timeout",         OPFAULT_TIMEOUT        },
    {"script",          OPFAULT_SCRIPT         },
    {"lost",            OPFAULT_LOST           },
    {"refused",         OPFAULT_REFUSED        },
    {"no-space",        OPFAULT_NO_SPACE       },
    {"network",         OPFAULT_NETWORK        },
    {"package-manager", OPFAULT_PACKAGE_MANAGER},
    {NULL,              0                      },
};

const char *optask_language_name(enum optask_language language)
{
    return optask_language_words[language].name;
}

const char *opstep_state_name(enum opstep_state state)
{
    return opstep_state_words[state].name;
}

const char *opstep_fault_name(enum opstep_fault fault)
{
    return opstep_fault_words[fault].name;
}
