#include "kube/kubectl/plugin.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "berth.h"
#include "kube/client/clock.h"
#include "kube/kubectl/plugin_list.h"
#include "kube/kubectl/plugin_lookup.h"

static int fail(FILE *trouble, const char *text)
{
    (void)fprintf(trouble, "kubectl berth: %s\n", text);
    return PLUGIN_FAILED;
}

static int list(struct plugin_query *a, const struct plugin_options *o, struct str *to, FILE *trouble,
                struct berth_err *err)
{
    struct plugin_view v;
    struct plugin_loaded *loaded;
    bool queue = strcmp(o->words[0], "queue") == 0;
    /* only the queue needs jobs: pending tasks are on no node */
    int rc = plugin_load(&a->link, &a->profiles, queue, &loaded, err);
    if (rc < 0)
        return rc;
    rc = plugin_view_init(&v, plugin_loaded_cache(loaded), plugin_loaded_tenants(loaded), &a->profiles, kube_wall_ns(),
                          err);
    if (rc == 0) {
        if (queue)
            plugin_queue(&v, o->namespace, o->output != NULL, to);
        else
            plugin_nodes(&v, o->output != NULL, to);
        plugin_view_done(&v);
    }
    size_t refused = plugin_loaded_refused(loaded);
    if (rc == 0 && refused)
        (void)fprintf(trouble, "%zu job%s left out: the API server rejects a dry run of the pods from your user.\n",
                      refused, refused == 1 ? " is" : "s are");
    plugin_loaded_free(loaded);
    return rc;
}

/* The verbs and their numbers of arguments. */
static const struct {
    const char *name;
    size_t words;
    const char *needs;
} verbs[] = {
    {"why",   2, "'why' needs the name of a pod or job: kubectl berth why POD"},
    {"queue", 1, "'queue' takes no arguments"                                 },
    {"nodes", 1, "'nodes' takes no arguments"                                 },
};

/* Returns what is wrong with the arguments; NULL: nothing. */
static const char *words_wrong(const struct plugin_options *o)
{
    if (o->words_len == 0)
        return "missing command: why, queue or nodes; see 'kubectl berth --help'";
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(verbs[i].name, o->words[0]) == 0)
            return o->words_len == verbs[i].words ? NULL : verbs[i].needs;
    return "unknown command; the commands are why, queue and nodes; see 'kubectl berth --help'";
}

static int kubectl_query(const struct plugin_options *o, FILE *out, FILE *trouble)
{
    struct plugin_query a = {0};
    struct berth_err err = {0};
    CLEANUP(str) struct str text = {0};
    arena_init(&a.arena);
    int rc = kube_profiles_read(o->scheduler_name, o->profile, &a.arena, &a.profiles, &err);
    if (rc == 0)
        rc = plugin_link_open(o->kubeconfig, o->context, &a.link, &err);
    if (rc == 0) {
        a.namespace = o->namespace ? o->namespace : a.link.server.namespace;
        rc = strcmp(o->words[0], "why") == 0 ? plugin_query_why(&a, o->words[1], &text, &err)
                                             : list(&a, o, &text, trouble, &err);
        plugin_link_close(&a.link);
    }
    arena_done(&a.arena);
    (void)fputs(str_text(&text), out);
    if (rc < 0)
        return fail(trouble, err.text);
    return fflush(out) == 0 ? PLUGIN_OK : PLUGIN_FAILED;
}

int plugin_run(int argc, char *const *argv, FILE *out, FILE *trouble)
{
    struct plugin_options o;
    struct berth_err err = {0};
    if (plugin_options_read(argc, argv, &o, &err) < 0) {
        (void)fail(trouble, err.text);
        return PLUGIN_USAGE;
    }
    if (o.help)
        plugin_help(out);
    else if (o.version)
        (void)fprintf(out, "kubectl-berth %s\n", berth_version());
    if (o.help || o.version)
        return fflush(out) == 0 ? PLUGIN_OK : PLUGIN_FAILED;
    const char *wrong = words_wrong(&o);
    if (wrong) {
        (void)fail(trouble, wrong);
        return PLUGIN_USAGE;
    }
    return kubectl_query(&o, out, trouble);
}
