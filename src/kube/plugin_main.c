/* plugin_main.c - kubectl-berth: the process; all else is kube/plugin.h. */
#include <signal.h>

#include "kube/plugin.h"

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return plugin_run(argc, argv, stdout, stderr);
}
