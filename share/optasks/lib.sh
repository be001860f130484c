#!/bin/sh
# lib.sh - common part of the ready OpTasks: the family of the system, packages, files that can be restored, exit codes.
#
# A script calls `start do undo "$@"`, which runs one of these two functions with the arguments. Everything that an undo
# needs is stored in $BERTH_CHECKPOINT before anything is changed. Tests set BERTH_ROOT, another root folder for files.
# shellcheck disable=SC2034,SC2317
set -eu

LC_ALL=C
export LC_ALL DEBIAN_FRONTEND=noninteractive
ROOT=${BERTH_ROOT:-}
KEPT=${BERTH_CHECKPOINT:?is set by berth-agent}
# Exit codes with a meaning for the agent.
NO_SPACE=80 NETWORK=81 PACKAGE_MANAGER=82 AGAIN=75

say() { printf '%s\n' "$*"; }

# fail TEXT [CODE]
fail() {
    printf '%s\n' "$1" >&2
    exit "${2:-1}"
}

have() { command -v "$1" >/dev/null 2>&1; }

start() {
    if [ -n "${BERTH_UNDO:-}" ]; then forward=$2; else forward=$1; fi
    shift 2
    "$forward" "$@"
}

# Prints the family of this system: debian, rhel or alpine.
family() {
    [ -r "$ROOT/etc/os-release" ] || fail "there is no /etc/os-release, so nobody knows what this system is"
    # shellcheck disable=SC1091
    names=$(. "$ROOT/etc/os-release" && echo "${ID:-} ${ID_LIKE:-}")
    for name in $names; do
        case $name in
        debian | ubuntu) echo debian && return ;;
        rhel | fedora | centos | rocky | almalinux) echo rhel && return ;;
        alpine) echo alpine && return ;;
        esac
    done
    fail "this system ($names) is of none of the families debian, rhel and alpine"
}

# Sets FAMILY, or exits if the system is unknown.
know_family() { [ -n "${FAMILY:-}" ] || FAMILY=$(family); }

# ---- data for the undo -----------------------------------------------------------------------------------------------

# keep NAME TEXT: stores the text, unless an earlier run has stored one.
keep() { [ -e "$KEPT/$1" ] || { printf '%s\n' "$2" >"$KEPT/$1.new" && mv "$KEPT/$1.new" "$KEPT/$1"; }; }

# kept NAME: prints the stored text; fails if there is none.
kept() { cat "$KEPT/$1" 2>/dev/null; }

# ---- files ----

slug() { printf '%s' "$1" | tr '/ ' '__'; }

# save_file PATH: stores a copy of the file or that it is absent, unless an earlier run has.
save_file() {
    saved=$KEPT/file$(slug "$1")
    if [ -e "$saved" ] || [ -e "$saved.absent" ]; then return 0; fi
    if [ -e "$ROOT$1" ]; then
        cp -p "$ROOT$1" "$saved.new"
        mv "$saved.new" "$saved"
    else
        : >"$saved.absent"
    fi
}

# restore_file PATH: restores the saved state; a file that was never saved stays unchanged.
restore_file() {
    saved=$KEPT/file$(slug "$1")
    if [ -e "$saved" ]; then
        cp -p "$saved" "$ROOT$1.berth-new"
        mv "$ROOT$1.berth-new" "$ROOT$1"
    elif [ -e "$saved.absent" ]; then
        rm -f "$ROOT$1"
    fi
    rm -f "$saved" "$saved.absent"
}

# put_file PATH MODE: writes standard input to the file atomically: readers see either the old or the new content.
put_file() {
    mkdir -p "$(dirname "$ROOT$1")"
    (umask 077 && cat >"$ROOT$1.berth-new") || fail "cannot write $1" "$NO_SPACE"
    chmod "$2" "$ROOT$1.berth-new"
    sync "$ROOT$1.berth-new" 2>/dev/null || sync
    mv "$ROOT$1.berth-new" "$ROOT$1"
}

# ---- packages ----

# manage COMMAND...: runs a package manager; if it fails, exits with the code of the fault.
manage() {
    out=$KEPT/manager.out
    rc=$KEPT/manager.rc
    { "$@" 2>&1 && echo 0 >"$rc" || echo $? >"$rc"; } | tee "$out"
    code=$(cat "$rc")
    [ "$code" != 0 ] || return 0
    if [ "$1" = in_slot ]; then shift; fi # the function of system-upgrade
    if grep -qiE 'no space left|not enough free space|disk requirements|needs .* more space' "$out"; then
        fail "$1 failed: the disk is full" "$NO_SPACE"
    elif grep -qiE -e 'could not resolve|temporary failure|network is unreachable|connection (timed out|refused)' \
        -e 'failed to (fetch|download)|cannot download|unable to fetch|DNS lookup' "$out"; then
        fail "$1 failed: the network, or a server of packages" "$NETWORK"
    fi
    fail "$1 failed with code $code" "$PACKAGE_MANAGER"
}

dnf_program() { if have dnf; then echo dnf; else echo yum; fi; }

# pkg_version NAME: prints the installed version; nothing if the package is not installed.
pkg_version() {
    know_family
    # shellcheck disable=SC2016
    case $FAMILY in
    debian) dpkg-query -W -f='${db:Status-Status} ${Version}\n' "$1" 2>/dev/null | sed -n 's/^installed //p' ;;
    rhel) rpm -q --qf '%{VERSION}-%{RELEASE}\n' "$1" 2>/dev/null | grep -v 'not installed' | tail -n 1 || true ;;
    alpine) apk info -v -e "$1" 2>/dev/null | sed -n "s/^$1-//p" | head -n 1 ;;
    esac
}

pkg_refresh() {
    know_family
    case $FAMILY in
    debian) manage apt-get -q -o DPkg::Lock::Timeout=300 update ;;
    rhel) : ;;
    alpine) manage apk update ;;
    esac
}

# pkg_install NAME[=VERSION]...
pkg_install() {
    know_family
    case $FAMILY in
    debian)
        manage apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold --allow-downgrades \
            --no-install-recommends install "$@"
        ;;
    rhel)
        wanted=
        for one; do wanted="$wanted $(printf '%s' "$one" | tr '=' '-')"; done
        # shellcheck disable=SC2086
        manage "$(dnf_program)" -y --setopt=install_weak_deps=False install $wanted
        ;;
    alpine) manage apk add "$@" ;;
    esac
}

# pkg_remove NAME...
pkg_remove() {
    know_family
    case $FAMILY in
    debian) manage apt-get -q -y -o DPkg::Lock::Timeout=300 purge "$@" ;;
    rhel) manage "$(dnf_program)" -y remove "$@" ;;
    alpine) manage apk del "$@" ;;
    esac
}

# pkgs_note NAME[=VERSION]...: stores the present versions for pkgs_back.
pkgs_note() {
    noted=
    for one; do
        version=$(pkg_version "${one%%=*}")
        noted="$noted${one%%=*} ${version:--}
"
    done
    keep packages "$noted"
}

# pkgs_back: removes packages that were not installed, and restores the earlier versions of the others.
pkgs_back() {
    kept packages | while read -r name version; do
        [ -n "$name" ] || continue
        now=$(pkg_version "$name")
        if [ "$version" = - ]; then
            [ -z "$now" ] || echo "$name" >>"$KEPT/remove.list"
        elif [ "$now" != "$version" ]; then
            echo "$name=$version" >>"$KEPT/install.list"
        fi
    done
    if [ -s "$KEPT/remove.list" ]; then
        # shellcheck disable=SC2046
        pkg_remove $(cat "$KEPT/remove.list")
    fi
    if [ -s "$KEPT/install.list" ]; then
        # shellcheck disable=SC2046
        pkg_install $(cat "$KEPT/install.list")
    fi
    rm -f "$KEPT/remove.list" "$KEPT/install.list" "$KEPT/packages"
}

names_check() {
    [ $# -gt 0 ] || fail "say which packages"
    for one; do
        case $one in
        -* | *[!A-Za-z0-9.+:~=_-]*) fail "'$one' is no name of a package" ;;
        esac
    done
}

