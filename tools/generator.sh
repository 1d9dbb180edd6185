#!/bin/sh
# A C file with the digest of everything that makes binaries' text out of calls and kernels: what an
# entry of the cache of kernels that was found without that text depends on.
# usage: generator.sh ROOT > FILE
#
# Whole folders, headers and comments included: a change that changes nothing costs a few
# milliseconds a kernel, a file that is missing here would run an old kernel.
set -eu
cd "$1"
digest=$(find include/tiki src/base src/layout src/kernel src/library src/target src/compile -type f |
    LC_ALL=C sort | xargs sha256sum | sha256sum | cut -d ' ' -f 1)
cat <<END
#include "target/generator.h"

const char tk_generator[] = "$digest";
END
