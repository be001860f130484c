# package-install.sh
# What: Install packages, or one version of them. Undo removes what was not there and brings back versions that were.
# Arguments: NAME[=VERSION]...
# shellcheck shell=sh disable=SC2317

forward() {
    names_check "$@"
    pkgs_note "$@"
    pkg_refresh
    pkg_install "$@"
    for one; do
        version=$(pkg_version "${one%%=*}")
        [ -n "$version" ] || fail "${one%%=*} is not installed although the package manager said so" "$PACKAGE_MANAGER"
        say "${one%%=*} $version"
    done
}

back() { pkgs_back; }

start forward back "$@"
