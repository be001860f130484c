# package-install.sh
# What: Install packages, or given versions of them. Undo removes new packages and restores earlier versions.
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
