#!/bin/sh
# Sizes of the tree: lines per folder, largest files, long functions, comment ratio.
# usage: size_report.sh [ROOT]
#
# Fails when a file has over 1,000 lines (tables, *.def, may) or over 1 % of the functions of src,
# include and tools have over 100 lines. A function starts at a line that begins in the first column
# and has a bracket, and ends at a closing brace in the first column, as clang-format leaves them.
set -eu
root=${1:-$(dirname "$0")/..}
cd "$root"

folders=
for folder in src include tools tests bench examples python; do
    if [ -d "$folder" ]; then folders="$folders $folder"; fi
done

# shellcheck disable=SC2086
files=$(find $folders -type f \( -name '*.[ch]' -o -name '*.inc' -o -name '*.cpp' -o -name '*.def' -o -name '*.py' \
    -o -name '*.sh' \) | LC_ALL=C sort)
# shellcheck disable=SC2086
awk '
function end_of_file() {
    if (file == "") return
    size[file] = lines
    if (lines > 1000 && file !~ /\.def$/) too_long[++too_long_count] = file
}

function folder_of(path,    parts, n) {
    n = split(path, parts, "/")
    return n > 2 ? parts[1] "/" parts[2] : parts[1]
}

FNR == 1 {
    end_of_file()
    file = FILENAME
    folder = folder_of(file)
    lines = 0
    in_comment = start = open = 0
    c_file = file ~ /\.(c|h|inc|cpp|def)$/
    counted = file ~ /^(src|include|tools)\//
    folder_files[folder]++
}

{ lines++; folder_lines[folder]++ }

!c_file { next }

# Comment or code, per line; a line with both is code.
in_comment { comment[folder]++; if (/\*\//) in_comment = 0; next }
/^[ \t]*\/\// || /^[ \t]*\/\*.*\*\/[ \t]*$/ { comment[folder]++; next }
/^[ \t]*\/\*/ { comment[folder]++; in_comment = 1; next }
/^[ \t]*$/ { next }
{ code[folder]++ }

file ~ /\.def$/ { next }
/^[A-Za-z_]/ { start = FNR; head = $0; bracket = 0; initial = ($0 ~ /=/) }
start && !open && /\(/ { bracket = 1 }
start && !open && /;[ \t]*$/ { start = 0; next }
start && !open && bracket && !initial && /\{.*\}[ \t]*$/ && FNR == start { record(1); start = 0; next }
start && !open && /\{[ \t]*$/ { if (bracket && !initial) open = start; else start = 0; next }
open && /^\}/ { record(FNR - open + 1); open = start = 0 }

function record(length_in_lines) {
    if (!counted) return
    functions++
    by_length[length_in_lines]++
    if (length_in_lines > 100) {
        over++
        sub(/[ \t]*\{.*$/, "", head)
        long_function[over] = sprintf("%s:%d: %d lines: %s", file, start, length_in_lines, substr(head, 1, 70))
    }
}

# The length that a share of all functions does not exceed.
function quantile(share,    seen, l) {
    for (l = 1; l <= 100000; l++) {
        seen += by_length[l]
        if (seen >= share * functions) return l
    }
    return 0
}

END {
    end_of_file()
    print "lines  files  comments/code  folder"
    for (f in folder_lines) {
        ratio = code[f] ? sprintf("%.2f", comment[f] / code[f]) : "-"
        printf "%6d %5d  %13s  %s\n", folder_lines[f], folder_files[f], ratio, f | "LC_ALL=C sort -k4"
        total += folder_lines[f]
        all_comment += comment[f]
        all_code += code[f]
    }
    close("LC_ALL=C sort -k4")
    printf "%6d         %9.2f  in all\n\nlargest files\n", total, all_code ? all_comment / all_code : 0
    for (f in size) printf "%6d  %s\n", size[f], f | "LC_ALL=C sort -rn | head -5"
    close("LC_ALL=C sort -rn | head -5")
    printf "\nfunctions of src, include, tools: %d; median %d lines, 90 %% within %d, 99 %% within %d; %d over 100\n",
        functions, quantile(0.5), quantile(0.9), quantile(0.99), over
    for (i = 1; i <= over; i++) print "  " long_function[i]
    for (i = 1; i <= too_long_count; i++)
        printf "error: %s has %d lines, over 1000\n", too_long[i], size[too_long[i]]
    if (over * 100 > functions) {
        printf "error: %d of %d functions have over 100 lines, over 1 %%\n", over, functions
        too_long_count++
    }
    exit too_long_count > 0
}' $files
