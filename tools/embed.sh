#!/bin/sh
# A text file as a C array that ends with a zero byte.
# usage: embed.sh FILE NAME HEADER > file.c
set -eu
printf '/* Generated from %s by tools/embed.sh. */\n#include "%s"\n\nconst char %s[] = {\n' "$(basename "$1")" "$3" "$2"
od -An -v -tu1 "$1" | sed 's/  */ /g; s/^ //; s/ /, /g; s/$/,/'
printf '0};\n'
