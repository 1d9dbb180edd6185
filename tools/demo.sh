#!/bin/sh
# Trains a small byte-level Llama on this repository's own text and the licence texts of the system
# for about two minutes on two cores, then evaluates it and lets it write.
# usage: demo.sh BUILD_DIR; STEPS=N trains for another number of steps
set -eu
build=$1
tiki=$build/bin/tiki
out=$build/demo
if [ ! -x "$tiki" ]; then
    echo "demo: $tiki does not exist: the command is not part of this version yet" >&2
    exit 1
fi
set -- README.md CONTRIBUTING.md CHANGELOG.md docs include src
for licence in /usr/share/common-licenses/*; do
    if [ -f "$licence" ] && [ ! -L "$licence" ]; then set -- "$@" "$licence"; fi
done

rm -rf "$out"
"$tiki" train --out "$out" --model llama --layers 4 --heads 6 --dim 192 --context 256 --batch 8 \
    --steps "${STEPS:-400}" --lr 2e-3 --warmup 40 --decay cosine --decay-steps "${STEPS:-400}" \
    --threads "$(nproc)" --data "$@"
echo
echo "The model is in $out, its loss curve in $out/loss.svg. It writes:"
echo
"$tiki" generate --model "$out" --prompt "This program is " --tokens 300 --temperature 0.7 --seed 1
echo
