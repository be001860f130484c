/* plugin_main.c - the process kubectl-berth; everything else is in kube/kubectl/plugin.h. */
#include <signal.h>

#include "kube/kubectl/plugin.h"

int main(int argc, char **argv)
{
    (void)signal(SIGPIPE, SIG_IGN);
    return plugin_run(argc, argv, stdout, stderr);
}
