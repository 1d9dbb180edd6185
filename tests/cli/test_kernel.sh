#!/bin/sh
# `tiki kernel` and `tiki emulate` as a user meets them.
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
tiki=$TIKI_BIN

expect() { # CODE WORDS COMMAND...: exit code, and words in what it prints
    code=$1 words=$2
    shift 2
    got=0
    "$@" >"$folder/out" 2>&1 || got=$?
    if [ "$got" -ne "$code" ] || ! grep -qF -- "$words" "$folder/out"; then
        echo "$*: exit code $got, expected $code and \"$words\" in:"
        cat "$folder/out"
        exit 1
    fi
}

add=examples/kernels/vector_add.tk
expect 0 "usage: tiki kernel" "$tiki" kernel --help
expect 2 "usage: tiki kernel" "$tiki" kernel
expect 0 "mul " "$tiki" kernel ops
"$tiki" kernel verify examples/kernels/*.tk
"$tiki" kernel fmt "$add" >"$folder/add.tk"
cmp "$add" "$folder/add.tk"
sed 's/  %thread/ # mine\n %thread/' "$add" >"$folder/comment.tk"
expect 1 "comment.tk:14: --write would drop this comment" "$tiki" kernel fmt "$folder/comment.tk" --write
grep -q "# mine" "$folder/comment.tk"
sed 's/  %thread = /  %thread   =   /' "$add" >"$folder/spaces.tk"
"$tiki" kernel fmt "$folder/spaces.tk" --write
cmp "$add" "$folder/spaces.tk"
sed 's/add %a/addd %a/' "$add" >"$folder/bad.tk"
expect 1 "\"addd\" is no operation" "$tiki" kernel verify "$folder/bad.tk"
expect 0 "add.rn.f32" "$tiki" kernel build "$add" --emit ptx
expect 0 "kernel vector_add(" "$tiki" kernel build "$add" --emit thread
expect 1 "is in the thread form already" "$tiki" kernel build "$add" --emit view
tile=tests/kernel/passes/tensor_copy.tk
expect 0 "orders store of line" "$tiki" kernel report examples/kernels/row_sum.tk
expect 0 "32 lanes of  4 bytes, 4 sectors, least 4: x" "$tiki" kernel report "$add" --arg n=1000
expect 0 "passes over the banks" "$tiki" kernel report "$tile" --svg "$folder/accesses.svg"
grep -q "</svg>" "$folder/accesses.svg"
expect 2 "no file given" "$tiki" kernel report
expect 0 "need a number for each parameter: --arg columns=INTEGER" "$tiki" kernel report examples/kernels/row_sum.tk --arg rows=8
expect 2 "an --arg is missing" "$tiki" kernel report "$add" --svg "$folder/none.svg"
expect 2 'unexpected "--warp"' "$tiki" kernel report "$add" --warp x
expect 2 "--arg m=1, expected NAME=INTEGER" "$tiki" kernel report "$add" --arg m=1
expect 2 "--arg n=1k, expected NAME=INTEGER" "$tiki" kernel report "$add" --arg n=1k
expect 2 'no action is called "foo"' "$tiki" kernel foo
expect 2 'expected "kernel", found "foo"' "$tiki" bench foo
expect 2 'tiki bench --help lists the kernels' "$tiki" bench kernel softmx --shape 8x8
expect 2 '--shape is missing' "$tiki" bench kernel softmax
expect 2 '--shape takes lengths such as 1024x4096, given: 8x' "$tiki" bench kernel softmax --shape 8x
expect 2 '--dtype is f32, f16 or bf16, given: f64' "$tiki" bench kernel softmax --shape 8x8 --dtype f64
expect 2 '--gpu takes a number from 0 to 999, given: x' "$tiki" bench kernel softmax --shape 8x8 --gpu x
expect 2 'a value is missing after --gpu' "$tiki" bench kernel softmax --shape 8x8 --gpu
expect 2 'unknown option --arch' "$tiki" bench kernel softmax --arch sm_90
expect 0 "form tensor" "$tiki" kernel build "$tile" --emit tensor
expect 0 "locate %from" "$tiki" kernel build "$tile" --emit view
expect 0 "form thread" "$tiki" kernel build "$tile" --emit thread --optimise
expect 0 "fma.rn.f32" "$tiki" kernel build tests/kernel/passes/fuse.tk --emit ptx --fuse
expect 2 "--emit mlir needs --target cute" "$tiki" kernel build "$add" --emit mlir
expect 2 "--emit nothing" "$tiki" kernel build "$add" --emit nothing
expect 1 "architecture \"sm_1\"" "$tiki" kernel build "$add" --arch sm_1
expect 1 "nowhere.tk" "$tiki" kernel verify "$folder/nowhere.tk"

expect 0 "usage: tiki emulate" "$tiki" emulate --help
run="$tiki emulate $add --arg x=f32[100]:random --arg y=f32[100]:random --arg z=f32[100]:zeros"
expect 0 "1980 lane operations" $run --arg n=100 --counts
expect 1 "out of bounds" $run --arg n=101
expect 1 '"kind": "out of bounds"' $run --arg n=101 --json
expect 0 "nothing found" $run --arg n=100
expect 2 "--arg m: kernel vector_add has no such parameter" $run --arg n=100 --arg m=1
expect 2 "--out w: kernel vector_add has no such parameter" $run --arg n=100 --out w="$folder/w.npy"
expect 2 "parameter x points to f32, expected f32[SHAPE]:WHAT, found f16[100]:random" \
    "$tiki" emulate "$add" --arg x=f16[100]:random --arg y=f32[100]:random --arg z=f32[100]:zeros --arg n=100
expect 1 "requires %n >= 0" $run --arg n=-1
expect 2 "no --arg for parameter n" $run
expect 2 "expected an integer" $run --arg n=ten
expect 2 "expected TYPE[SHAPE]:WHAT" "$tiki" emulate "$add" --arg x=f32
expect 2 "expected random, zeros or a file.npy; rand: cannot open" "$tiki" emulate "$add" --arg x=f32[100]:rand
$run --arg n=100 --out z="$folder/z.npy"
"$tiki" emulate "$add" --arg x=f32[100]:"$folder/z.npy" --arg y=f32[100]:zeros --arg z=f32[100]:zeros --arg n=100 \
    --out z="$folder/same.npy"
cmp "$folder/z.npy" "$folder/same.npy"
