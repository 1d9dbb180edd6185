#!/bin/sh
# Makes sure that what a target needs is installed; costs milliseconds when it is.
# usage: deps.sh [build] [test] [python] [sanitize] [lint] [coverage]
#
# Each need is looked for as it is used (a command, a pkg-config module, a file of the compiler), so a
# library from elsewhere than Debian counts. What is missing is installed by its Debian package name
# when the user is root and apt-get is there; otherwise the one command to run is printed, exit 1.
set -eu

missing=
need() { # PACKAGE TEST...
    package=$1
    shift
    "$@" >/dev/null 2>&1 || missing="$missing $package"
}
has() { command -v "$1"; }
module() { has pkg-config && pkg-config --exists "$1"; }
runtime_of_clang() { has clang && [ -f "$(clang -print-file-name=libclang_rt.fuzzer-"$(uname -m)".a)" ]; }

needs_build() {
    need gcc has gcc
    need libc6-dev test -f /usr/include/stdio.h
    need make has make
    need cmake has cmake
    need ninja-build has ninja
    need pkg-config has pkg-config
    need libopenblas-dev module openblas
    need libkissfft-dev module kissfft-float
    need libjansson-dev module jansson
    need libzip-dev module libzip
}
needs_test() {
    needs_build
    need g++ has g++
    need libcmocka-dev module cmocka
}
python_headers() {
    python3 -c 'import os, sys, sysconfig; sys.exit(not os.path.exists(sysconfig.get_paths()["include"] + "/Python.h"))'
}
needs_python() {
    need python3 has python3
    need python3-dev python_headers
    need python3-venv python3 -c 'import venv, ensurepip'
}
needs_sanitize() {
    needs_test
    need clang has clang
    need libclang-rt-14-dev runtime_of_clang
    need llvm has llvm-symbolizer
    need lld has ld.lld
}
needs_lint() {
    needs_test
    need clang-format has clang-format
    need clang-tidy has clang-tidy
}
needs_coverage() {
    needs_test
    need gcovr has gcovr
}

for group in "${@:-build}"; do
    case $group in
    build | test | python | sanitize | lint | coverage) "needs_$group" ;;
    *) echo "deps.sh: no group named '$group'" >&2; exit 2 ;;
    esac
done
[ -n "$missing" ] || exit 0

packages=$(printf '%s\n' $missing | sort -u | tr '\n' ' ' | sed 's/ $//')
if ! has apt-get >/dev/null; then
    echo "Missing, by the names of Debian's packages: $packages" >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "Missing packages. Run this, then try again:" >&2
    echo "  sudo sh -c 'apt-get update && apt-get install -y --no-install-recommends $packages'" >&2
    exit 1
fi
echo "Installing: $packages"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086
apt-get install -y -qq --no-install-recommends $packages >/dev/null
