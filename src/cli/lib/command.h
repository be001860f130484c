/* command.h - the table of verbs of `berth`.
 *
 * `berth help`, `berth help VERB`, `berth VERB --help`, the manual pages and the completion scripts are printed from
 * this table.
 *
 * To add a verb: a file in one of the folders of src/cli with its options and its `struct command`, and a row in
 * commands.c. Related one-line verbs ("app start", "app stop") may share a file.
 */
#pragma once

#include "cli/lib/cli.h"
#include "cli/lib/options.h"
#include "cli/system/context.h"

/* Sections of the help text, in order. */
enum command_section {
    SECTION_OBJECTS,
    SECTION_WORK,
    SECTION_CLUSTER,
    SECTION_PEOPLE,
    SECTION_FILES,
    SECTION_PROGRAM,
    SECTIONS
};

struct command {
    const char *name;     /* "plan"; with a group word: "bench plan" */
    const char *operands; /* as in the usage line: "FILE" */
    size_t operands_min, operands_max;
    const char *summary;  /* one line */
    const char *text;     /* printed below the options; NULL: none */
    const char *examples; /* shell lines; NULL: none */
    const struct option *options;
    size_t options_len;
    const void *defaults; /* initial option values; NULL: all zero */
    size_t values_size;
    enum command_section section;
    bool talks;               /* connects to a server: takes the connection options */
    bool hidden;              /* not listed by `berth help` */
    bool leading;             /* options are read only before the first operand; all later words are operands */
    const char *const *words; /* possible operands, for completion; ends with NULL; NULL: none */
    const char *ids;          /* kind whose ids complete operands, or IDS_OF_KIND; NULL: none */
    const void *arg;          /* for verbs that share a `run`, read as cli->command->arg */
    /* Returns an enum exit_code. */
    int (*run)(struct cli *cli, const void *values, const struct operands *operands);
};

/* The first operand names the kind of the other operands. */
#define IDS_OF_KIND "KIND"
/* Any number of operands. */
#define OPERANDS_ANY ((size_t)-1)

extern const struct command *const commands[];
extern const size_t commands_len;

/* First words of two-word verbs: "app" of "app start". */
struct family {
    const char *name, *summary;
    enum command_section section;
};
extern const struct family families[];
extern const size_t families_len;
/* Returns NULL if the family does not exist. */
const struct family *family_find(const char *name);
/* Returns the second word of a command of the family; NULL for a command of another family. */
const char *family_verb(const struct family *family, const struct command *command);
/* Returns the section's heading, such as "Objects of any kind". */
const char *section_title(enum command_section section);

/* Options of every verb: --help, --color. */
struct common_values {
    bool help;
    unsigned color; /* auto, always, never */
};
extern const struct option common_options[];
extern const size_t common_options_len;
/* Options of verbs that connect to a server; each may also stand before the verb. Values: struct connect_values. */
extern const struct option connect_options[];
extern const size_t connect_options_len;

/* Returns the verb that argv[0] (and argv[1]) name, and in *ret_words how many words its name has; NULL: no such
 * verb. */
const struct command *command_find(int argc, char *const *argv, int *ret_words);

/* Print the help from the tables (help.c). */
void help_print(const struct cli *cli);
void help_print_family(const struct cli *cli, const struct family *family);
void help_print_command(const struct cli *cli, const struct command *command);
/* Returns one line per exit code, for the help and the manual pages. */
const char *help_exit_codes(void);

/* Copies the placeholder that help shows for an option's value, such as "FILE" or "table|json"; "" for a flag. */
void option_value_text(const struct option *option, char *buf, size_t size);

extern const struct command sim_cluster_command, sim_swf_command, sim_openb_command, sim_muri_command, sim_run_command,
    sim_replay_command, sim_generate_command, sim_run_command, sim_replay_command;
extern const struct command plan_command, profiles_command, replay_command, bench_command, bench_plan_command,
    bench_queue_command, bench_daemon_command, bench_agent_command, completion_command, help_command, version_command,
    man_command;
extern const struct command journal_ls_command, journal_show_command, journal_grep_command, journal_verify_command,
    journal_export_command;
extern const struct command get_command, describe_command, apply_command, diff_command, edit_command, delete_command,
    why_command;
extern const struct command job_run_command, squeue_command, scancel_command, sinfo_command, sbatch_command,
    srun_command;
extern const struct command submit_command, wait_command, job_hold_command, job_release_command, job_cancel_command,
    job_requeue_command;
extern const struct command jobs_command, queue_command, queues_command, job_show_command, who_command,
    policy_list_command, policy_show_command, policy_test_command;
extern const struct command usage_command, bill_command;
extern const struct command migrate_command, migrations_command, migration_undo_command;
extern const struct command logs_command, exec_command, signal_command, cp_command, url_command, top_command;
extern const struct command job_ls_command, app_ls_command, vm_ls_command, user_ls_command, group_ls_command;
extern const struct command app_add_command, app_rm_command, app_start_command, app_stop_command, app_restart_command,
    app_scale_command, app_settings_command, app_install_command;
extern const struct command secret_set_command, secret_ls_command, secret_rm_command;
extern const struct command vm_start_command, vm_stop_command, vm_restart_command, vm_rm_command;
extern const struct command node_accept_command, node_ls_command, node_add_command, node_rm_command, node_drain_command,
    node_cordon_command, node_enable_command, node_disable_command, node_capabilities_command, node_settings_command;
extern const struct command optask_run_command, optask_ready_command, optask_list_command, optask_show_command,
    optask_logs_command, optask_retry_command, optask_undo_command, optask_rm_command;
extern const struct command status_command, gateway_command, schedule_command, events_command, system_settings_command,
    system_services_command, system_configure_command, system_restart_command, system_enable_command,
    system_disable_command, backup_command, restore_command;
extern const struct command quota_show_command, quota_set_command;
extern const struct command whoami_command, audit_command, user_add_command, user_rm_command, user_disable_command,
    user_enable_command, user_export_command, user_import_command, group_add_command, group_rm_command,
    token_add_command, token_ls_command, token_rm_command;
extern const struct command context_ls_command, context_use_command, context_add_command, context_rm_command,
    context_show_command;
