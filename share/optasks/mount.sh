# mount.sh
# What: Mount a file system now and at each boot. Undo unmounts it and removes its line from fstab.
# Arguments: SOURCE TARGET TYPE [OPTIONS]
# shellcheck shell=sh disable=SC2317

read_arguments() {
    [ $# -eq 3 ] || [ $# -eq 4 ] || fail "expected SOURCE TARGET TYPE [OPTIONS]"
    source=$1 target=$2 type=$3 options=${4:-defaults}
    case $target in
    / | */../* | */..) fail "'$target' cannot be mounted on" ;;
    /*) ;;
    *) fail "the target must begin with '/'" ;;
    esac
    for one in "$source" "$target" "$type" "$options"; do
        case $one in
        '' | -* | *[[:space:]]*) fail "'$one': neither spaces nor a dash in front can stand in fstab" ;;
        esac
    done
}

mounted() { awk -v at="$target" '$2 == at { found = 1 } END { exit !found }' /proc/mounts; }

# Sets target to the folder's path as the kernel has it, without symlinks and extra slashes.
follow() {
    real=$(cd "$target" && pwd -P) || fail "$target is no folder"
    case $real in
    /) fail "'$target' leads to '/', which cannot be mounted on" ;;
    *[[:space:]]* | *\\*) fail "'$target' leads to '$real', which cannot stand in fstab" ;;
    esac
    target=$real
}

forward() {
    read_arguments "$@"
    if [ -d "$target" ]; then keep folder there; else keep folder made; fi
    mkdir -p "$target" || fail "cannot make $target"
    follow
    if mounted && [ ! -e "$KEPT/mounting" ]; then fail "something is mounted on $target already"; fi
    if awk -v at="$target" '{ sub("/+$", "", $2) } $1 !~ /^#/ && $2 == at { found = 1 } END { exit !found }' \
        /etc/fstab 2>/dev/null && [ ! -e "$KEPT/mounting" ]; then
        fail "fstab has a line for $target already"
    fi
    save_file /etc/fstab
    keep target "$target"
    : >"$KEPT/mounting"
    mounted || mount -t "$type" -o "$options" "$source" "$target" || fail "cannot mount $source on $target"
    {
        awk -v at="$target" '$1 ~ /^#/ || $2 != at' /etc/fstab 2>/dev/null || true
        echo "$source $target $type $options 0 0"
    } | put_file /etc/fstab 644
    say "$(grep " $target " /proc/mounts)"
}

# Removes only this line, since other lines of fstab may have changed. Unmounts the folder that was mounted, even if
# symlinks have changed.
back() {
    read_arguments "$@"
    target=$(kept target || echo "$target")
    if [ -e "$KEPT/mounting" ]; then
        if mounted; then umount "$target" || fail "$target is in use"; fi
        if [ -e /etc/fstab ]; then
            awk -v line="$source $target $type $options 0 0" '$0 != line' /etc/fstab >"$KEPT/fstab"
            put_file /etc/fstab 644 <"$KEPT/fstab"
        fi
    fi
    if [ "$(kept folder)" = made ]; then rmdir "$target" 2>/dev/null || true; fi
    rm -f "$KEPT/mounting" "$KEPT/folder" "$KEPT/target" "$KEPT/fstab"
}

start forward back "$@"
