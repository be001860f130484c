#include <errno.h>
#include <string.h>

#include "base/flag.h"
#include "base/mem.h"
#include "kube/kubectl/plugin.h"

/* The default of packaging/kubernetes. */
#define SCHEDULERS "berth,berth-pack=pack"

#define AT(field) offsetof(struct plugin_options, field)
static const struct flag flags[] = {
    {"namespace",      FLAG_TEXT,   AT(namespace),      "NAME",  0, 0, "or -n: of the pod; that of the context if not given"},
    {"output",         FLAG_TEXT,   AT(output),         "json",  0, 0, "or -o: of queue and nodes, for programs"            },
    {"kubeconfig",     FLAG_TEXT,   AT(kubeconfig),     "FILE",  0, 0, "else $KUBECONFIG, or ~/.kube/config"                },
    {"context",        FLAG_TEXT,   AT(context),        "NAME",  0, 0, "of the kubeconfig; its current one if not given"    },
    {"scheduler-name", FLAG_TEXT,   AT(scheduler_name), "NAMES", 0, 0,
     "as berth-kube has it; '" SCHEDULERS "', as in its manifests, if not given"                                            },
    {"profile",        FLAG_TEXT,   AT(profile),        "NAME",  0, 0, "as berth-kube has it; 'default' if not given"       },
    {"version",        FLAG_SWITCH, AT(version),        NULL,    0, 0, "print the version"                                  },
    {"help",           FLAG_SWITCH, AT(help),           NULL,    0, 0, "print this"                                         },
};
#undef AT
enum { FLAGS = sizeof flags / sizeof *flags };

/* Reports whether the option takes the next word as its value. */
static bool takes_value(const char *word)
{
    for (size_t i = 0; i < FLAGS; i++)
        if (flags[i].kind != FLAG_SWITCH && strcmp(word + 2, flags[i].name) == 0)
            return true;
    return false;
}

/* Separates arguments from options, in any order, and expands short options. */
static int split(int argc, char *const *argv, char **ret_argv, int *ret_argc, struct plugin_options *to,
                 struct berth_err *err)
{
    static char namespace[] = "--namespace", output[] = "--output";
    int len = 1;
    ret_argv[0] = argv[0];
    for (int i = 1; i < argc; i++) {
        char *word = strcmp(argv[i], "-n") == 0 ? namespace : strcmp(argv[i], "-o") == 0 ? output : argv[i];
        if (word[0] == '-') {
            ret_argv[len++] = word;
            if (strncmp(word, "--", 2) == 0 && takes_value(word) && i + 1 < argc)
                ret_argv[len++] = argv[++i];
            continue;
        }
        if (to->words_len == PLUGIN_WORDS_MAX)
            return err_set(err, EINVAL, "'%s' is one word too many; see 'kubectl berth --help'", word);
        to->words[to->words_len++] = word;
    }
    *ret_argc = len;
    return 0;
}

int plugin_options_read(int argc, char *const *argv, struct plugin_options *ret, struct berth_err *err)
{
    CLEANUP(mem) char **left = mem_array((size_t)argc + 1, sizeof *left);
    int len = 0;
    *ret = (struct plugin_options){.scheduler_name = SCHEDULERS, .profile = "default"};
    int rc = split(argc, argv, left, &len, ret, err);
    if (rc == 0)
        rc = flags_read("kubectl berth", flags, FLAGS, len, left, ret, err);
    if (rc < 0)
        return rc;
    if (ret->output && strcmp(ret->output, "json") != 0)
        return err_set(err, EINVAL, "-o is json, not '%s'; without it there is text for people", ret->output);
    return 0;
}

void plugin_help(FILE *to)
{
    (void)fprintf(
        to, "kubectl berth - why pods are where they are, and what those wait for that have no place.\n\n"
            "usage: kubectl berth why POD|JOB [OPTION...]\n"
            "       kubectl berth queue [OPTION...]\n"
            "       kubectl berth nodes [OPTION...]\n\n"
            "  why POD                  where it is and by which scores, or why it waits and what would help\n"
            "  why JOB                  the same of a Job of berth.dev; pod/NAME and job/NAME say which is meant\n"
            "  queue                    what waits, in the order of the plan; with -n of one namespace\n"
            "  nodes                    what nodes have, what is asked of them, and what is free\n\n");
    flags_print(flags, FLAGS, to);
    (void)fprintf(
        to,
        "\nLists what berth-kube watches and makes the plan that it makes; nothing is changed. Needs the rights of the\n"
        "role berth-viewer (packaging/kubernetes/rbac.yaml).\n"
        "\nexamples:\n"
        "  kubectl berth why train-0 -n vision\n"
        "  kubectl berth why job/train\n"
        "  kubectl berth queue -o json\n"
        "\nexit codes: 0 told, 1 failure or unknown name, 2 the command line is wrong\n");
}
