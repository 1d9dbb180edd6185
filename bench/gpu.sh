#!/bin/sh
# Everything that needs a card, in one call of under nine minutes: tests, sanitizers, benches.
# usage: gpu.sh FOLDER_OF_PROGRAMS [FOLDER_OF_RESULTS] [SECONDS]
#
# The programs are those of <build>/gpu. Each step's output is a file of the results; a step that has
# ended well is not run again, so a call that was cut goes on where it stopped. No step begins when
# less than its own limit is left. The exit status is 1 when a step failed, 2 when steps are left.
set -u
programs=$1 results=${2:-$1/results} seconds=${3:-530}
begin=$(date +%s)
status=0
mkdir -p "$results"

step() { # NAME LIMIT COMMAND...
    name=$1 limit=$2
    shift 2
    [ -f "$results/$name.passed" ] && return 0
    left=$((seconds - $(date +%s) + begin))
    if [ "$left" -lt "$limit" ]; then
        echo "== $name: left for the next call, $left s remain and it may take $limit"
        [ "$status" -eq 1 ] || status=2
        return 0
    fi
    echo "== $name"
    timeout "$limit" "$@" >"$results/$name.txt" 2>&1
    code=$?
    cat "$results/$name.txt"
    case $code in
    0) : >"$results/$name.passed" ;;
    77) echo "== $name: skipped" ;;
    *) echo "== $name: FAILED with $code" && status=1 ;;
    esac
}

for program in "$programs"/test_gpu_*; do
    [ -x "$program" ] && step "$(basename "$program")" 120 "$program"
done
if command -v compute-sanitizer >/dev/null; then
    for tool in memcheck synccheck racecheck initcheck; do
        step "$tool" 90 compute-sanitizer --tool "$tool" --error-exitcode 9 "$programs/test_gpu_small"
        step "$tool-kernels" 90 env TIKI_GPU_TEST_SMALL=1 \
            compute-sanitizer --tool "$tool" --error-exitcode 9 "$programs/test_gpu_kernels"
    done
else
    echo "== compute-sanitizer: skipped, it is not installed"
fi
for program in "$programs"/gpu_*; do
    [ -x "$program" ] && step "$(basename "$program")" 150 "$program"
done
if ! [ -x "$programs/gpu_kernels" ]; then
    echo "== gpu_peers: skipped, there are no benches to stand beside"
elif python3 -c 'import torch; torch.zeros(1).cuda()' 2>/dev/null; then
    step gpu_peers 150 python3 "$(dirname "$0")/gpu_peers.py"
else
    echo "== gpu_peers: skipped, there is no torch with a card"
fi
exit "$status"
