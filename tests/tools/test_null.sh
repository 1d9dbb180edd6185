#!/bin/sh
# Each public function that takes a pointer is called with NULL by a tests/*/test_null.c.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Prototypes, one a line, without comments; those of the ops are generated and share one wrapper.
for header in include/tiki/*.h; do
    sed -e 's|/\*.*\*/||' -e '/\/\*/,/\*\//d' "$header" | tr '\n' ' ' | sed 's/;/;\n/g'
done | grep -o 'TK_API .*' | grep -E '\(.*\*.*\)' | grep -oE 'tk_[a-z0-9_]+\(' | tr -d '(' |
    LC_ALL=C sort -u >"$folder/functions"
[ "$(wc -l <"$folder/functions")" -gt 200 ]

# Unchecked by contract, and tk_file_set_hook and tk_trace_start, where NULL has a meaning.
missing=0
while read -r name; do
    case $name in tk_layout_at | tk_layout_at_leaves | tk_file_set_hook | tk_trace_start) continue ;; esac
    grep -qE "\b$name\(" tests/*/test_null.c || { echo "$name is not called with NULL"; missing=1; }
done <"$folder/functions"
exit "$missing"
