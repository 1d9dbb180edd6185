#!/bin/sh
# The assembler as a shared object, which libtiki loads when there is no ptxas: NVIDIA's archive and
# nothing else, its functions exported.
# usage: nvptxcompiler.sh BUILD_DIR PYTHON [ARCHIVE]; without an archive, that of the Python package
set -eu
build=$1 python=$2 archive=${3:-}
out=$build/lib/libtiki_nvptxcompiler.so
work=$build/nvptxcompiler
mkdir -p "$work" "$build/lib"
if [ -z "$archive" ]; then
    "$python" -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target "$work/package" nvidia-nvptxcompiler
    archive=$(find "$work/package" -name libnvptxcompiler_static.a | head -n 1)
fi
[ -f "$archive" ] || { echo "nvptxcompiler: no archive libnvptxcompiler_static.a" >&2; exit 1; }
printf '{ global: nvPTXCompiler*; local: *; };\n' >"$work/exports"
wanted=
for name in GetVersion Create Destroy Compile GetCompiledProgramSize GetCompiledProgram \
    GetErrorLogSize GetErrorLog GetInfoLogSize GetInfoLog; do
    wanted="$wanted -Wl,-u,nvPTXCompiler$name"
done
# shellcheck disable=SC2086
${CC:-cc} -shared -Wl,--no-undefined -o "$out.new" $wanted -Wl,--version-script="$work/exports" "$archive" -lstdc++ -lpthread -lm -ldl
mv "$out.new" "$out"
ls -l "$out"
