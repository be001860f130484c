#include "cli/slurm/sbatch.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/show/listing.h"
#include "cli/slurm/time_text.h"
#include "wire/text/document.h"

/* ---- resources -------------------------------------------------------------------------------------------------- */

struct job_builder {
    const struct slurm_values *v;
    const struct slurm_script *script;
    json_t *to, *notes;
    struct berth_err *err;
    int64_t nodes, tasks, per_node, cpus; /* 0: not given */
    bool once;                            /* the script runs once, with the resources of all its tasks */
};

__attribute__((format(printf, 2, 3))) static void note(struct job_builder *m, const char *fmt, ...)
{
    char text[256];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    (void)json_array_append_new(m->notes, json_string(text));
}

static int whole_number_parse(struct job_builder *m, const char *option, const char *text, int64_t *ret)
{
    if (!text)
        return 0;
    if (strspn(text, "0123456789") != strlen(text) || strlen(text) > 7 || atoll(text) < 1)
        return err_set(m->err, EINVAL, "--%s takes a whole number, not '%s'", option, text);
    *ret = atoll(text);
    return 0;
}

/* Parses "2" or "1-4"; the upper number is used. */
static int nodes_read(struct job_builder *m)
{
    const char *dash = m->v->nodes ? strchr(m->v->nodes, '-') : NULL;
    CLEANUP(mem) char *least = dash ? mem_strdup(m->v->nodes) : NULL;

    if (!dash)
        return whole_number_parse(m, "nodes", m->v->nodes, &m->nodes);
    least[dash - m->v->nodes] = '\0';
    note(m, "--nodes=%s: the upper number is used", m->v->nodes);
    return whole_number_parse(m, "nodes", dash + 1, &m->nodes);
}

static int tasks_make(struct job_builder *m)
{
    int rc = nodes_read(m);
    if (rc == 0)
        rc = whole_number_parse(m, "ntasks", m->v->ntasks, &m->tasks);
    if (rc == 0)
        rc = whole_number_parse(m, "ntasks-per-node", m->v->ntasks_per_node, &m->per_node);
    if (rc == 0)
        rc = whole_number_parse(m, "cpus-per-task", m->v->cpus_per_task, &m->cpus);
    if (rc < 0)
        return rc;
    int64_t nodes = m->nodes ? m->nodes : 1;
    if (!m->tasks)
        m->tasks = nodes * (m->per_node ? m->per_node : 1);
    if (!m->per_node)
        m->per_node = (m->tasks + nodes - 1) / nodes;
    m->once = nodes == 1 && m->tasks > 1 && !m->script->srun;
    if (m->once || m->tasks <= 1)
        return 0;
    (void)json_object_set_new(m->to, "replicas", json_integer(m->tasks));
    (void)json_object_set_new(m->to, "gang", json_true());
    if (m->nodes)
        (void)json_object_set_new(m->to, "max_per_node", json_integer(m->per_node));
    if (!m->script->srun)
        note(m, "the script runs in every task, not only in the first");
    return 0;
}

/* Parses "4G", "4000M" or "4000", in MiB. */
static int mebibytes(struct job_builder *m, const char *option, const char *text, int64_t *ret)
{
    static const char units[] = "KMGT";
    char *end = NULL;
    double n = strtod(text, &end);
    const char *unit = *end ? strchr(units, *end & ~0x20) : units + 1;

    if (end == text || n < 0 || n > 1e9 || !unit || (*end && end[1] && strcasecmp(end + 1, "B") != 0))
        return err_set(m->err, EINVAL, "--%s takes a size such as 4G or 500M, not '%s'", option, text);
    for (const char *at = units + 1; at < unit; at++)
        n *= 1024;
    *ret = (int64_t)(unit == units ? n / 1024 : n);
    *ret += *ret == 0 && n > 0;
    return 0;
}

/* Returns the share of one task; the whole amount if the script runs once. */
static int64_t share(const struct job_builder *m, int64_t of_node)
{
    return m->once || m->per_node <= 1 ? of_node : (of_node + m->per_node - 1) / m->per_node;
}

static int resources_make(struct job_builder *m, int64_t gpus)
{
    json_t *resources = json_object();
    int64_t cores = (m->cpus ? m->cpus : 1) * (m->once ? m->tasks : 1), size = -1;
    char text[32];
    int rc = 0;

    (void)json_object_set_new(m->to, "resources", resources);
    (void)json_object_set_new(resources, "cpu", json_integer(cores));
    if (m->v->mem) {
        rc = mebibytes(m, "mem", m->v->mem, &size);
        size = share(m, size);
    } else if (m->v->mem_per_cpu) {
        rc = mebibytes(m, "mem-per-cpu", m->v->mem_per_cpu, &size);
        size *= cores;
    } else if (m->v->mem_per_gpu) {
        rc = mebibytes(m, "mem-per-gpu", m->v->mem_per_gpu, &size);
        size *= gpus > 0 ? gpus : 1;
    }
    if (rc < 0 || size <= 0) /* as in Slurm, 0 means all of the node's memory */
        return rc;
    (void)snprintf(text, sizeof text, size % 1024 ? "%" PRId64 "Mi" : "%" PRId64 "Gi",
                   size % 1024 ? size : size / 1024);
    (void)json_object_set_new(resources, "memory", json_string(text));
    return 0;
}

/* Parses "N", "MODEL:N" or "MODEL". */
static int gpus_parse(struct job_builder *m, const char *option, const char *text, int64_t *ret_count,
                      char model[static 64])
{
    const char *colon = strrchr(text, ':');
    const char *count = colon ? colon + 1 : text;
    bool digits = *count && strspn(count, "0123456789") == strlen(count) && strlen(count) < 5;
    size_t len = digits ? (colon ? (size_t)(colon - text) : 0) : strlen(text);

    if (len >= 64 || (!digits && colon))
        return err_set(m->err, EINVAL, "--%s takes N or MODEL:N, not '%s'", option, text);
    *ret_count = digits ? atoll(count) : 1;
    memcpy(model, text, len);
    model[len] = '\0';
    return 0;
}

/* Finds the GPUs in "gpu:a100:4,tmp:2". The caller frees *ret_text; NULL: none. */
static void gres_find(struct job_builder *m, const char *text, char **ret_text)
{
    CLEANUP(mem) char *copy = mem_strdup(text);
    char *rest = NULL;

    for (char *word = strtok_r(copy, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
        char *bracket = strchr(word, '(');
        if (bracket)
            *bracket = '\0';
        if (strncmp(word, "gpu", 3) == 0 && (word[3] == ':' || !word[3]))
            *ret_text = mem_strdup(word[3] ? word + 4 : "1");
        else
            note(m, "--gres: '%s' is not supported; request resources with #BERTH --resource", word);
    }
}

static int gpus_make(struct job_builder *m, int64_t *ret)
{
    CLEANUP(mem) char *gres = NULL;
    char model[64] = "";
    int rc = 0;
    bool by_task = m->v->gpus_per_task != NULL, by_node = false;

    *ret = 0;
    if (m->v->gres)
        gres_find(m, m->v->gres, &gres);
    if (by_task) {
        rc = gpus_parse(m, "gpus-per-task", m->v->gpus_per_task, ret, model);
    } else if (m->v->gpus_per_node || gres) {
        by_node = true;
        rc = gpus_parse(m, gres ? "gres" : "gpus-per-node", gres ? gres : m->v->gpus_per_node, ret, model);
    } else if (m->v->gpus) {
        rc = gpus_parse(m, "gpus", m->v->gpus, ret, model);
        if (!m->once)
            *ret = (*ret + m->tasks - 1) / m->tasks;
    }
    if (rc < 0)
        return rc;
    if (by_task && m->once)
        *ret *= m->tasks;
    if (by_node)
        *ret = share(m, *ret);
    if (*ret == 0)
        return 0;
    json_t *gpu = json_pack("{s:I}", "count", (json_int_t)*ret);
    if (model[0])
        (void)json_object_set_new(gpu, "model", json_string(model));
    (void)json_object_set_new(m->to, "gpu", gpu);
    return 0;
}

/* ---- times ------------------------------------------------------------------------------------------------------ */

static int times_make(struct job_builder *m)
{
    const struct {
        const char *option, *key, *text;
    } spans[] =
        {
            {"time",     "time_limit", m->v->time    },
            {"time-min", "estimate",   m->v->time_min},
    },
      moments[] = {
          {"begin", "begin", m->v->begin},
          {"deadline", "deadline", m->v->deadline},
      };
    char text[SPAN_TEXT_MAX], range[RANGE_TEXT_MAX];

    for (size_t i = 0; i < 2; i++) {
        if (!spans[i].text || strcasecmp(spans[i].text, "UNLIMITED") == 0 || strcasecmp(spans[i].text, "INFINITE") == 0)
            continue;
        int rc = duration_text_read(spans[i].text, 60, text, m->err);
        if (rc < 0)
            return rc;
        (void)json_object_set_new(m->to, spans[i].key, json_string(text));
    }
    for (size_t i = 0; i < 2; i++) {
        int rc = moments[i].text ? time_text_read(moments[i].text, wall_clock_ns(), text, m->err) : 0;
        if (rc < 0)
            return rc;
        if (moments[i].text)
            (void)json_object_set_new(m->to, moments[i].key, json_string(text));
    }
    int rc = m->v->array ? range_read(m->v->array, range, m->err) : 0;
    if (rc == 0 && m->v->array)
        (void)json_object_set_new(m->to, "array", json_string(range));
    return rc;
}

static const char *dependency_when(struct job_builder *m, const char *word)
{
    static const struct {
        const char *slurm, *when;
    } rows[] = {
        {"after",      "started"},
        {"afterany",   "ended"  },
        {"afterok",    "ok"     },
        {"afternotok", "failed" },
        {"aftercorr",  "ok"     },
    };

    if (strcmp(word, "aftercorr") == 0)
        note(m, "--dependency: %s waits for the whole array", word);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (strcmp(word, rows[i].slurm) == 0)
            return rows[i].when;
    return NULL;
}

static int dependency_part(struct job_builder *m, char *part, json_t *list)
{
    char *rest = NULL, *word = strtok_r(part, ":", &rest);
    const char *when = word ? dependency_when(m, word) : NULL;

    if (word && strcmp(word, "singleton") == 0) {
        (void)json_object_set_new(m->to, "singleton", json_true());
        return 0;
    }
    if (!when)
        return err_set(m->err, EINVAL,
                       "--dependency: unknown type '%s'; use after, afterany, afterok, afternotok or singleton",
                       word ? word : "");
    while ((word = strtok_r(NULL, ":", &rest))) {
        size_t digits = strspn(word, "0123456789");
        if (!digits || digits > 18 || (word[digits] && word[digits] != '+' && word[digits] != '_'))
            return err_set(m->err, EINVAL, "--dependency: '%s' is not a job number", word);
        if (word[digits])
            note(m, "--dependency: only the job number of '%s' is used", word);
        (void)json_array_append_new(list,
                                    json_pack("{s:I, s:s}", "job", (json_int_t)strtoll(word, NULL, 10), "when", when));
    }
    return 0;
}

static int dependency_make(struct job_builder *m)
{
    CLEANUP(json) json_t *list = json_array();
    CLEANUP(mem) char *copy = m->v->dependency ? mem_strdup(m->v->dependency) : NULL;
    char *rest = NULL;
    int rc = 0;

    if (!copy)
        return 0;
    if (strchr(copy, '?'))
        return err_set(m->err, EINVAL, "--dependency: '?' is not supported; all dependencies must be met");
    for (char *part = strtok_r(copy, ",", &rest); part && rc == 0; part = strtok_r(NULL, ",", &rest))
        rc = dependency_part(m, part, list);
    if (json_array_size(list))
        (void)json_object_set(m->to, "after", list);
    return rc;
}

/* ---- placement -------------------------------------------------------------------------------------------------- */

static json_t *words_of(const char *text, const char *between)
{
    CLEANUP(mem) char *copy = mem_strdup(text);
    json_t *list = json_array();
    char *rest = NULL;

    for (char *word = strtok_r(copy, between, &rest); word; word = strtok_r(NULL, between, &rest))
        (void)json_array_append_new(list, json_string(word));
    return list;
}

/* Adds "KEY=VALUE", or the name of a label that must exist. */
static void label_add(json_t *term, const char *word)
{
    const char *equals = strchr(word, '=');
    CLEANUP(mem) char *key = mem_strdup(word);

    if (equals)
        key[equals - word] = '\0';
    (void)json_object_set_new(term, key, equals ? json_string(equals + 1) : json_pack("{s:b}", "exists", 1));
}

static void placement_make(struct job_builder *m)
{
    json_t *require = json_object(), *word;
    size_t i;

    if (m->v->nodelist && !strpbrk(m->v->nodelist, ",["))
        (void)json_object_set_new(m->to, "node", json_string(m->v->nodelist));
    else if (m->v->nodelist)
        (void)json_object_set_new(require, "hostname", words_of(m->v->nodelist, ","));
    if (m->v->exclude)
        (void)json_object_set_new(require, "hostname", json_pack("{s:o}", "not_in", words_of(m->v->exclude, ",")));
    const char *labels = m->v->constraint;
    if (labels && strchr(labels, '|')) {
        json_t *any = json_array(), *words = words_of(labels, "|");
        json_array_foreach(words, i, word)
        {
            json_t *term = json_object();
            label_add(term, json_string_value(word));
            (void)json_array_append_new(any, term);
        }
        json_decref(words);
        json_decref(require);
        require = json_pack("{s:o}", "any", any);
        if (m->v->exclude)
            note(m, "--exclude=%s: cannot be combined with a --constraint that contains '|'", m->v->exclude);
    } else if (labels) {
        json_t *words = words_of(labels, "&,");
        json_array_foreach(words, i, word) label_add(require, json_string_value(word));
        json_decref(words);
    }
    if (json_object_size(require))
        (void)json_object_set(m->to, "require", require);
    json_decref(require);
}

/* ---- notifications and other options ---------------------------------------------------------------------------- */

static void mail_make(struct job_builder *m)
{
    static const struct {
        const char *slurm, *on;
    } rows[] = {
        {"BEGIN",          "started"  },
        {"END",            "ended"    },
        {"FAIL",           "failed"   },
        {"REQUEUE",        "preempted"},
        {"INVALID_DEPEND", "failed"   },
    };
    json_t *on = json_array(), *words = words_of(m->v->mail_type ? m->v->mail_type : "END,FAIL", ","), *word;
    size_t i;

    json_array_foreach(words, i, word) for (size_t r = 0; r < sizeof rows / sizeof *rows;
                                            r++) if (strcasecmp(json_string_value(word), rows[r].slurm) == 0 ||
                                                     (strcasecmp(json_string_value(word), "ALL") == 0 && r < 4))(void)
        json_array_append_new(on, json_string(rows[r].on));
    if (m->v->mail_user && json_array_size(on))
        (void)json_object_set_new(m->to, "notify", json_pack("[{s:s, s:O}]", "to", m->v->mail_user, "on", on));
    else if (m->v->mail_type && !m->v->mail_user && json_array_size(on))
        note(m, "--mail-type=%s: ignored without --mail-user", m->v->mail_type);
    json_decref(on);
    json_decref(words);
}

/* Parses "[B:|R:]USR1[@60]". */
static int signal_make(struct job_builder *m)
{
    const char *text = m->v->signal, *at;
    char grace[SPAN_TEXT_MAX] = "60s";
    int rc = 0;

    if (!text)
        return 0;
    const char *colon = strrchr(text, ':');
    text = colon ? colon + 1 : text;
    at = strchr(text, '@');
    if (at)
        rc = duration_text_read(at + 1, 1, grace, m->err);
    json_t *checkpoint = json_object();
    (void)json_object_set_new(checkpoint, "signal", json_stringn(text, at ? (size_t)(at - text) : strlen(text)));
    (void)json_object_set_new(checkpoint, "grace", json_string(grace));
    (void)json_object_set_new(m->to, "checkpoint", checkpoint);
    return rc;
}

static int number_make(struct job_builder *m, const char *option, const char *key, const char *text, int sign)
{
    char *end = NULL;

    if (!text)
        return 0;
    long n = strtol(text, &end, 10);
    if (end == text || *end || n > 1000000 || n < -1000000)
        return err_set(m->err, EINVAL, "--%s takes a whole number, not '%s'", option, text);
    if (strcmp(key, "urgency") == 0 && (n > 1000 || n < -1000))
        n = n > 0 ? 1000 : -1000;
    (void)json_object_set_new(m->to, key, json_integer(sign * n));
    return 0;
}

static void attributes_make(struct job_builder *m)
{
    const struct {
        const char *key, *text;
    } rows[] = {
        {"account", m->v->account},
        {"qos",     m->v->qos    },
        {"comment", m->v->comment},
    };
    json_t *attributes = json_object();

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].text)
            (void)json_object_set_new(attributes, rows[i].key, json_string(rows[i].text));
    if (json_object_size(attributes))
        (void)json_object_set(m->to, "attributes", attributes);
    json_decref(attributes);
}

/* Adds notes for options without a counterpart. */
static void notes_make(struct job_builder *m)
{
    const struct {
        const char *option, *text, *note;
    } rows[] = {
        {"output",      m->v->output,      "ignored: Berth keeps the output; 'berth logs JOB' shows it"       },
        {"input",       m->v->input,       "ignored: a job has no standard input; open the file in the script"},
        {"reservation", m->v->reservation, "ignored: windows admit their users automatically"                 },
        {"licenses",    m->v->licenses,    "not supported; request a resource with #BERTH --resource"         },
        {"tmp",         m->v->tmp,         "not supported"                                                    },
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].text)
            note(m, "--%s=%s: %s", rows[i].option, rows[i].text, rows[i].note);
    if (m->v->exclusive)
        note(m, "--exclusive: not supported; request all cores of a node instead");
}

/* Sets the SLURM_* variables known at submission; the agent adds the others when a task starts. */
static void env_make(struct job_builder *m)
{
    char folder[4096];
    json_t *env = json_object();
    const char *base = m->script->name ? strrchr(m->script->name, '/') : NULL;
    const char *name = m->v->job_name ? m->v->job_name : base ? base + 1 : m->script->name;

    (void)json_object_set_new(env, "SLURM_JOB_NAME", json_string(name ? name : "sbatch"));
    if (getcwd(folder, sizeof folder))
        (void)json_object_set_new(env, "SLURM_SUBMIT_DIR", json_string(folder));
    if (m->v->partition)
        (void)json_object_set_new(env, "SLURM_JOB_PARTITION", json_string(m->v->partition));
    if (m->v->account)
        (void)json_object_set_new(env, "SLURM_JOB_ACCOUNT", json_string(m->v->account));
    if (m->v->cpus_per_task)
        (void)json_object_set_new(env, "SLURM_CPUS_PER_TASK", json_string(m->v->cpus_per_task));
    if (m->v->ntasks_per_node)
        (void)json_object_set_new(env, "SLURM_NTASKS_PER_NODE", json_string(m->v->ntasks_per_node));
    (void)json_object_set_new(m->to, "env", env);
}

int slurm_make(const struct slurm_values *v, const struct slurm_script *script, json_t *ret, json_t *notes,
               struct berth_err *err)
{
    struct job_builder m = {.v = v, .script = script, .to = ret, .notes = notes, .err = err};
    int64_t gpus = 0;
    int rc = tasks_make(&m);

    if (rc == 0)
        rc = gpus_make(&m, &gpus);
    if (rc == 0)
        rc = resources_make(&m, gpus);
    if (rc == 0)
        rc = times_make(&m);
    if (rc == 0)
        rc = dependency_make(&m);
    if (rc == 0)
        rc = signal_make(&m);
    if (rc == 0)
        rc = number_make(&m, "nice", "urgency", v->nice, -1);
    if (rc == 0)
        rc = number_make(&m, "priority", "priority", v->priority, 1);
    if (rc < 0)
        return rc;
    placement_make(&m);
    mail_make(&m);
    attributes_make(&m);
    notes_make(&m);
    env_make(&m);
    if (v->job_name)
        (void)json_object_set_new(ret, "name", json_string(v->job_name));
    if (v->partition)
        (void)json_object_set_new(ret, "queue", json_string(v->partition));
    if (v->chdir)
        (void)json_object_set_new(ret, "workdir", json_string(v->chdir));
    if (v->hold)
        (void)json_object_set_new(ret, "hold", json_true());
    if (v->requeue || v->no_requeue)
        (void)json_object_set_new(ret, "requeue", json_boolean(!v->no_requeue));
    return 0;
}
