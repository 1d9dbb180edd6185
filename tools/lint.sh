#!/bin/sh
# All checks of the source text; every one runs, the exit status is 1 when any failed.
# usage: lint.sh BUILD_DIR, configured, with its generated headers
#
# clang-tidy, which takes most of the time, begins first; the others use one processor each.
set -u
build=$1
passed=0 failed=0
check() { # NAME COMMAND...
    name=$1
    shift
    echo "== $name"
    if "$@"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "== $name: FAILED"; fi
}
format() {
    find src include tests bench examples tools -name '*.[ch]' -o -name '*.inc' -o -name '*.cpp' 2>/dev/null |
        LC_ALL=C sort | xargs clang-format --dry-run -Werror
}
found=$(mktemp)
trap 'rm -f "$found"' EXIT
tools/tidy.sh "$build" >"$found" 2>&1 &
tidying=$!
tidy() {
    wait "$tidying"
    status=$?
    cat "$found"
    return "$status"
}
check format format
check includes tools/check_includes.sh
check size tools/size_report.sh
check text tools/check_text.sh
check tidy tidy
echo "lint: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
