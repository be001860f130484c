# driver.sh
# What: Load a kernel module now and at each boot, with its packages and parameters. Undo reverts all of it.
# Arguments: MODULE [PACKAGE...] [PARAMETER=VALUE...]
# shellcheck shell=sh disable=SC2317

loaded() { grep -q "^$(printf '%s' "$1" | tr - _) " "$ROOT/proc/modules"; }

split() {
    module=$1 packages='' parameters=''
    shift
    case $module in
    '' | -* | *[!A-Za-z0-9_-]*) fail "'$module' is no name of a module" ;;
    esac
    for one; do
        case $one in
        *=*) parameters="$parameters $one" ;;
        *) names_check "$one" && packages="$packages $one" ;;
        esac
    done
}

forward() {
    [ $# -gt 0 ] || fail "say which module"
    split "$@"
    if loaded "$module"; then keep loaded yes; else keep loaded no; fi
    if [ -n "$packages" ]; then
        # shellcheck disable=SC2086
        pkgs_note $packages
        pkg_refresh
        # shellcheck disable=SC2086
        pkg_install $packages
    fi
    save_file "/etc/modprobe.d/berth-$module.conf"
    save_file "/etc/modules-load.d/berth-$module.conf"
    if [ -n "$parameters" ]; then
        printf 'options %s%s\n' "$module" "$parameters" | put_file "/etc/modprobe.d/berth-$module.conf" 644
    fi
    # shellcheck disable=SC2086
    modprobe "$module" $parameters || fail "the module $module cannot be loaded"
    loaded "$module" || fail "the module $module is not loaded although modprobe said so"
    printf '%s\n' "$module" | put_file "/etc/modules-load.d/berth-$module.conf" 644
    say "$module is loaded"
}

back() {
    split "$@"
    restore_file "/etc/modules-load.d/berth-$module.conf"
    restore_file "/etc/modprobe.d/berth-$module.conf"
    if [ "$(kept loaded)" = no ] && loaded "$module"; then
        modprobe -r "$module" || fail "the module $module is in use; after the next start it is gone"
    fi
    rm -f "$KEPT/loaded"
    if [ -e "$KEPT/packages" ]; then pkgs_back; fi
}

start forward back "$@"
