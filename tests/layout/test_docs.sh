#!/bin/sh
# The examples of docs/layout.md: every command gives the lines that follow it, and draws the picture
# that the page shows.
# usage: test_docs.sh [write], where write brings the page and its pictures up to date
set -eu
page=$PWD/docs/layout.md
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/images/layout"
tiki() { "$TIKI_BIN" "$@"; }

# The page with the output of each command as it is now.
fenced=no
cd "$folder"
while IFS= read -r line; do
    case $fenced$line in
    no'```console')
        fenced=yes
        printf '%s\n' "$line"
        ;;
    yes'```')
        fenced=no
        printf '%s\n' "$line"
        ;;
    yes'$ '*)
        printf '%s\n' "$line"
        eval "${line#??}" 2>&1 || true
        ;;
    yes*) ;;
    *) printf '%s\n' "$line" ;;
    esac
done <"$page" >page.md

if [ "${1:-}" = write ]; then
    cp page.md "$page"
    cp images/layout/*.svg "${page%/*}/images/layout/"
fi
diff -u "$page" page.md
for picture in images/layout/*.svg; do cmp "${page%/*}/$picture" "$picture"; done
[ "$(grep -c '^\$ ' page.md)" -gt 40 ]
