/* What the tests and benches on a card share: its device, kernels as PTX text, and the way out
 * where there is no card: a reason on standard output and exit code 77, which ctest calls skipped.
 */
#ifndef GPU_CARD_H
#define GPU_CARD_H

#include <stdio.h>

#include "runtime/buffer.h"
#include "runtime/cuda_copy.h"
#include "runtime/cuda_graph.h"
#include "runtime/cuda_module.h"

#define CARD_SKIPPED 77

static tk_device *device;
static tk_cuda *cuda;

/* Opens the first card; false after saying why there is none. */
static bool open_card(const char *program) {
    if (tk_device_open(&tk_driver_cuda, 0, NULL, &device) != TK_OK) {
        printf("%s: skipped, %s\n", program, tk_error_message());
        return false;
    }
    cuda = tk_cuda_of(device);
    printf("%s on %s, compute capability %d.%d, driver of CUDA %d.%d\n", program, cuda->info.name,
           cuda->info.major, cuda->info.minor, cuda->api->version / 1000,
           cuda->api->version % 1000 / 10);
    return true;
}

static inline CUdeviceptr address_of(const tk_buffer *buffer) {
    return (CUdeviceptr)(uintptr_t)buffer->data;
}

/* add_f32(x, y, out, n), slow(x, cycles): adds 1 to x[0] after that many cycles, nothing(),
 * bad_store(): writes to address 16, large(out): touches the dynamic shared memory's ends. */
static const char card_ptx[] =
    ".version 7.8\n.target sm_80\n.address_size 64\n"
    ".visible .entry add_f32(.param .u64 px, .param .u64 py, .param .u64 po, .param .u32 pn)\n"
    "{\n"
    "  .reg .pred p; .reg .b32 r<5>; .reg .b64 d<8>; .reg .f32 f<4>;\n"
    "  mov.u32 r1, %ctaid.x; mov.u32 r2, %ntid.x; mov.u32 r3, %tid.x;\n"
    "  mad.lo.u32 r1, r1, r2, r3; ld.param.u32 r4, [pn];\n"
    "  setp.ge.u32 p, r1, r4; @p ret;\n"
    "  ld.param.u64 d1, [px]; ld.param.u64 d2, [py]; ld.param.u64 d3, [po];\n"
    "  mul.wide.u32 d4, r1, 4;\n"
    "  add.u64 d1, d1, d4; add.u64 d2, d2, d4; add.u64 d3, d3, d4;\n"
    "  ld.global.f32 f1, [d1]; ld.global.f32 f2, [d2]; add.rn.f32 f3, f1, f2;\n"
    "  st.global.f32 [d3], f3; ret;\n"
    "}\n"
    ".visible .entry slow(.param .u64 px, .param .u64 pc)\n"
    "{\n"
    "  .reg .pred p; .reg .b64 d<6>; .reg .f32 f<3>;\n"
    "  ld.param.u64 d1, [px]; ld.param.u64 d2, [pc];\n"
    "  mov.u64 d3, %clock64;\n"
    "again:\n"
    "  mov.u64 d4, %clock64; sub.u64 d5, d4, d3; setp.lt.u64 p, d5, d2; @p bra again;\n"
    "  ld.global.f32 f1, [d1]; add.rn.f32 f2, f1, 0f3F800000; st.global.f32 [d1], f2; ret;\n"
    "}\n"
    ".visible .entry nothing() { ret; }\n"
    ".visible .entry bad_store()\n"
    "{ .reg .b64 d1; .reg .b32 r1; mov.u64 d1, 16; mov.u32 r1, 1; st.global.u32 [d1], r1; ret; }\n"
    ".extern .shared .align 16 .b8 dynamic[];\n"
    ".visible .entry large(.param .u64 po, .param .u32 pbytes)\n"
    "{\n"
    "  .reg .b32 r<6>; .reg .b64 d1;\n"
    "  ld.param.u64 d1, [po]; ld.param.u32 r1, [pbytes];\n"
    "  mov.u32 r2, dynamic; add.u32 r3, r2, r1; sub.u32 r3, r3, 4;\n"
    "  mov.u32 r4, 11; st.shared.u32 [r2], r4; mov.u32 r4, 31; st.shared.u32 [r3], r4;\n"
    "  ld.shared.u32 r4, [r2]; ld.shared.u32 r5, [r3]; add.u32 r4, r4, r5;\n"
    "  st.global.u32 [d1], r4; ret;\n"
    "}\n";

/* For Hopper. ranks(out): each block writes its rank in the cluster. tile(map, out, column, row):
 * copies the box of 16 rows of 32 floats at (row, column) through the tensor map. */
static const char card_ptx_sm90[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n"
    ".visible .entry ranks(.param .u64 po)\n"
    "{\n"
    "  .reg .b32 r<3>; .reg .b64 d<3>;\n"
    "  ld.param.u64 d1, [po]; mov.u32 r1, %ctaid.x; mov.u32 r2, %cluster_ctarank;\n"
    "  mul.wide.u32 d2, r1, 4; add.u64 d1, d1, d2; st.global.u32 [d1], r2; ret;\n"
    "}\n"
    ".visible .entry tile(.param .align 64 .b8 map[128], .param .u64 po, .param .u32 pc, .param "
    ".u32 pr)\n"
    "{\n"
    "  .reg .pred p, q; .reg .b32 r<10>; .reg .b64 d<5>; .reg .f32 f1;\n"
    "  .shared .align 128 .b8 box[2048]; .shared .align 8 .b64 full;\n"
    "  mov.u32 r1, %tid.x; setp.ne.u32 p, r1, 0;\n"
    "  mov.u32 r2, full; mov.u32 r3, box; ld.param.u32 r4, [pc]; ld.param.u32 r5, [pr];\n"
    "  mov.b64 d1, map; cvta.param.u64 d1, d1;\n"
    "  @p bra ready;\n"
    "  mbarrier.init.shared.b64 [r2], 1; fence.mbarrier_init.release.cluster;\n"
    "  fence.proxy.async;\n"
    "ready:\n"
    "  bar.sync 0;\n"
    "  @p bra wait;\n"
    "  mbarrier.arrive.expect_tx.shared.b64 d2, [r2], 2048;\n"
    "  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [r3], "
    "[d1, {r4, r5}], [r2];\n"
    "wait:\n"
    "  mbarrier.try_wait.parity.shared.b64 q, [r2], 0; @!q bra wait;\n"
    "  ld.param.u64 d3, [po]; mul.wide.u32 d4, r1, 4; add.u64 d3, d3, d4;\n"
    "  shl.b32 r6, r1, 2; add.u32 r6, r6, r3;\n"
    "  ld.shared.f32 f1, [r6]; st.global.f32 [d3], f1; ret;\n"
    "}\n";

static const tk_cuda_packing card_add = {4, 28, {{0, 8}, {8, 8}, {16, 8}, {24, 4}}},
                             card_slow = {2, 16, {{0, 8}, {8, 8}}}, card_ranks = {1, 8, {{0, 8}}},
                             card_large = {2, 12, {{0, 8}, {8, 4}}},
                             card_tile = {4, 144, {{0, 128}, {128, 8}, {136, 4}, {140, 4}}};

/* A kernel of a text, loaded once; NULL with the error. */
static inline tk_cuda_function *card_kernel(const char *ptx, size_t bytes, const char *entry) {
    tk_cuda_module *module;
    tk_cuda_function *function = NULL;
    if (tk_cuda_module_load(cuda, ptx, bytes, "card", &module) != TK_OK) return NULL;
    (void)tk_cuda_module_function(module, entry, &function);
    tk_cuda_module_release(module);
    return function;
}
#define KERNEL(entry) card_kernel(card_ptx, sizeof card_ptx - 1, entry)
#define KERNEL_SM90(entry) card_kernel(card_ptx_sm90, sizeof card_ptx_sm90 - 1, entry)

#endif
