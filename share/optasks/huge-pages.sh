# huge-pages.sh
# What: Set the number of huge pages now, and print how many the kernel provided; with --boot from the next boot on.
# Arguments: [--boot] [--some] SIZE=COUNT...
# shellcheck shell=sh disable=SC2317

ARGUMENTS=/etc/default/grub.d/90-berth-hugepages.cfg

read_arguments() {
    boot='' some='' pages=''
    for one; do
        case $one in
        --boot) boot=yes ;;
        --some) some=yes ;;
        *=*[!0-9]* | *=) fail "'$one': expected SIZE=COUNT, like 2Mi=512" ;;
        2Mi=* | 1Gi=* | 16Mi=* | 32Mi=* | 512Mi=* | 64Ki=* | 1Mi=*) pages="$pages $one" ;;
        *) fail "'$one': expected --boot, --some, or SIZE=COUNT like 2Mi=512 or 1Gi=4" ;;
        esac
    done
    [ -n "$pages" ] || fail "say how many of which size: 2Mi=512"
}

kib() {
    case $1 in
    *Gi) echo $((${1%Gi} * 1048576)) ;;
    *Mi) echo $((${1%Mi} * 1024)) ;;
    *Ki) echo "${1%Ki}" ;;
    esac
}

pool() { echo "$ROOT/sys/kernel/mm/hugepages/hugepages-$(kib "$1")kB/nr_hugepages"; }

# Asks twice, with a compaction of memory between: fragmented memory may give fewer pages at first.
ask() {
    echo "$2" >"$(pool "$1")" 2>/dev/null || true
    [ "$(cat "$(pool "$1")")" -ge "$2" ] && return 0
    echo 1 2>/dev/null >"$ROOT/proc/sys/vm/compact_memory" || true
    echo "$2" >"$(pool "$1")" 2>/dev/null || true
}

live() {
    before=
    for one in $pages; do
        [ -e "$(pool "${one%%=*}")" ] || fail "this kernel has no huge pages of ${one%%=*}"
        before="$before${one%%=*} $(cat "$(pool "${one%%=*}")")
"
    done
    keep before "$before"
    short=
    for one in $pages; do
        ask "${one%%=*}" "${one#*=}"
        got=$(cat "$(pool "${one%%=*}")")
        say "${one%%=*}: got $got of ${one#*=}"
        [ "$got" -ge "${one#*=}" ] || short="$short ${one%%=*}"
    done
    [ -z "$short" ] || [ -n "$some" ] ||
        fail "fewer than asked for:$short; --some takes what there is, --boot gets them early"
}

command_line() {
    for one in $pages; do
        printf ' hugepagesz=%s hugepages=%s' "$(printf '%s' "${one%%=*}" | sed 's/i$//')" "${one#*=}"
    done
}

loader_write() {
    know_family
    case $FAMILY in
    debian) update-grub ;;
    rhel) : ;;
    alpine) if have update-extlinux; then update-extlinux; else grub-mkconfig -o /boot/grub/grub.cfg; fi ;;
    esac
}

at_boot() {
    line=$(command_line)
    know_family
    case $FAMILY in
    debian)
        have update-grub || fail "there is no update-grub: this boot loader is not known here"
        save_file "$ARGUMENTS"
        # shellcheck disable=SC2016
        printf 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX%s"\n' "$line" | put_file "$ARGUMENTS" 644
        ;;
    rhel)
        have grubby || fail "there is no grubby: this boot loader is not known here"
        keep line "$line"
        grubby --update-kernel=ALL --args="${line# }"
        ;;
    alpine)
        file=/etc/default/grub name=GRUB_CMDLINE_LINUX_DEFAULT
        if have update-extlinux; then file=/etc/update-extlinux.conf name=default_kernel_opts; fi
        grep -q "^$name=" "$ROOT$file" || fail "$file has no line $name=: this boot loader is not known here"
        save_file "$file"
        keep loader "$file"
        sed "s|^$name=\"\\{0,1\\}\\([^\"]*\\)\"\\{0,1\\}\$|$name=\"\\1$line\"|" "$ROOT$file" >"$KEPT/loader.new"
        put_file "$file" 644 <"$KEPT/loader.new"
        ;;
    esac
    loader_write
    say "from the next start on:$line"
}

forward() {
    read_arguments "$@"
    if [ -n "$boot" ]; then at_boot; else live; fi
}

back() {
    read_arguments "$@"
    if [ -n "$boot" ]; then
        know_family
        case $FAMILY in
        debian) restore_file "$ARGUMENTS" ;;
        rhel) if [ -e "$KEPT/line" ]; then grubby --update-kernel=ALL --remove-args="$(kept line | sed 's/^ //')"; fi ;;
        alpine) if [ -e "$KEPT/loader" ]; then restore_file "$(kept loader)"; fi ;;
        esac
        loader_write
    else
        kept before | while read -r size count; do
            [ -z "$size" ] || echo "$count" >"$(pool "$size")"
        done
    fi
    rm -f "$KEPT/before" "$KEPT/line" "$KEPT/loader"
}

start forward back "$@"
