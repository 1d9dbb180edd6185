#!/bin/sh
# Text checks of every tracked file: no path of a machine, no unfinished mark, no stray white space.
# usage: check_text.sh [ROOT]
set -eu
root=${1:-$(dirname "$0")/..}
cd "$root"

list_files() {
    git ls-files -co --exclude-standard 2>/dev/null ||
        find . -type f -not -path './build/*' -not -path './.git/*' | sed 's|^\./||'
}
bad=0
# breach NAME OPTIONS PATTERN FILES...: each hit is printed and counts.
breach() {
    name=$1 options=$2 pattern=$3
    shift 3
    [ $# -gt 0 ] || return 0
    # shellcheck disable=SC2086
    if hits=$(grep -nI $options -e "$pattern" -- "$@" /dev/null); then
        printf '%s\n' "$hits" | sed "s|\$|  <- $name|"
        bad=$((bad + $(printf '%s\n' "$hits" | wc -l)))
    fi
}

files=$(list_files | while read -r file; do [ -f "$file" ] && echo "$file"; done | LC_ALL=C sort)
texts=$(printf '%s\n' "$files" | grep -vE '^(LICENSE|tests/fuzz/corpus/)|\.(npz|npy|safetensors|gguf|png)$' || true)
sources=$(printf '%s\n' "$texts" | grep -E '\.(c|h|inc|cpp|def|py|sh|cmake|md)$' || true)

# The patterns are put together here, so that this file does not hold them.
here=$(pwd -P)
marks="TO""DO\|FIX""ME\|XX""X\|HA""CK"
# shellcheck disable=SC2086
{
    breach "unfinished mark" "-w" "$marks" $texts
    breach "path of this machine" "-F" "$here/" $texts
    breach "path of a machine" "-E" "/(home|Users)/[a-z][a-z0-9_-]*/|/ro""ot/|/wo""rk/" $texts
    breach "white space at the end" "-E" '[[:space:]]+$' $sources
    breach "tab" "-P" '\t' $(printf '%s\n' "$sources" | grep -E '\.(c|h|inc|cpp|def|py)$' || true)
    # shellcheck disable=SC2046
    breach "merge mark" "-E" '^(<<<<<<<|>>>>>>>) ' $texts
}
for file in $sources; do
    if [ -n "$(tail -c 1 "$file")" ]; then # of a line end the shell leaves nothing
        echo "$file: no line end at the end"
        bad=$((bad + 1))
    fi
done
# Pages of the documentation that headers, pages and the README speak of.
# shellcheck disable=SC2086
pages=$(printf '%s\n' "$texts" | grep -E '^(include/tiki/.*|README\.md|CONTRIBUTING\.md|docs/.*\.md)$' || true)
for file in $pages; do
    for page in $(grep -oE '\bdocs/[a-z0-9_/-]+\.md' "$file" | LC_ALL=C sort -u); do
        if [ ! -f "$page" ]; then
            echo "$file: $page is not there"
            bad=$((bad + 1))
        fi
    done
done
echo "text: $(printf '%s\n' "$files" | wc -l) files, $bad breaches"
[ "$bad" -eq 0 ]
