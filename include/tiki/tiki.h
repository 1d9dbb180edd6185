/* Every public header: `#include <tiki/tiki.h>`.
 *
 * For programs that do not care what they pull in; the single headers compile faster and say what a
 * file needs. tools/check_headers.sh checks that none is missing here. */
#ifndef TIKI_TIKI_H
#define TIKI_TIKI_H

#include "tiki/analysis.h"
#include "tiki/api.h"
#include "tiki/array.h"
#include "tiki/axes.h"
#include "tiki/bench.h"
#include "tiki/cache.h"
#include "tiki/checkpoint.h"
#include "tiki/devices.h"
#include "tiki/dtype.h"
#include "tiki/emulator.h"
#include "tiki/export.h"
#include "tiki/gguf.h"
#include "tiki/gpu.h"
#include "tiki/io.h"
#include "tiki/kernel.h"
#include "tiki/kernel_op.h"
#include "tiki/layout.h"
#include "tiki/layout_call.h"
#include "tiki/layout_draw.h"
#include "tiki/library.h"
#include "tiki/library_op.h"
#include "tiki/model.h"
#include "tiki/nn.h"
#include "tiki/ops.h"
#include "tiki/optim.h"
#include "tiki/passes.h"
#include "tiki/runtime.h"
#include "tiki/status.h"
#include "tiki/target.h"
#include "tiki/train.h"
#include "tiki/transforms.h"
#include "tiki/tree.h"
#include "tiki/version.h"

#endif
