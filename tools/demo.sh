#!/bin/sh
# Trains a small byte-level Llama on this repository's own text and the licence texts of the system
# for about two minutes on two cores, then evaluates it and lets it write.
# usage: demo.sh BUILD_DIR; STEPS=N trains for another number of steps
#
# Sources come last, so the held-out tenth is code of a kind that the model has seen much of.
set -eu
build=$1
tiki=$build/bin/tiki
out=$build/demo
steps=${STEPS:-600}
warmup=$((steps / 12))

set --
for licence in /usr/share/common-licenses/*; do
    if [ -f "$licence" ] && [ ! -L "$licence" ]; then set -- "$@" "$licence"; fi
done

rm -rf "$out"
"$tiki" train --out "$out" --model llama --layers 4 --heads 4 --dim 128 --context 256 --batch 8 \
    --steps "$steps" --lr 3e-3 --warmup "$warmup" --decay cosine --decay-steps $((steps - warmup)) \
    --threads "$(nproc)" --data "$@" README.md CONTRIBUTING.md CHANGELOG.md docs include src
echo
echo "The model is in $out, its loss curve in $out/loss.svg. It writes:"
echo
"$tiki" generate --model "$out" --prompt "static tk_status " --tokens 400 --temperature 0.6 --seed 1
