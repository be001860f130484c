#include <errno.h>
#include <string.h>

#include "base/flag.h"
#include "base/mem.h"
#include "kube/kubectl/plugin.h"

/* The default of packaging/kubernetes. */
#define SCHEDULERS "berth,berth-pack=pack"

#define AT(field) offsetof(struct plugin_options, field)
static const struct flag flags[] = {
    {"namespace",      FLAG_TEXT,   AT(namespace),      "NAME",  0, 0, "or -n: namespace; the context's if not given"  },
    {"output",         FLAG_TEXT,   AT(output),         "json",  0, 0, "or -o: output format of queue and nodes"       },
    {"kubeconfig",     FLAG_TEXT,   AT(kubeconfig),     "FILE",  0, 0, "default: $KUBECONFIG, then ~/.kube/config"     },
    {"context",        FLAG_TEXT,   AT(context),        "NAME",  0, 0, "default: the current context of the kubeconfig"},
    {"scheduler-name", FLAG_TEXT,   AT(scheduler_name), "NAMES", 0, 0, "as for berth-kube; default: '" SCHEDULERS "'"  },
    {"profile",        FLAG_TEXT,   AT(profile),        "NAME",  0, 0, "as for berth-kube; default: 'default'"         },
    {"version",        FLAG_SWITCH, AT(version),        NULL,    0, 0, "print the version"                             },
    {"help",           FLAG_SWITCH, AT(help),           NULL,    0, 0, "print this help"                               },
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
            return err_set(err, EINVAL, "unexpected argument '%s'; see 'kubectl berth --help'", word);
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
        return err_set(err, EINVAL, "-o must be json, not '%s'; without it the output is text", ret->output);
    return 0;
}

void plugin_help(FILE *to)
{
    (void)fprintf(
        to, "kubectl berth - explains the placement of pods and why pods are pending.\n\n"
            "usage: kubectl berth why POD|JOB [OPTION...]\n"
            "       kubectl berth queue [OPTION...]\n"
            "       kubectl berth nodes [OPTION...]\n\n"
            "  why POD                  show the node and its scores, or why the pod is pending and what would help\n"
            "  why JOB                  the same for a Job of berth.dev; use pod/NAME or job/NAME if both exist\n"
            "  queue                    list pending pods and jobs in the order of the plan; with -n of one namespace\n"
            "  nodes                    list the allocatable, requested and free resources of nodes\n\n");
    flags_print(flags, FLAGS, to);
    (void)fprintf(to, "\nReads the objects that berth-kube watches and computes the same plan; changes nothing. Needs\n"
                      "the rights of the ClusterRole berth-viewer (packaging/kubernetes/rbac.yaml).\n"
                      "\nexamples:\n"
                      "  kubectl berth why train-0 -n vision\n"
                      "  kubectl berth why job/train\n"
                      "  kubectl berth queue -o json\n"
                      "\nexit codes: 0 success, 1 failure or unknown name, 2 invalid command line\n");
}
