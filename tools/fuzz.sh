#!/bin/sh
# Runs every fuzzer, or one, for a while.
# usage: fuzz.sh BUILD_DIR SECONDS [JOBS [NAME]]
#
# New inputs grow in BUILD_DIR/corpus/<name>; the kept ones (tests/fuzz/corpus/<name>) are only read. An
# input that fails is left in BUILD_DIR/crashes: put it into the kept corpus with the fix.
set -eu
build=$1 seconds=$2 jobs=${3:-$(nproc)} only=${4:-*}
mkdir -p "$build/crashes" "$build/corpus" "$build/logs"
export build seconds
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1:detect_stack_use_after_return=1
export UBSAN_OPTIONS=print_stacktrace=1
fuzz_one='
program=$1
name=$(basename "$program")
name=${name#fuzz_}
new=$build/corpus/$name kept=tests/fuzz/corpus/$name words=tests/fuzz/$name.dict log=$build/logs/$name.log
mkdir -p "$new"
set -- "$new"
[ -d "$kept" ] && set -- "$@" "$kept"
[ -f "$words" ] && set -- "$@" "-dict=$words"
if "$program" "$@" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$build/crashes/$name-" >"$log" 2>&1; then
    runs=$(sed -n "s/^stat::number_of_executed_units: *//p" "$log")
    echo "fuzz $name: passed, $runs inputs in $seconds s"
else
    grep -v "^#" "$log" | tail -60
    echo "fuzz $name: FAILED"
    exit 1
fi'
ls "$build"/fuzzers/fuzz_$only | xargs -P "$jobs" -n 1 sh -c "$fuzz_one" fuzz
