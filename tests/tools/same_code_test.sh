#!/bin/bash
# same_code_test.sh - tests that tools/same-code distinguishes moves, renames and comments from changes of code, in a
# repository of two files.
# sanitize: no, it runs nothing of Berth
set -eu

# shellcheck source=tests/kit.sh
. "$(dirname "$0")/../kit.sh"
needs git meson ninja python3
same_code=$here/../tools/same-code
kit_begin

# Makes a library of two files, committed as `base`.
begin() {
    rm -rf "$work/repo"
    mkdir "$work/repo"
    cd "$work/repo"
    git init -q .
    git config user.name tests
    git config user.email tests@localhost
    printf 'project(%s, %s)\nstatic_library(%s, %s)\n' "'two'" "'c'" "'two'" "'a.c', 'b.c'" >meson.build
    printf '#include <assert.h>\nint twice(int x);\n/* Doubles. */\nint twice(int x)\n{\n    assert(x < 100);\n    return 2 * x;\n}\n' >a.c
    printf '#include <stdio.h>\nint twice(int x);\nint four(void);\nint four(void)\n{\n    printf("%%s:%%d: four\\n", __FILE__, __LINE__);\n    return twice(2);\n}\n' >b.c
    git add .
    git commit -qm base
    git tag base
}

# compared STATUS WORDS [OPTION]: commits the changes, compares them with `base`, expects this status and these words.
compared() {
    git add -A
    git commit -qm changed
    ends "$1" "$same_code" ${3:+"$3"} base || return
    grep -qF -- "$2" "$work/out" || { echo "no '$2' in:" && cat "$work/out" && return 1; }
}

comments_and_moves() {
    begin
    sed -i 's/Doubles\./Returns the double of x./' a.c
    git mv b.c c.c
    sed -i 's/b\.c/c.c/' meson.build
    compared 0 '2 files compared, 0 differ, 0 added, 0 removed, 0 symbols renamed'
}

renames() {
    begin
    sed -i 's/\btwice\b/doubled/g; s/\bx\b/value/g' a.c b.c
    compared 0 'renamed: twice -> doubled'
}

other_code() {
    begin
    sed -i 's/2 \* x/3 * x/' a.c
    compared 1 'a.c: .text differs'
}

another_function_is_called() {
    begin
    printf 'int thrice(int x);\nint thrice(int x)\n{\n    return 3 * x;\n}\n' >>a.c
    git add -A
    git commit -qm base
    git tag -f base >/dev/null
    sed -i 's/\btwice\b/thrice/g' b.c
    compared 1 'not one to one: twice -> '
}

texts() {
    begin
    sed -i 's/: four/: 4/' b.c
    compared 1 'b.c: .rodata' && ends 0 "$same_code" --texts base
}

texts_and_code() {
    begin
    sed -i 's/: four/: 4/; s/twice(2)/twice(3)/' b.c
    compared 1 'b.c: more than string literals differs' --texts
}

a_new_file_is_listed() {
    begin
    echo 'int five(void); int five(void) { return 5; }' >e.c
    sed -i "s/'b\\.c'/'b.c', 'e.c'/" meson.build
    compared 0 'e.c: only in HEAD'
}

check "comments and moves change nothing" comments_and_moves
check "renames change nothing" renames
check "changed code is found" other_code
check "a call of another function is found" another_function_is_called
check "changed texts are found, or allowed" texts
check "allowed texts do not allow changed code" texts_and_code
check "a new file is listed" a_new_file_is_listed
kit_end
