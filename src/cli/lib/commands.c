#include "cli/lib/command.h"

#include <stddef.h>
#include <string.h>

/* Within each section in the order of the help text. */
const struct command *const commands[] = {
    &get_command,
    &describe_command,
    &why_command,
    &apply_command,
    &diff_command,
    &edit_command,
    &delete_command,

    &submit_command,
    &job_run_command,
    &logs_command,
    &exec_command,
    &signal_command,
    &migrate_command,
    &migrations_command,
    &migration_undo_command,
    &cp_command,
    &url_command,
    &jobs_command,
    &queue_command,
    &queues_command,
    &job_ls_command,
    &job_show_command,
    &job_hold_command,
    &job_release_command,
    &job_cancel_command,
    &job_requeue_command,
    &wait_command,
    &squeue_command,
    &scancel_command,
    &sinfo_command,
    &sbatch_command,
    &srun_command,
    &app_ls_command,
    &app_add_command,
    &app_rm_command,
    &app_start_command,
    &app_stop_command,
    &app_restart_command,
    &app_scale_command,
    &app_settings_command,
    &app_install_command,
    &secret_set_command,
    &secret_ls_command,
    &secret_rm_command,
    &vm_ls_command,
    &vm_start_command,
    &vm_stop_command,
    &vm_restart_command,
    &vm_rm_command,

    &status_command,
    &events_command,
    &top_command,
    &who_command,
    &policy_list_command,
    &policy_show_command,
    &policy_test_command,
    &schedule_command,
    &gateway_command,
    &node_ls_command,
    &node_add_command,
    &node_rm_command,
    &node_drain_command,
    &node_accept_command,
    &node_cordon_command,
    &node_enable_command,
    &node_disable_command,
    &node_capabilities_command,
    &node_settings_command,
    &optask_run_command,
    &optask_ready_command,
    &optask_list_command,
    &optask_show_command,
    &optask_logs_command,
    &optask_retry_command,
    &optask_undo_command,
    &optask_rm_command,
    &system_settings_command,
    &system_services_command,
    &system_configure_command,
    &system_restart_command,
    &system_enable_command,
    &system_disable_command,
    &backup_command,
    &restore_command,

    &quota_show_command,
    &quota_set_command,
    &whoami_command,
    &usage_command,
    &bill_command,
    &audit_command,
    &user_ls_command,
    &user_add_command,
    &user_rm_command,
    &user_disable_command,
    &user_enable_command,
    &user_export_command,
    &user_import_command,
    &group_ls_command,
    &group_add_command,
    &group_rm_command,
    &token_add_command,
    &token_ls_command,
    &token_rm_command,
    &context_ls_command,
    &context_use_command,
    &context_add_command,
    &context_rm_command,
    &context_show_command,

    &plan_command,
    &profiles_command,
    &replay_command,
    &journal_ls_command,
    &journal_show_command,
    &journal_grep_command,
    &journal_verify_command,
    &journal_export_command,
    &sim_cluster_command,
    &sim_swf_command,
    &sim_openb_command,
    &sim_muri_command,
    &sim_generate_command,
    &sim_run_command,
    &sim_replay_command,
    &bench_command,
    &bench_plan_command,
    &bench_queue_command,
    &bench_daemon_command,
    &bench_agent_command,

    &completion_command,
    &man_command,
    &version_command,
    &help_command,
};
const size_t commands_len = sizeof commands / sizeof commands[0];

const struct family families[] = {
    {"job",       "Hold, release, cancel and requeue jobs.",                   SECTION_WORK   },
    {"app",       "Add, start, stop, scale and configure apps.",               SECTION_WORK   },
    {"secret",    "Set and remove secrets, which apps see as files.",          SECTION_WORK   },
    {"vm",        "Start, stop and remove virtual machines.",                  SECTION_WORK   },
    {"migration", "Undo migrations of pods.",                                  SECTION_WORK   },
    {"node",      "Add, drain, cordon and configure nodes.",                   SECTION_CLUSTER},
    {"optask",    "Run and undo scripts on nodes, once on each node.",         SECTION_CLUSTER},
    {"policy",    "List, show and test the policies that order queues.",       SECTION_CLUSTER},
    {"system",    "Show and change system settings and system services.",      SECTION_CLUSTER},
    {"journal",   "List, read, verify and export a daemon's journal.",         SECTION_FILES  },
    {"user",      "Add, disable, export and import users.",                    SECTION_PEOPLE },
    {"group",     "Add and remove groups.",                                    SECTION_PEOPLE },
    {"quota",     "Show and set the quotas of users, groups and queues.",      SECTION_PEOPLE },
    {"token",     "Create and revoke tokens.",                                 SECTION_PEOPLE },
    {"sim",       "Simulate job traces and whole clusters in virtual time.",   SECTION_FILES  },
    {"context",   "Manage the configured servers and select the current one.", SECTION_PEOPLE },
};
const size_t families_len = sizeof families / sizeof families[0];

static const char *const section_titles[SECTIONS] = {
    [SECTION_OBJECTS] = "Objects of every kind",
    [SECTION_WORK] = "Apps, jobs and virtual machines",
    [SECTION_CLUSTER] = "Cluster",
    [SECTION_PEOPLE] = "Users, quotas and servers",
    [SECTION_FILES] = "Commands that need no server",
    [SECTION_PROGRAM] = "Other commands",
};

const char *section_title(enum command_section section)
{
    return section_titles[section];
}

static const char *const color_choices[] = {"auto", "always", "never", NULL};

const struct option common_options[] = {
    OPTION_CHOICE_ROW("color", 0, common_values, color, color_choices,
                      "When to use colours; auto: on a terminal, unless NO_COLOR is set."),
    OPTION_FLAG_ROW("help", 'h', common_values, help, "Print this help."),
};
const size_t common_options_len = sizeof common_options / sizeof common_options[0];

const struct option connect_options[] = {
    OPTION_TEXT_ROW("server", 0, connect_values, server, "URL",
                    "URL of the server. Default: $BERTH_SERVER, the context's server, or " SERVER_DEFAULT "."),
    OPTION_TEXT_ROW("token-file", 0, connect_values, token_file, "FILE",
                    "File with the token. Default: $BERTH_TOKEN, $BERTH_TOKEN_FILE, or the context's token."),
    OPTION_TEXT_ROW("ca", 0, connect_values, ca, "FILE",
                    "Trust the CA certificates in this file instead of the system's."),
    OPTION_TEXT_ROW("pin", 0, connect_values, pin, "PIN",
                    "Trust only this public key (sha256//...), which berthd prints when it starts."),
    OPTION_TEXT_ROW("context", 0, connect_values, context, "NAME",
                    "Context to use; see 'berth context'. Default: $BERTH_CONTEXT, or the current context."),
};
const size_t connect_options_len = sizeof connect_options / sizeof connect_options[0];

const struct family *family_find(const char *name)
{
    for (size_t i = 0; i < families_len; i++)
        if (strcmp(families[i].name, name) == 0)
            return &families[i];
    return NULL;
}

const char *family_verb(const struct family *family, const struct command *command)
{
    size_t len = strlen(family->name);

    return strncmp(command->name, family->name, len) == 0 && command->name[len] == ' ' ? command->name + len + 1 : NULL;
}

const struct command *command_find(int argc, char *const *argv, int *ret_words)
{
    const struct command *found = NULL;

    for (size_t i = 0; i < commands_len; i++) {
        const char *name = commands[i]->name;
        size_t first = strcspn(name, " ");
        bool two = name[first] == ' ';

        if (argc < 1 + two || strlen(argv[0]) != first || strncmp(name, argv[0], first) != 0)
            continue;
        if (two && strcmp(name + first + 1, argv[1]) != 0)
            continue;
        if (!found || two) {
            found = commands[i];
            *ret_words = 1 + two;
        }
    }
    return found;
}
