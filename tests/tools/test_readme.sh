#!/bin/sh
# The first program of the README compiles against the build and runs, also by the line that it gives.
set -eu
build=$TIKI_BUILD
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' README.md >"$folder/first.c"
[ -s "$folder/first.c" ]
cc -std=c17 -Wall -Wextra -Wpedantic -Werror "$folder/first.c" -o "$folder/first" -I"$build/include" \
    -L"$build/lib" -Wl,-rpath,"$build/lib" -ltiki -lm
"$folder/first"
# shellcheck disable=SC2016
line=$(grep '^cc first.c .*\$PWD' README.md | sed "s|\$PWD/build|$build|g")
[ -n "$line" ]
cd "$folder"
rm first
sh -euc "$line"
./first
