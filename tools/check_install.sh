#!/bin/sh
# Installs a build into a folder, moves it elsewhere, and builds programs against it as a user would:
# with pkg-config, with CMake, shared and static, in C and C++.
# usage: check_install.sh BUILD_DIR
set -eu
build=$1
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
fail() { echo "install: $*" >&2; exit 1; }

DESTDIR=$stage/first cmake --install "$build" --prefix /opt/tiki >/dev/null
mv "$stage/first/opt/tiki" "$stage/moved"
root=$stage/moved
libdir=$(dirname "$(find "$root" -name libtiki.so)")
PKG_CONFIG_PATH=$libdir/pkgconfig
export PKG_CONFIG_PATH

if grep -rIl -e "$(pwd -P)" -e "$stage" "$root"; then fail "the files above name a folder of this build"; fi
foreign=$(nm -D --defined-only "$libdir/libtiki.so" | awk '$3 !~ /^(tk_|TIKI_)/ { print $3 }')
[ -z "$foreign" ] || fail "libtiki.so shows foreign names: $foreign"
for header in "$build"/include/tiki/*.h; do
    [ -f "$root/include/tiki/$(basename "$header")" ] || fail "$(basename "$header") was not installed"
done

line=$(grep '^cc first.c .*PKG_CONFIG_PATH=DIR' README.md | sed "s|DIR/lib|$libdir|g; s|first|use_readme|g")
[ -n "$line" ] || fail "README.md has no line that builds against an installed Tiki"

cd "$stage"
cat >use.c <<'EOT'
#include <stdio.h>
#include <string.h>
#include <tiki/dtype.h>
#include <tiki/version.h>

int main(void) {
    tk_dtype dtype;
    int fine = tk_dtype_parse("f32", &dtype) == TK_OK && strcmp(tk_dtype_name(dtype), "float32") == 0;
    printf("tiki %s: %s\n", TK_VERSION, fine ? "works" : tk_error_message());
    return fine ? 0 : 1;
}
EOT
cp use.c use.cpp
cp use.c use_readme.c
sh -euc "$line"
./use_readme

# shellcheck disable=SC2046
cc -std=c17 use.c -o use_shared $(pkg-config --cflags --libs tiki) -Wl,-rpath,"$libdir"
./use_shared
# shellcheck disable=SC2046
cc -std=c17 use.c -o use_static $(pkg-config --cflags tiki) -Wl,-Bstatic -L"$libdir" -ltiki -Wl,-Bdynamic \
    $(pkg-config --static --libs tiki | sed 's/-ltiki//')
./use_static
if readelf -d use_static | grep -q 'libtiki'; then fail "the static program needs libtiki.so"; fi

cat >CMakeLists.txt <<'EOT'
cmake_minimum_required(VERSION 3.20)
project(use LANGUAGES C CXX)
find_package(tiki 0.1 REQUIRED COMPONENTS static)
add_executable(by_cmake use.c)
target_link_libraries(by_cmake PRIVATE tiki::tiki)
add_executable(by_cmake_cxx use.cpp)
target_link_libraries(by_cmake_cxx PRIVATE tiki::tiki)
add_executable(by_cmake_static use.c)
target_link_libraries(by_cmake_static PRIVATE tiki::static)
EOT
cmake -S . -B out -DCMAKE_PREFIX_PATH="$root" >/dev/null
cmake --build out >/dev/null
for program in by_cmake by_cmake_cxx by_cmake_static; do ./out/$program; done
if [ -x "$root/bin/tiki" ]; then "$root/bin/tiki" --help >/dev/null; fi
