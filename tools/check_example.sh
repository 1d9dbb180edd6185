#!/bin/sh
# Runs an example and compares what it prints with the kept text.
# usage: check_example.sh PROGRAM EXPECTED
set -eu
program=$1 expected=$2
if [ ! -f "$expected" ]; then
    echo "$expected is missing: an example's output is kept, so that it is checked" >&2
    exit 1
fi
output=$(mktemp)
trap 'rm -f "$output"' EXIT
"$program" >"$output"
diff -u "$expected" "$output"
