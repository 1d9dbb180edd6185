#!/bin/sh
# Runs the benches and keeps what they print.
# usage: bench.sh BUILD_DIR PYTHON_OF_TESTS PYTHON_OF_ORACLES
#
# C benches are BUILD_DIR/bench/bench_*; those that compare with another framework are
# bench/bench_*.py and need a Python that has it: bench_python.py that of the tests, the others that of
# the oracles. With RECORD=1 the output is appended to
# bench/history/<name>.txt under a line with the date, the commit and the processor.
set -eu
build=$1 tests_python=$2 oracles_python=$3
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
failed=0
run() { # NAME COMMAND...
    name=$1
    shift
    echo "== $name"
    output=$(mktemp)
    if "$@" >"$output"; then
        cat "$output"
        if [ "${RECORD:-0}" = 1 ]; then
            mkdir -p bench/history
            { printf '# %s %s, %s x %s\n' "$(date -u +%F)" "$commit" "$(nproc)" "$processor"; cat "$output"; } \
                >>"bench/history/$name.txt"
        fi
    else
        cat "$output"
        echo "== $name: FAILED"
        failed=1
    fi
    rm -f "$output"
}
for program in "$build"/bench/bench_*; do
    [ -x "$program" ] && run "$(basename "$program")" "$program"
done
for script in bench/bench_*.py; do
    case $script in
    */bench_python.py) python=$tests_python ;;
    *) python=$oracles_python ;;
    esac
    if [ -x "$python" ]; then
        run "$(basename "$script" .py)" "$python" "$script"
    else
        echo "== $(basename "$script" .py): skipped, needs the oracles (make test-oracles makes them)"
    fi
done
exit "$failed"
