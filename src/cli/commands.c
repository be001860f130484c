#include "cli/command.h"

#include <stddef.h>
#include <string.h>

/* In the order of help. */
const struct command *const commands[] = {
    &plan_command,       &profiles_command, &bench_command, &bench_plan_command,
    &completion_command, &version_command,  &help_command,
};
const size_t commands_len = sizeof commands / sizeof commands[0];

static const char *const color_choices[] = {"auto", "always", "never", NULL};

const struct option common_options[] = {
    OPTION_CHOICE_ROW("color", 0, common_values, color, color_choices,
                      "Colours: on a terminal unless NO_COLOR is set (auto), always, or never."),
    OPTION_FLAG_ROW("help", 'h', common_values, help, "Print this help."),
};
const size_t common_options_len = sizeof common_options / sizeof common_options[0];

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
