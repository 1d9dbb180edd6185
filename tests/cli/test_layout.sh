#!/bin/sh
# `tiki layout` says what is wrong with a call.
set -u
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
# says CODE TEXT ARGUMENT...: the exit code, and a text in what the command prints.
says() {
    code=$1 text=$2
    shift 2
    "$TIKI_BIN" "$@" >"$folder/out" 2>&1
    given=$?
    [ "$given" -eq "$code" ] && grep -qF -- "$text" "$folder/out" && return
    echo "tiki $*: exit $given, expected $code and \"$text\":"
    cat "$folder/out"
    failed=1
}
says 2 'unknown option --color' layout draw '(2,2):(1,2)' --color
says 2 '--compare takes two layouts, A and B' layout draw --compare '(2,2):(1,2)'
says 2 '--compare takes both layouts itself' layout draw 4:1 --compare 4:1 4:2
says 2 'a value is missing after -o' layout draw 4:1 -o
says 2 'a second was given' layout draw 4:1 4:2
says 2 'no layout given' layout draw
says 2 'exclude each other' layout draw 4:1 --tv 4 --banks 4
says 2 '--tv takes no composed layout' layout draw 'S<1,1,1> o 0 o (2,2):(1,2)' --tv '(2,2)'
says 2 '--banks takes bytes a lane (1, 2, 4, 8 or 16), given: x' layout draw 32:1 --banks x
says 1 'No such file or directory' layout draw 4:1 -o "$folder/absent/x.svg"
says 1 'No such file or directory' layout --batch "$folder/absent"
says 1 'tiki layout --list' layout compose 4:1
says 1 'composition takes 2 arguments (A B), 1 given' layout composition 4:1
says 1 'composition takes 2 arguments (A B), 3 given' layout composition 4:1 4:1 x
says 1 'composition takes 2 arguments (A B), 5 given' layout composition 4:1 4:1 x y z
says 1 'no operation of the layout algebra is called batch' layout batch no.txt
says 0 'usage: tiki layout composition A B' layout composition --help
says 0 'red frame' layout draw --help
says 0 'red frame' layout --help
says 0 'usage: tiki info' info --help
if grep -q ' $' "$folder/out"; then echo "a blank ends a line of tiki info --help"; failed=1; fi
exit "$failed"
