#!/bin/sh
# Compiles each public header alone, all warnings as errors; tiki.h has them all.
# usage: check_headers.sh INCLUDE_DIR COMPILER [ARGUMENT...], for example: gcc -x c -std=c17
set -eu
include_dir=$1
shift
count=0 failed=0
for header in "$include_dir"/tiki/*.h; do
    name=tiki/$(basename "$header")
    count=$((count + 1))
    if [ "$name" != tiki/tiki.h ] && ! grep -q "#include \"$name\"" "$include_dir/tiki/tiki.h"; then
        echo "$name is missing in tiki/tiki.h" >&2
        failed=$((failed + 1))
    fi
    # The declaration keeps -Wpedantic from complaining of an empty unit.
    if ! printf '#include "%s"\nextern int tiki_header_compiled;\n' "$name" |
        "$@" -I"$include_dir" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -; then
        echo "$name does not compile alone with: $*" >&2
        failed=$((failed + 1))
    fi
done
echo "$count headers, $failed failed"
[ "$count" -gt 0 ] && [ "$failed" -eq 0 ]
