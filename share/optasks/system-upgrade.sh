# system-upgrade.sh
# What: Upgrade all packages, with --ab in the other slot. Undo restores available earlier versions, or the slot.
# Arguments: [--reboot] | --ab STATE a=DEVICE b=DEVICE [tries=N]
# shellcheck shell=sh disable=SC2317

USAGE="expected nothing, --reboot, or --ab STATE a=DEVICE b=DEVICE [tries=N]"
SLOT_FILE=/etc/berth-slot    # in an upgraded slot: its name and the key of the OpTask
UNFINISHED=.berth-unfinished # at the top of a slot that is being written
HEARD_SECONDS=600            # time limit for the agent of a new system to be heard

# in_slot COMMAND...: runs the command in the mounted slot if there is one, else here.
in_slot() { if [ -n "${there:-}" ]; then chroot "$there" "$@"; else "$@"; fi; }

versions() {
    know_family
    # shellcheck disable=SC2016
    case $FAMILY in
    debian) in_slot dpkg-query -W -f='${db:Status-Status} ${Package} ${Version}\n' | sed -n 's/^installed //p' ;;
    rhel) in_slot rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\n' ;;
    alpine) in_slot apk info -v | sed 's/^\(.*\)-\([^-]*-r[0-9]*\)$/\1 \2/' ;;
    esac | sort
}

upgrade() {
    know_family
    case $FAMILY in
    debian)
        manage in_slot apt-get -q -o DPkg::Lock::Timeout=300 update
        manage in_slot dpkg --configure -a
        manage in_slot apt-get -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold dist-upgrade
        ;;
    rhel) manage in_slot "$(dnf_program)" -y upgrade ;;
    alpine)
        manage in_slot apk update
        manage in_slot apk upgrade
        ;;
    esac
}

# lines_without FILE OTHER: prints the lines of FILE that OTHER does not have. diff and comm differ between the
# families.
lines_without() { awk 'FILENAME == ARGV[1] { other[$0]; next } !($0 in other)' "$2" "$1"; }

difference() {
    versions >"$KEPT/versions.now"
    say "$(lines_without "$KEPT/versions.now" "$KEPT/versions" | grep -c .) packages are others than before"
}

# Reboots the machine: the agent runs this script again until there was a reboot.
reboot_once() {
    boot=$(cat /proc/sys/kernel/random/boot_id)
    keep boot "$boot"
    [ "$(kept boot)" = "$boot" ] || return 0
    : >"$KEPT/resumable"
    if [ ! -e "$KEPT/rebooting-$boot" ]; then
        : >"$KEPT/rebooting-$boot"
        say "$1; the machine is started anew"
        sync
        reboot || shutdown -r now || fail "cannot start the machine anew"
    fi
    sleep 5
    exit "$AGAIN"
}

# ---- two slots ----

ab() { berth-ab --state "$state" "$@"; }

ab_arguments() {
    state=${1:-} slot_a='' slot_b='' tries=3
    case $state in
    /*) shift ;;
    *) fail "$USAGE" ;;
    esac
    for one; do
        case $one in
        a=/*) slot_a=${one#a=} ;;
        b=/*) slot_b=${one#b=} ;;
        tries=*[!0-9]* | tries= | tries=0*) fail "'$one': expected a number from 1" ;;
        tries=*) tries=${one#tries=} ;;
        *) fail "'$one': $USAGE" ;;
        esac
    done
    if [ -z "$slot_a" ] || [ -z "$slot_b" ] || [ "$slot_a" = "$slot_b" ]; then fail "$USAGE"; fi
    have berth-ab || fail "there is no berth-ab here; see docs/vm.md for what a machine with two slots needs"
    ab show >/dev/null || fail "berth-ab cannot read $state"
}

device_of() { if [ "$1" = a ]; then echo "$slot_a"; else echo "$slot_b"; fi; }
name_in() { cat "$1$SLOT_FILE" 2>/dev/null || echo "a system that was not made here"; }
slot_name() { name_in "$ROOT"; }

mounted_at() { awk -v at="$1" '$2 == at { found = 1 } END { exit !found }' /proc/mounts; }

# Prints the mount point of a device, by any of its names; nothing if it is not mounted.
mounts_of() {
    [ -b "$1" ] || return 0
    number=$(printf '%d:%d' "0x$(stat -L -c %t "$1")" "0x$(stat -L -c %T "$1")")
    awk -v number="$number" '$3 == number { print $5 }' /proc/self/mountinfo | head -n 1
}

# Both systems must see the data of this script, and the slot must not be in use.
slot_check() {
    [ -e "$1" ] || fail "there is no $1"
    used=$(mounts_of "$1")
    [ "$used" != / ] || fail "this system runs from $1, which was to be overwritten"
    [ -z "$used" ] || fail "$1 is mounted on $used"
    [ "$(stat -c %d "$KEPT")" != "$(stat -c %d "$ROOT/")" ] ||
        fail "the agent's folder must be on a file system of its own that both slots mount:\
 the new system must know what it was made for"
}

slot_close() {
    for part in slot/run slot/sys slot/proc slot/dev slot from; do
        if mounted_at "$KEPT/$part"; then umount "$KEPT/$part" || fail "cannot unmount $KEPT/$part"; fi
    done
    rmdir "$KEPT/slot" "$KEPT/from" 2>/dev/null || true
}

slot_open() {
    slot_check "$(device_of "$1")"
    there=$KEPT/slot
    mkdir -p "$there"
    mount "$(device_of "$1")" "$there" || fail "cannot mount $(device_of "$1"): a slot must hold a file system"
}

# A slot that a later upgrade has overwritten cannot be restored.
slot_still_holds() {
    slot_open "$1"
    holds=$(name_in "$there")
    if [ -e "$there/$UNFINISHED" ]; then holds="an upgrade that was not finished"; fi
    slot_close
    there=
    [ "$holds" = "$2" ] || fail "slot $1 no longer holds the system of before, but: $holds; there is no way back to it"
}

# Copies this file system, without other mounts, into the slot.
slot_fill() {
    slot_open "$1"
    rm -f "$KEPT/policy"
    mkdir -p "$KEPT/from"
    mount --bind "$ROOT/" "$KEPT/from" || fail "cannot look at this system"
    : >"$there/$UNFINISHED"
    sync # before the deletions below
    find "$there" -xdev -mindepth 1 -maxdepth 1 ! -name lost+found ! -name "$UNFINISHED" -exec rm -rf {} + ||
        fail "cannot clear slot $1"
    cp -a "$KEPT/from/." "$there/" || fail "cannot copy this system to slot $1"
    umount "$KEPT/from"
    if [ -e "$there/etc/fstab" ]; then
        awk -v device="$(device_of "$1")" '$1 !~ /^#/ && $2 == "/" { $1 = device } { print }' \
            "$there/etc/fstab" >"$KEPT/fstab"
        cat "$KEPT/fstab" >"$there/etc/fstab"
    fi
    echo "$1 $BERTH_KEY" >"$there$SLOT_FILE"
}

# Package scripts must not start or stop services of the running system.
slot_upgrade() {
    for part in dev proc sys run; do
        mkdir -p "$there/$part"
        mount --bind "/$part" "$there/$part" || fail "cannot mount /$part in the slot"
    done
    policy=$there/usr/sbin/policy-rc.d
    if [ -d "$there/usr/sbin" ] && [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy"
        chmod 755 "$policy"
        : >"$KEPT/policy"
    fi
    upgrade
    if [ -e "$KEPT/policy" ]; then rm -f "$policy" "$KEPT/policy"; fi
    difference
}

# A system is good when the daemon has heard its agent; the agent records that, with the boot id, above the OpTasks
# folder.
wait_heard() {
    waited=0
    boot=$(cat /proc/sys/kernel/random/boot_id)
    until grep -q "$boot" "$KEPT/../../../heard" 2>/dev/null; do
        [ "$waited" -lt "$HEARD_SECONDS" ] || fail "slot $1 came up, but the daemon has not heard its agent" "$NETWORK"
        sleep 2
        waited=$((waited + 2))
    done
}

# go_to SLOT WHY: reboots into the slot; returns after the reboot, in whichever slot.
go_to() {
    if [ ! -e "$KEPT/tried" ]; then
        ab try "$1" "$tries"
        : >"$KEPT/tried"
    fi
    reboot_once "$2"
}

# The slot runs: marks it as the good one.
settle_in() {
    case $(ab show) in
    *"try=$1"*)
        wait_heard "$1"
        ab good "$1"
        ;;
    esac
}

ab_forward() {
    ab_arguments "$@"
    keep was "$(slot_name)"
    keep good "$(ab show | sed -n 's/^good=\(.\).*/\1/p')"
    keep to "$(ab other)"
    to=$(kept to)
    if [ ! -e "$KEPT/upgraded" ]; then
        case $(ab show) in *try=*) fail "another upgrade is being tried: $(ab show)" ;; esac
        keep versions "$(versions)"
        slot_close
        slot_fill "$to"
        slot_upgrade
        sync
        rm "$there/$UNFINISHED"
        sync
        slot_close
        there=
        : >"$KEPT/upgraded"
    fi
    go_to "$to" "slot $to is upgraded"
    [ "$(slot_name)" = "$to $BERTH_KEY" ] ||
        fail "slot $to did not come up; this is the system of before, in slot $(kept good)"
    settle_in "$to"
    : >"$KEPT/arrived"
    rm -f "$KEPT/resumable" "$KEPT/boot"
    say "slot $to runs, and is the good one"
}

# If the other slot was never booted, only that slot has changed. Otherwise boots the previous slot, which is unchanged.
ab_back() {
    [ -e "$KEPT/to" ] || return 0
    ab_arguments "$@"
    slot_close
    to=$(kept to) good=$(kept good)
    if [ ! -e "$KEPT/returns" ]; then rm -f "$KEPT/boot" "$KEPT/resumable" "$KEPT/tried"; fi
    if [ "$(slot_name)" = "$to $BERTH_KEY" ] || [ -e "$KEPT/boot" ]; then
        case $(ab show) in
        "good=$to"*) [ -e "$KEPT/returns" ] || slot_still_holds "$good" "$(kept was)" ;;
        esac
        : >"$KEPT/returns"
        case $(ab show) in
        "good=$to"*) ;;
        *) ab init "$good" && : >"$KEPT/tried" ;; # never marked good: the next boot is into the other slot anyway
        esac
        go_to "$good" "slot $good is to run again"
        [ "$(slot_name)" = "$(kept was)" ] ||
            fail "the system of before did not come up in slot $good; this is: $(slot_name)"
        settle_in "$good"
    elif [ -e "$KEPT/arrived" ]; then
        fail "the system that was made in slot $to is not what runs here, so there is no way back from it"
    else
        case $(ab show) in "good=$good try=$to"*) ab init "$good" ;; esac
    fi
    rm -f "$KEPT"/rebooting-*
    for one in boot resumable tried returns upgraded arrived to good was versions versions.now fstab policy; do
        rm -f "$KEPT/$one"
    done
}

# ---- in place ----

forward() {
    case ${1:-}:$# in
    :0 | --reboot:1) ;;
    --ab:*)
        shift
        ab_forward "$@"
        return
        ;;
    *) fail "$USAGE" ;;
    esac
    if [ ! -e "$KEPT/upgraded" ]; then
        keep versions "$(versions)"
        upgrade
        : >"$KEPT/upgraded"
    fi
    difference
    if [ "${1:-}" = --reboot ]; then reboot_once upgraded; fi
}

back() {
    if [ "${1:-}" = --ab ]; then
        shift
        ab_back "$@"
        return
    fi
    rm -f "$KEPT/upgraded" "$KEPT/boot" "$KEPT/resumable"
    [ -e "$KEPT/versions" ] || return 0
    versions >"$KEPT/versions.now"
    # Packages of before that have another version now.
    older=$(lines_without "$KEPT/versions" "$KEPT/versions.now" | sed -n 's/^\([^ ]*\) \(.*\)$/\1=\2/p')
    if [ -n "$older" ]; then
        # shellcheck disable=SC2086
        pkg_install $older
    fi
    rm -f "$KEPT/versions" "$KEPT/versions.now"
}

start forward back "$@"
