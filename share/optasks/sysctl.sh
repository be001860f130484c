# sysctl.sh
# What: Set kernel parameters now and at each boot, and read them back. Undo restores the old values.
# Arguments: NAME=VALUE...
# shellcheck shell=sh disable=SC2317

CONF=/etc/sysctl.d/90-berth-$BERTH_KEY.conf

file_of() { printf '%s/proc/sys/%s' "$ROOT" "$(printf '%s' "$1" | tr . /)"; }
plain() { tr -s '[:space:]' ' ' | sed 's/^ //; s/ $//'; }

check() {
    [ $# -gt 0 ] || fail "say which parameters: NAME=VALUE"
    for one; do
        case $one in
        *..* | /* | .* | =*) fail "'$one': expected NAME=VALUE" ;;
        *=*) ;;
        *) fail "'$one': expected NAME=VALUE" ;;
        esac
        [ -e "$(file_of "${one%%=*}")" ] || fail "this kernel has no parameter ${one%%=*}"
    done
}

forward() {
    check "$@"
    before=
    for one; do
        before="$before${one%%=*} $(plain <"$(file_of "${one%%=*}")")
"
    done
    keep before "$before"
    for one; do
        file=$(file_of "${one%%=*}")
        printf '%s\n' "${one#*=}" >"$file" || fail "the kernel refuses $one"
        now=$(plain <"$file")
        [ "$now" = "$(printf '%s' "${one#*=}" | plain)" ] || fail "${one%%=*} is $now, although ${one#*=} was written"
        say "${one%%=*} = $now"
    done
    save_file "$CONF"
    printf '%s\n' "$@" | put_file "$CONF" 644
}

back() {
    restore_file "$CONF"
    kept before | while read -r name value; do
        [ -z "$name" ] || printf '%s\n' "$value" >"$(file_of "$name")" || fail "the kernel refuses $name = $value"
    done
    rm -f "$KEPT/before"
}

start forward back "$@"
