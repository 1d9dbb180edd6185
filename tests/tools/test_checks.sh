#!/bin/sh
# The checks of tools/ find what they are for, and pass a clean tree.
set -u
tools=$(pwd)/tools
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
failed=0

expect() { # STATUS PATTERN COMMAND...
    status=$1 pattern=$2
    shift 2
    output=$("$@" 2>&1)
    got=$?
    if [ "$got" -ne "$status" ] || ! printf '%s\n' "$output" | grep -q -e "$pattern"; then
        echo "FAILED: $*"
        echo "  expected exit $status and a line with: $pattern"
        echo "  got exit $got and: $output"
        failed=1
    fi
}
clean_tree() {
    rm -rf "${root:?}"/*
    mkdir -p "$root/src/base" "$root/src/graph" "$root/src/nn" "$root/src/cpu" "$root/include/tiki"
    printf '#include "tiki/status.h"\n' >"$root/src/base/a.c"
    printf '#include "base/a.h"\n#include "graph/b.h"\n' >"$root/src/graph/b.c"
    printf '#include "tiki/array.h"\n#include "nn/c.h"\n' >"$root/src/nn/c.c"
    printf '#include "graph/b.h"\n#include "layout/d.h"\n' >"$root/src/cpu/d.c"
    printf '#include "tiki/status.h"\n' >"$root/include/tiki/array.h"
}

includes="$tools/check_includes.sh $root"
clean_tree
expect 0 '0 breaches' $includes
printf '#include "graph/b.h"\n' >>"$root/src/base/a.c"
expect 1 'src/base/a.c:2: base may not include graph' $includes
clean_tree
printf '#include "tiki/array.h"\n' >>"$root/src/base/a.c"
expect 1 'base may not include array' $includes
clean_tree
printf '#include "graph/b.h"\n' >>"$root/src/nn/c.c"
expect 1 'nn may not include graph' $includes
clean_tree
printf '#include "graph/b.h"\n' >>"$root/include/tiki/array.h"
expect 1 'public header includes internal' $includes
clean_tree
printf '#include "../graph/b.h"\n' >>"$root/src/base/a.c"
expect 1 'climbs out' $includes
clean_tree
mkdir "$root/src/other"
printf 'int x;\n' >"$root/src/other/e.c"
expect 1 'no line in the table' $includes

size="$tools/size_report.sh $root"
clean_tree
printf 'int f(int a,\n      int b) {\n    return a + b;\n}\n' >"$root/src/base/a.c"
expect 0 '1; median 4 lines' $size
{ echo 'int g(void) {'; yes '    ;' | head -n 100; echo '}'; } >"$root/src/base/a.c"
expect 1 'a.c:1: 102 lines: int g(void)' $size
yes 'int x;' | head -n 1001 >"$root/src/base/a.c"
expect 1 'a.c has 1001 lines' $size
mv "$root/src/base/a.c" "$root/src/base/a.def"
expect 0 'a.def' $size

# Without git every file counts.
text="env GIT_DIR=/nonexistent $tools/check_text.sh $root"
clean_tree
expect 0 '0 breaches' $text
printf '/* TO%s: later */\n' DO >>"$root/src/base/a.c"
expect 1 'unfinished mark' $text
clean_tree
printf 'data = "/home/%s/x"\n' someone >"$root/a.py"
expect 1 'path of a machine' $text
clean_tree
printf 'int x; \n' >>"$root/src/base/a.c"
expect 1 'white space at the end' $text
clean_tree
printf 'int x;' >>"$root/src/base/a.c"
expect 1 'no line end' $text

expect 2 'no group' "$tools/deps.sh" nonsense
exit "$failed"
