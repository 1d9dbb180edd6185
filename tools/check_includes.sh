#!/bin/sh
# Includes go one way: checks every #include "..." of src/ and include/tiki against the layers.
# usage: check_includes.sh [ROOT]
#
# A module may include itself, what its line in the table names, and what those may include. A public
# header counts to its module. nn and cli include public headers only (and their own folder).
# Prints file:line for each breach; exit 1 when there is one.
set -eu
root=${1:-$(dirname "$0")/..}
cd "$root"

files=$(find src include/tiki -name '*.[ch]' -o -name '*.def' -o -name '*.inc' | LC_ALL=C sort)
# shellcheck disable=SC2086
awk '
BEGIN {
    direct["base"] = ""
    direct["layout"] = "base"
    direct["runtime"] = "base"
    direct["graph"] = "base layout"
    direct["array"] = "graph runtime"
    direct["cpu"] = "array"
    direct["loops"] = "graph"
    direct["kernel"] = "base layout"
    direct["schedule"] = "loops kernel"
    direct["target"] = "kernel loops runtime"
    direct["library"] = "kernel schedule"
    direct["ktpu"] = "loops layout base"
    direct["compile"] = "cpu schedule target library ktpu"
    direct["io"] = "array"
    direct["dist"] = "array"
    direct["nn"] = direct["cli"] = "PUBLIC"

    # Public headers that are not named after their module. Others count to array, the API.
    split("kernel_op compile library_op compile bench compile " \
          "library library api base version base status base dtype base ops array trace runtime " \
          "device runtime stream runtime axes graph checkpoint io export io gguf io optim nn model nn " \
          "cache runtime gpu runtime train nn layout_call layout layout_draw layout emulator kernel " \
          "kernel_ops.def kernel kernel_attrs.def kernel kernel_types.def kernel library.def library passes kernel passes.def kernel analysis kernel tiki PUBLIC ops.def graph " \
          "functions.def graph", pairs, " ")
    for (i = 1; i in pairs; i += 2) header_module[pairs[i]] = pairs[i + 1]
}

# Whether module `from` may include module `to`.
function allowed(from, to,    names, n, i) {
    if (from == to) return 1
    n = split(direct[from], names, " ")
    for (i = 1; i <= n; i++) if (allowed(names[i], to)) return 1
    return 0
}

function public_module(name) {
    sub(/^tiki\//, "", name)
    if (name in header_module) return header_module[name]
    sub(/\.(h|def)$/, "", name)
    if (name in header_module) return header_module[name]
    if (name in direct) return name
    return "array"
}

function breach(text) {
    printf "%s:%d: %s\n", FILENAME, FNR, text
    bad++
}

FNR == 1 {
    files++
    if (FILENAME ~ /^src\//) {
        split(FILENAME, parts, "/")
        module = parts[2]
        if (!(module in direct)) breach("folder src/" module " has no line in the table of tools/check_includes.sh")
    } else {
        module = public_module(substr(FILENAME, 9))
    }
}

/^[ \t]*#[ \t]*include[ \t]*"/ {
    target = $0
    sub(/^[^"]*"/, "", target)
    sub(/".*/, "", target)
    if (target ~ /\.\./) { breach("\"" target "\" climbs out of its folder: write the path from src"); next }
    if (FILENAME ~ /^include\// && target !~ /^tiki\//) { breach("public header includes internal \"" target "\""); next }
    if (target !~ /\//) next
    if (target ~ /^tiki\//) {
        if (direct[module] == "PUBLIC" || module == "PUBLIC") next
        to = public_module(target)
    } else {
        to = target
        sub(/\/.*/, "", to)
    }
    if (!allowed(module, to)) breach(module " may not include " to ": \"" target "\"")
}

END {
    printf "includes: %d files, %d breaches\n", files, bad
    exit bad > 0
}' $files
