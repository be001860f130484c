/* plugin_main.c - kubectl-berth: the process; all else is kube/kubectl/plugin.h. */
#include <signal.h>

#include "kube/kubectl/plugin.h"

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return plugin_run(argc, argv, stdout, stderr);
}
