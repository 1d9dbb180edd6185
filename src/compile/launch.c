/* Launches in the graph: bindings checked against the kernel's parameters, the node, and its body.
 *
 * Scalars are numbers, known when the node is built: shapes are. So the launch contract can be
 * checked at the call that is wrong, with addresses that have the alignment the kernel asks for. */
#include "compile/launch.h"

#include <string.h>

#include "array/call.h"
#include "array/storage.h"
#include "base/error.h"
#include "compile/bodies.h"
#include "compile/run.h"
#include "graph/build.h"
#include "kernel/contract.h"
#include "runtime/buffer.h"

/* ---- types ---- */

/* Elements of a pointer that may stand for a dtype: by size and kind, since kernels give integers
 * their sign by operation and a byte may be a float. */
static bool holds(tk_kscalar element, tk_dtype dtype) {
    size_t bytes = (size_t)tk_kscalar_bytes(element);
    bool floats = element == TK_K_F16 || element == TK_K_BF16 || element == TK_K_F32 ||
                  element == TK_K_F64 || element == TK_K_TF32;
    if (element == TK_K_TMAP || element == TK_K_MBAR) return false;
    if (floats != tk_dtype_is_float(dtype)) return false;
    if (element == TK_K_F16) return dtype == TK_FLOAT16;
    if (element == TK_K_BF16) return dtype == TK_BFLOAT16;
    return bytes == tk_dtype_size(dtype) && !tk_dtype_is_complex(dtype);
}

/* ---- the target ---- */

static _Thread_local tk_target in_use = TK_TARGET_PTX;

tk_target tk_target_in_use(void) { return in_use; }

tk_target tk_target_use(tk_target target) {
    tk_target before = in_use;
    if ((unsigned)target < TK_TARGET_COUNT) in_use = target;
    return before;
}

typedef struct binding {
    const tk_launch_spec *spec;
    const tk_array *inputs;
    size_t n_inputs;
    tk_bound_launch *launch;
} binding;

static tk_status wrong(const binding *b, const tk_kparam *param, const char *what) {
    return tk_fail(TK_INVALID_ARGUMENT, "kernel %s: parameter %s %s",
                   tk_kernel_name(b->spec->kernel), param->name, what);
}

static tk_status check_dtype(const binding *b, const tk_kparam *param, tk_dtype dtype) {
    tk_kscalar element = (tk_kscalar)param->type.scalar;
    if (holds(element, dtype)) return TK_OK;
    return tk_fail(TK_DTYPE_ERROR,
                   "kernel %s: parameter %s points to %s, the array bound to it is %s",
                   tk_kernel_name(b->spec->kernel), param->name, tk_kscalar_text(element),
                   tk_dtype_name(dtype));
}

static tk_status bind_input(const binding *b, const tk_kparam *param, size_t index, tk_bound *out) {
    if (index >= b->n_inputs) return wrong(b, param, "is bound to an input that is not given");
    if (param->access != TK_KACCESS_READ)
        return wrong(b, param,
                     "is written: bind it to an output, in place of the input if it begins as it");
    TK_TRY(check_dtype(b, param, tk_array_dtype(b->inputs[index])));
    *out = (tk_bound){.is_input = true, .index = (uint32_t)index, .align = param->align};
    return TK_OK;
}

static tk_status bind_output(const binding *b, const tk_kparam *param, size_t index,
                             tk_bound *out) {
    if (index >= b->spec->n_outputs) return wrong(b, param, "is bound to an output that is none");
    if (param->access == TK_KACCESS_READ)
        return wrong(b, param, "is only read: bind it to an input");
    const tk_launch_output *output = &b->spec->outputs[index];
    if (param->access == TK_KACCESS_READ_WRITE && !output->in_place)
        return wrong(b, param, "is read too: its output must be in place of an input");
    TK_TRY(check_dtype(b, param, output->dtype));
    *out = (tk_bound){.is_output = true, .index = (uint32_t)index, .align = param->align};
    return TK_OK;
}

static tk_status bind_scalar(const binding *b, const tk_kparam *param, const tk_bind *bind,
                             tk_bound *out) {
    tk_kscalar scalar = (tk_kscalar)param->type.scalar;
    bool is_float =
        scalar == TK_K_F16 || scalar == TK_K_BF16 || scalar == TK_K_F32 || scalar == TK_K_F64;
    if (is_float != (bind->kind == TK_BIND_FLOAT))
        return wrong(b, param,
                     is_float ? "is a float, an integer is bound to it"
                              : "is an integer, a float is bound to it");
    int bits = 8 * tk_kscalar_bytes(scalar);
    uint64_t value = is_float ? tk_kscalar_bits(scalar, bind->number) : (uint64_t)bind->integer;
    *out = (tk_bound){.bits = bits < 64 ? value & (((uint64_t)1 << bits) - 1) : value};
    return TK_OK;
}

static tk_status bind_one(const binding *b, const tk_kparam *param, const tk_bind *bind,
                          tk_bound *out) {
    TK_TRY(tk_check_enum("kind", (int)bind->kind, TK_BIND_FLOAT + 1, "tk_bind_kind"));
    bool pointer = param->type.kind == TK_KT_POINTER;
    bool array = bind->kind == TK_BIND_INPUT || bind->kind == TK_BIND_OUTPUT;
    if (pointer && !array) return wrong(b, param, "is a pointer, a number is bound to it");
    if (!pointer && array) return wrong(b, param, "is a number, an array is bound to it");
    if (bind->kind == TK_BIND_INPUT) return bind_input(b, param, bind->index, out);
    if (bind->kind == TK_BIND_OUTPUT) return bind_output(b, param, bind->index, out);
    return bind_scalar(b, param, bind, out);
}

static bool is_map(const tk_kernel *kernel, size_t index) {
    return kernel->contract.params.items[index].map != NULL;
}

static tk_status bind_all(const binding *b) {
    const tk_kernel *kernel = b->spec->kernel;
    size_t next = 0, expected = 0;
    for (size_t i = 0; i < b->launch->n_bound; i++) expected += !is_map(kernel, i);
    if (expected != b->spec->n_binds)
        return tk_fail(TK_INVALID_ARGUMENT, "kernel %s: %zu parameters are bound, it has %zu",
                       tk_kernel_name(kernel), b->spec->n_binds, expected);
    for (size_t i = 0; i < b->launch->n_bound; i++) {
        tk_kparam param;
        if (is_map(kernel, i)) continue;
        TK_TRY(tk_kernel_param(kernel, (int)i, &param));
        TK_TRY(bind_one(b, &param, &b->spec->binds[next++], &b->launch->bound[i]));
    }
    return TK_OK;
}

/* ---- the contract ---- */

static int64_t elements_of(const binding *b, const tk_bound *bound) {
    if (bound->is_input) return tk_array_size(b->inputs[bound->index]);
    int64_t size = 1;
    const tk_type *type = &b->launch->record.outputs[bound->index];
    for (int i = 0; i < type->rank; i++) size *= type->shape[i];
    return size;
}

/* Elements that the contract says are behind a pointer must be there. */
static tk_status check_sizes(const binding *b, const tk_kargument *arguments) {
    const tk_kernel *kernel = b->spec->kernel;
    tk_kbinding values = {kernel, NULL, arguments};
    for (size_t i = 0; i < b->launch->n_bound; i++) {
        const tk_kparameter *param = &kernel->contract.params.items[i];
        const tk_bound *bound = &b->launch->bound[i];
        int64_t needed;
        if (param->size < 0 || !(bound->is_input || bound->is_output)) continue;
        TK_TRY(tk_kexpr_value(&values, param->size, &needed));
        if (needed > elements_of(b, bound))
            return tk_fail(TK_SHAPE_ERROR,
                           "kernel %s: parameter %s needs %lld elements, the array bound to it has "
                           "%lld",
                           kernel->name, param->value->name, (long long)needed,
                           (long long)elements_of(b, bound));
    }
    return TK_OK;
}

static tk_status check_contract(const binding *b) {
    static const tk_kdevice h200 = {.sms = 132, .shared_bytes = 227 * 1024, .threads = 2048};
    size_t count = b->launch->n_bound;
    tk_kargument *arguments = tk_calloc(count + 1, sizeof *arguments);
    tk_klaunch shape;
    if (!arguments) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a launch");
    for (size_t i = 0; i < count; i++) {
        const tk_bound *bound = &b->launch->bound[i];
        arguments[i].bits = bound->is_input || bound->is_output ? (uint64_t)1 << 32 : bound->bits;
    }
    tk_status status = check_sizes(b, arguments);
    if (status == TK_OK && !b->launch->empty)
        status = tk_kernel_launch(b->spec->kernel, &h200, count, arguments, &shape);
    tk_free(arguments);
    return status;
}

/* ---- the record ---- */

static tk_status run_bound(const tk_launch_record *record, const tk_body_call *call);

static void release_launch(tk_ref *ref) {
    tk_bound_launch *launch = (tk_bound_launch *)(void *)ref;
    tk_kernel_release(launch->kernel);
    tk_free(launch->site);
    tk_free(launch);
}

static tk_status check_in_place(const char *name, const tk_launch_output *output, size_t index,
                                const tk_array *inputs, size_t n_inputs) {
    size_t donor = output->in_place - 1;
    tk_shape shape = donor < n_inputs ? tk_array_shape(inputs[donor]) : TK_SCALAR;
    bool fits =
        donor < n_inputs && tk_array_dtype(inputs[donor]) == output->dtype &&
        shape.count == output->shape.count &&
        !memcmp(shape.items, output->shape.items, (size_t)shape.count * sizeof *shape.items);
    if (fits) return TK_OK;
    return tk_fail(TK_INVALID_ARGUMENT,
                   "kernel %s: output %zu is in place of input %zu, which does not have its type",
                   name, index, donor);
}

tk_status tk_launch_describe(tk_launch_record *record, size_t n_outputs,
                             const tk_launch_output *outputs, const tk_array *inputs,
                             size_t n_inputs, bool *out_empty) {
    record->n_outputs = (int)n_outputs;
    record->n_inputs = n_inputs;
    *out_empty = true;
    for (size_t i = 0; i < n_outputs; i++) {
        const tk_launch_output *output = &outputs[i];
        int64_t size;
        if ((unsigned)output->dtype >= TK_DTYPE_COUNT)
            return tk_fail(TK_DTYPE_ERROR, "`dtype` of output %zu is %d, which is no dtype", i,
                           (int)output->dtype);
        TK_TRY(tk_shape_check(record->name, output->shape));
        TK_TRY(tk_shape_size(output->dtype, output->shape.count, output->shape.items, &size));
        if (output->in_place) TK_TRY(check_in_place(record->name, output, i, inputs, n_inputs));
        *out_empty &= size == 0;
        memcpy(record->shapes[i], output->shape.items,
               (size_t)output->shape.count * sizeof(int64_t));
        record->outputs[i] = (tk_type){output->dtype, (int)output->shape.count, record->shapes[i]};
        record->donors[i] = (int)output->in_place - 1;
    }
    return TK_OK;
}

static tk_status fill_launch(const binding *b) {
    TK_TRY(tk_launch_describe(&b->launch->record, b->spec->n_outputs, b->spec->outputs, b->inputs,
                              b->n_inputs, &b->launch->empty));
    TK_TRY(bind_all(b));
    TK_TRY(check_contract(b));
    b->launch->site = b->spec->site ? tk_strdup(b->spec->site) : NULL;
    if (b->spec->site && !b->launch->site)
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for a launch");
    return TK_OK;
}

static tk_status new_launch(binding *b) {
    size_t count = b->spec->kernel->contract.params.count;
    tk_bound_launch *launch = tk_calloc(1, sizeof *launch + count * sizeof *launch->bound);
    if (!launch) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a launch");
    atomic_init(&launch->record.ref.count, 1);
    launch->record.ref.release = release_launch;
    launch->record.run = run_bound;
    launch->kernel = tk_kernel_retain(b->spec->kernel);
    launch->target = in_use;
    launch->record.name = tk_kernel_name(launch->kernel);
    launch->n_bound = count;
    b->launch = launch;
    return fill_launch(b);
}

/* ---- the node ---- */

static tk_status add_outputs(tk_builder *b, tk_node *node, int count, tk_arrays *outputs) {
    if (tk_node_is_error(node)) {
        const tk_attrs_error *error = tk_node_attrs(node);
        return tk_fail_again((tk_status)error->code, error->message);
    }
    if (!tk_vec_reserve(outputs, outputs->count + (size_t)count))
        return tk_fail(TK_OUT_OF_MEMORY, "no memory for a list of arrays");
    for (int i = 0; i < count; i++) {
        tk_node *output = tkb_output(b, node, i);
        tk_handle_retain(output);
        outputs->items[outputs->count++] = (tk_array){output};
    }
    return TK_OK;
}

/* An operand of the node; a weak scalar becomes an array. */
static bool add_operands(tk_builder *b, const tk_array *inputs, size_t n_inputs,
                         tk_node_vec *operands) {
    if (!tk_vec_reserve(operands, n_inputs + 1)) return false;
    for (size_t i = 0; i < n_inputs; i++) {
        tk_node *node = inputs[i].node;
        operands->items[operands->count++] = tkb_astype(b, node, (tk_dtype)node->dtype);
    }
    return true;
}

tk_status tk_launch_node(tk_context *context, tk_launch_record *record, const tk_array *inputs,
                         size_t n_inputs, tk_arrays *outputs) {
    tk_graph *graph = &context->graph;
    tk_node_vec operands = {0};
    tk_builder b;
    tk_graph_lock(graph);
    tk_thread *thread = tk_context_thread(context);
    tk_builder_open(&b, graph, thread ? thread->stream : TK_DEFAULT_STREAM);
    if (n_inputs) b.stream = tk_place_stream(inputs[0].node, b.stream);
    tk_status status = TK_OK;
    if (add_operands(&b, inputs, n_inputs, &operands)) {
        tk_attrs_launch attrs = {.record = &record->ref};
        tk_node *node = tkb_node(&b, TK_OP_launch, operands.count, operands.items, &attrs);
        status = add_outputs(&b, node, record->n_outputs, outputs);
    } else {
        status = tk_fail(TK_OUT_OF_MEMORY, "no memory for a launch");
    }
    tk_builder_close(&b);
    tk_ref_release(&record->ref);
    tk_graph_unlock(graph);
    tk_vec_deinit(&operands);
    return status;
}

tk_status tk_launch_check_inputs(tk_context *context, const tk_array *inputs, size_t n_inputs) {
    TK_TRY(tk_context_check(context));
    for (size_t i = 0; i < n_inputs; i++) {
        TK_TRY(tk_array_status(inputs[i]));
        if (tk_array_context(inputs[i]) != context)
            return tk_fail(TK_CONTEXT_ERROR, "input %zu belongs to another context", i);
    }
    return TK_OK;
}

static tk_status check_spec(tk_context *context, const tk_launch_spec *spec, const tk_array *inputs,
                            size_t n_inputs) {
    TK_NEED(context, spec);
    if (n_inputs) TK_NEED(inputs);
    if (spec->size != sizeof *spec)
        return tk_fail(TK_INVALID_ARGUMENT, "tk_launch_spec.size is %zu, expected %zu", spec->size,
                       sizeof *spec);
    if (!spec->kernel) return tk_fail_null("spec->kernel");
    if (spec->n_binds && !spec->binds) return tk_fail_null("spec->binds");
    if (!spec->outputs) return tk_fail_null("spec->outputs");
    TK_TRY(tk_launch_check_inputs(context, inputs, n_inputs));
    if (spec->n_outputs < 1 || spec->n_outputs > TK_LAUNCH_OUTPUTS)
        return tk_fail(TK_INVALID_ARGUMENT, "kernel %s: %zu outputs, expected 1 to %d",
                       tk_kernel_name(spec->kernel), spec->n_outputs, TK_LAUNCH_OUTPUTS);
    if (tk_kernel_form(spec->kernel) != TK_KFORM_THREAD)
        return tk_fail(TK_UNSUPPORTED, "kernel %s is not in thread form: lower it first",
                       tk_kernel_name(spec->kernel));
    return TK_OK;
}

tk_status tk_launch(tk_context *context, const tk_launch_spec *spec, const tk_array *inputs,
                    size_t n_inputs, tk_arrays *outputs) {
    TK_NEED(outputs);
    TK_TRY(check_spec(context, spec, inputs, n_inputs));
    binding b = {spec, inputs, n_inputs, NULL};
    tk_status status = new_launch(&b);
    if (status == TK_OK)
        return tk_launch_node(context, &b.launch->record, inputs, n_inputs, outputs);
    if (b.launch) tk_ref_release(&b.launch->record.ref);
    return status;
}

/* ---- the body ---- */

static bool lies_well(const tk_strided *view, int64_t align) {
    return (uintptr_t)view->data % (uint64_t)(align ? align : 1) == 0 &&
           tk_strides_row_major(view->rank, view->shape, view->strides);
}

static size_t bytes_of(const tk_strided *view) {
    return (size_t)view->size * tk_dtype_size(view->dtype);
}

tk_status tk_copy_operand(tk_operand_copies *copies, const tk_strided *view, tk_strided *out) {
    const tk_body_call *call = copies->call;
    tk_buffer *buffer;
    if (copies->count == TK_MOST_COPIES)
        return tk_fail(TK_UNSUPPORTED, "a launch copies at most %d inputs", TK_MOST_COPIES);
    TK_TRY(tk_buffer_new_on(call->device, call->queue, bytes_of(view), &buffer));
    copies->buffers[copies->count++] = buffer;
    *out = *view;
    out->data = buffer->data;
    tk_strides_set_row_major(out->rank, out->shape, out->strides);
    tk_body_call copy = {.op = TK_OP_contiguous,
                         .n_inputs = 1,
                         .inputs = view,
                         .n_outputs = 1,
                         .outputs = out,
                         .fault = call->fault,
                         .device = call->device,
                         .queue = call->queue};
    return view->size ? tk_body_copy_on_device(&copy) : TK_OK;
}

void tk_release_copies(tk_operand_copies *copies) {
    for (int i = 0; i < copies->count; i++) tk_buffer_release(copies->buffers[i]);
}

tk_status tk_launch_operand(tk_operand_copies *copies, const tk_strided *view, int64_t align,
                            tk_strided *out) {
    if (!lies_well(view, align)) return tk_copy_operand(copies, view, out);
    *out = *view;
    /* strides of axes with one element or none may be any */
    tk_strides_set_row_major(out->rank, out->shape, out->strides);
    return TK_OK;
}

static tk_status resolve(tk_operand_copies *copies, const tk_launch_record *record,
                         const tk_bound *bound, tk_run_argument *out) {
    *out = (tk_run_argument){.bits = bound->bits};
    if (!bound->is_input && !bound->is_output) return TK_OK;
    const tk_body_call *call = copies->call;
    tk_strided view;
    if (bound->is_output)
        view = call->outputs[bound->index];
    else
        TK_TRY(tk_launch_operand(copies, &call->inputs[bound->index], bound->align, &view));
    out->data = view.data;
    out->bytes = bytes_of(&view);
    out->unset = bound->is_output && record->donors[bound->index] < 0;
    return TK_OK;
}

static tk_status run_bound(const tk_launch_record *record, const tk_body_call *call) {
    const tk_bound_launch *launch = (const tk_bound_launch *)(const void *)record;
    tk_operand_copies copies = {.call = call};
    if (launch->empty) return TK_OK;
    tk_run_argument *arguments = tk_calloc(launch->n_bound + 1, sizeof *arguments);
    if (!arguments) return tk_fail(TK_OUT_OF_MEMORY, "no memory for a launch");
    tk_status status = TK_OK;
    for (size_t i = 0; status == TK_OK && i < launch->n_bound; i++)
        status = resolve(&copies, record, &launch->bound[i], &arguments[i]);
    tk_run run = {launch->kernel, launch->site, launch->n_bound, arguments, launch->target, NULL};
    if (status == TK_OK) status = tk_run_kernel(call->device, call->queue, &run);
    tk_release_copies(&copies);
    tk_free(arguments);
    return status;
}

tk_status tk_body_launch(const tk_body_call *call) {
    const tk_launch_record *record = tk_launch_record_of(call->attrs);
    return record->run(record, call);
}
