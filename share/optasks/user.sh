# user.sh
# What: Add an account, or add it to groups, with an optional SSH key. Undo removes additions; old accounts stay.
# Arguments: NAME [uid=N] [shell=PATH] [groups=A,B] [key=PUBLIC-KEY]
# shellcheck shell=sh disable=SC2317

options() {
    user=$1 uid='' shell=/bin/sh groups='' key=''
    shift
    case $user in
    '' | root | -* | [0-9]* | *[!a-z0-9_-]*) fail "'$user' is no name for an account" ;;
    esac
    for one; do
        case $one in
        uid=*[!0-9]* | uid=) fail "'$one': expected a number" ;;
        uid=*) uid=${one#uid=} ;;
        shell=/*) shell=${one#shell=} ;;
        groups=*[!A-Za-z0-9_,-]*) fail "'$one': expected names with commas between them" ;;
        groups=*) groups=${one#groups=} ;;
        key=*) key=${one#key=} ;;
        *) fail "'$one': expected uid=N, shell=PATH, groups=A,B or key=PUBLIC-KEY" ;;
        esac
    done
}

there() { grep -q "^$user:" /etc/passwd; }

make() {
    if have useradd; then
        # shellcheck disable=SC2086
        useradd -m -s "$shell" ${uid:+-u $uid} "$user"
    else # busybox, on Alpine
        # shellcheck disable=SC2086
        adduser -D -s "$shell" ${uid:+-u $uid} "$user"
    fi
}

join() {
    if have usermod; then usermod -a -G "$1" "$user"; else addgroup "$user" "$1"; fi
}

leave() {
    if have gpasswd; then gpasswd -d "$user" "$1" >/dev/null; else delgroup "$user" "$1"; fi
}

# as_user SCRIPT: runs the script in the user's shell and home with the key as its input, so that symlinks made by the
# user lead only to files that the user may access.
as_user() {
    printf '%s\n' "$key" | su -s /bin/sh "$user" -c "umask 077; read -r key; file=.ssh/authorized_keys; cd && $1"
}

forward() {
    [ $# -gt 0 ] || fail "say which account"
    options "$@"
    for group in $(echo "$groups" | tr , ' '); do
        grep -q "^$group:" /etc/group || fail "there is no group $group"
    done
    if there; then keep made no; else keep made yes; fi
    there || make
    joined=
    for group in $(echo "$groups" | tr , ' '); do
        if ! id -nG "$user" | tr ' ' '\n' | grep -qx "$group"; then
            joined="$joined $group"
        fi
    done
    keep joined "$joined"
    for group in $joined; do join "$group"; done
    if [ -n "$key" ]; then
        # shellcheck disable=SC2016 # theirs to expand
        if as_user 'grep -qxF "$key" "$file" 2>/dev/null'; then keep keyed no; else keep keyed yes; fi
        # shellcheck disable=SC2016
        as_user 'mkdir -p .ssh && chmod 700 .ssh &&
            { grep -qxF "$key" "$file" 2>/dev/null || echo "$key" >>"$file"; }' ||
            fail "cannot write the key of $user"
    fi
    say "$(id "$user")"
}

back() {
    options "$@"
    if ! there; then # the account was never made
        rm -f "$KEPT/made" "$KEPT/joined" "$KEPT/keyed"
        return 0
    fi
    if [ "$(kept made)" = yes ]; then
        if have userdel; then userdel -r "$user" 2>/dev/null || userdel "$user"; else deluser --remove-home "$user"; fi
    else
        for group in $(kept joined); do leave "$group"; done
        # shellcheck disable=SC2016
        if [ "$(kept keyed)" = yes ]; then
            as_user '{ grep -vxF "$key" "$file" >"$file.new" || true; } &&
                if [ -s "$file.new" ]; then mv "$file.new" "$file"; else rm -f "$file" "$file.new"; fi' ||
                fail "cannot take the key of $user away"
        fi
    fi
    rm -f "$KEPT/made" "$KEPT/joined" "$KEPT/keyed"
}

start forward back "$@"
