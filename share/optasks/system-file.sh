# system-file.sh
# What: Write a system file atomically; sudoers and sshd_config are checked first. Undo restores the old file.
# Arguments: PATH MODE LINE...
# shellcheck shell=sh disable=SC2317

where() {
    path=$1
    case $path in
    */../* | */..) fail "the path must not have '..' in it" ;;
    /*) ;;
    *) fail "the path must begin with '/'" ;;
    esac
    [ ! -d "$ROOT$path" ] || fail "$path is a folder"
    [ ! -L "$ROOT$path" ] || fail "$path is a link; give the path it leads to"
}

# Checks files in which a mistake would lock out all users.
right() {
    case $path in
    /etc/sudoers | /etc/sudoers.d/*) if have visudo; then visudo -cf "$1" >/dev/null || fail "visudo refuses it"; fi ;;
    /etc/ssh/sshd_config) if have sshd; then sshd -t -f "$1" || fail "sshd refuses it"; fi ;;
    esac
}

forward() {
    [ $# -ge 3 ] || fail "expected PATH MODE LINE..."
    where "$1"
    mode=$2
    case $mode in
    [0-7][0-7][0-7] | [0-7][0-7][0-7][0-7]) ;;
    *) fail "'$mode' is no mode; expected three or four digits like 644" ;;
    esac
    shift 2
    printf '%s\n' "$@" >"$KEPT/wanted"
    right "$KEPT/wanted"
    save_file "$path"
    put_file "$path" "$mode" <"$KEPT/wanted"
    cmp "$KEPT/wanted" "$ROOT$path" || fail "$path is not what was written to it"
    say "$path is written"
}

back() {
    where "$1"
    restore_file "$path"
}

start forward back "$@"
