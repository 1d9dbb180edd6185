#!/bin/sh
# clang-tidy over the sources of a configured build.
# usage: tidy.sh BUILD_DIR [JOBS]
#
# A file that passed is not looked at again until it, a header, a table or the configuration changes: the
# stamp in BUILD_DIR/tidy is named by a checksum of all of that.
set -eu
build=$1 jobs=${2:-$(nproc)}
mkdir -p "$build/tidy"
common=$({ cat .clang-tidy; find src include tests tools "$build/include" -name '*.h' -o -name '*.inc' -o -name '*.def' | LC_ALL=C sort | xargs cat; } | sha256sum | cut -c1-16)
export build common

# Only files that the build compiles have flags to check with.
check_one='
file=$1
stamp=$build/tidy/$(printf "%s %s" "$common" "$file" | cat - "$file" | sha256sum | cut -c1-32)
[ -e "$stamp" ] && exit 0
if output=$(clang-tidy -p "$build" --quiet --warnings-as-errors="*" "$file" 2>"$stamp.log"); then
    rm -f "$stamp.log"
    : >"$stamp"
else
    printf "%s\n" "$output"
    grep -vE "^[0-9]+ warnings? |^Suppressed|^Use -header" "$stamp.log" >&2
    rm -f "$stamp.log"
    exit 1
fi'
sed -n 's/^ *"file": "\(.*\)",\{0,1\}$/\1/p' "$build/compile_commands.json" | LC_ALL=C sort -u |
    sed "s|^$(pwd -P)/||" | grep '^\(src\|tests\|tools\|bench\|examples\)/.*\.c$' >"$build/tidy/files" || true
count=$(wc -l <"$build/tidy/files")
[ "$count" -gt 0 ] || { echo "tidy: no files" >&2; exit 1; }
if xargs -P "$jobs" -n 1 sh -c "$check_one" tidy <"$build/tidy/files"; then
    find "$build/tidy" -type f -mtime +7 -delete
    echo "tidy: $count files, clean"
else
    exit 1
fi
