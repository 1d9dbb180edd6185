/* See run.h. */
#define _XOPEN_SOURCE 700
#include "cli/run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

tk_status run_path(char *text, size_t bytes, const char *folder, const char *name) {
    if ((size_t)snprintf(text, bytes, "%s/%s", folder, name) < bytes) return TK_OK;
    return tk_error_set(TK_INVALID_ARGUMENT, "the path %.80s... is too long", folder);
}

tk_status run_make_parents(const char *folder) {
    char path[4096];
    tk_status status = run_path(path, sizeof path, folder, "");
    for (char *at = path + 1; status == TK_OK && (at = strchr(at, '/')) && at[1]; at++) {
        *at = 0;
        if (mkdir(path, 0777) && errno != EEXIST)
            status =
                tk_error_set(TK_IO_ERROR, "%s: cannot make the folder: %s", path, strerror(errno));
        *at = '/';
    }
    return status;
}

/* ---- state.json ---- */

static tk_status read_json(const char *path, json_t **out_object) {
    char *text;
    size_t bytes;
    tk_status status = tk_file_read(path, &text, &bytes);
    if (status != TK_OK) return status;
    json_error_t error;
    *out_object = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    tk_text_free(text);
    if (json_is_object(*out_object)) return TK_OK;
    json_decref(*out_object);
    return tk_error_set(TK_FORMAT_ERROR, "%s: no JSON object: line %d: %s", path, error.line,
                        error.text);
}

tk_status run_read_state(const char *folder, json_t **out_state, int64_t *out_step) {
    char *checkpoint, path[4096];
    tk_status status = tk_checkpoint_latest(folder, out_step, &checkpoint);
    if (status != TK_OK) return status;
    status = run_path(path, sizeof path, checkpoint, "state.json");
    tk_text_free(checkpoint);
    return status == TK_OK ? read_json(path, out_state) : status;
}

static tk_status write_state(const char *folder, int64_t step, json_t *record) {
    char path[4096];
    tk_status status = run_path(path, sizeof path, folder, "state.json");
    if (status != TK_OK) return status;
    json_t *root = json_pack("{s:I}", "step", (json_int_t)step);
    bool whole = root && !json_object_update(root, record);
    char *text = whole ? json_dumps(root, JSON_INDENT(2) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(root);
    if (!text) return tk_error_set(TK_OUT_OF_MEMORY, "no memory to write %s", path);
    status = tk_file_write(path, text, strlen(text));
    free(text);
    return status;
}

/* ---- checkpoints ---- */

static tk_status save_files(const char *folder, const tk_trainer *trainer, json_t *record) {
    char path[4096];
    tk_metadata *metadata = tk_metadata_new();
    tk_status status = metadata ? tk_metadata_set(metadata, "format", "pt")
                                : tk_error_set(TK_OUT_OF_MEMORY, "no memory to save the model");
    if (status == TK_OK) status = run_path(path, sizeof path, folder, "model.safetensors");
    if (status == TK_OK)
        status = tk_safetensors_save(path, tk_trainer_parameters(trainer), metadata);
    if (status == TK_OK) status = run_path(path, sizeof path, folder, "optimizer.safetensors");
    if (status == TK_OK) status = tk_safetensors_save(path, tk_trainer_state(trainer), metadata);
    if (status == TK_OK) status = run_path(path, sizeof path, folder, "config.json");
    if (status == TK_OK) status = tk_model_config_save(path, tk_trainer_model(trainer));
    if (status == TK_OK) status = write_state(folder, tk_trainer_steps(trainer), record);
    tk_metadata_free(metadata);
    return status;
}

tk_status run_save(const char *folder, const tk_trainer *trainer, json_t *record, int keep) {
    tk_checkpoint_writer *checkpoint;
    tk_status status = tk_checkpoint_begin(folder, tk_trainer_steps(trainer), &checkpoint);
    if (status != TK_OK) return status;
    status = save_files(tk_checkpoint_path(checkpoint), trainer, record);
    if (status == TK_OK) return tk_checkpoint_commit(checkpoint, keep);
    tk_checkpoint_abandon(checkpoint);
    return status;
}

static tk_status load_file(tk_context *context, const char *folder, const char *name,
                           tk_tree *tree) {
    char path[4096];
    tk_status status = run_path(path, sizeof path, folder, name);
    return status == TK_OK ? tk_safetensors_load(context, path, tree, NULL) : status;
}

tk_status run_restore(tk_context *context, const char *folder, tk_trainer *trainer, int64_t step) {
    tk_tree *parameters = tk_tree_new(), *state = tk_tree_new();
    char *checkpoint = NULL;
    tk_status status = TK_OK;
    if (!parameters || !state)
        status = tk_error_set(TK_OUT_OF_MEMORY, "no memory to load a checkpoint");
    if (status == TK_OK) status = tk_checkpoint_latest(folder, NULL, &checkpoint);
    if (status == TK_OK) status = load_file(context, checkpoint, "model.safetensors", parameters);
    if (status == TK_OK) status = load_file(context, checkpoint, "optimizer.safetensors", state);
    if (status == TK_OK) status = tk_trainer_restore(trainer, parameters, state, step);
    tk_text_free(checkpoint);
    tk_tree_free(parameters);
    tk_tree_free(state);
    return status;
}

/* ---- the loss curve ---- */

typedef struct point {
    double step, value;
} point;

typedef struct curve {
    point *points;
    size_t count, capacity;
} curve;

static bool add_point(curve *c, const json_t *line, const char *key) {
    const json_t *step = json_object_get(line, "step"), *value = json_object_get(line, key);
    if (!json_is_number(step) || !json_is_number(value)) return true;
    if (c->count == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 256;
        point *grown = realloc(c->points, capacity * sizeof *grown);
        if (!grown) return false;
        c->points = grown;
        c->capacity = capacity;
    }
    c->points[c->count++] = (point){json_number_value(step), json_number_value(value)};
    return true;
}

static tk_status read_curves(const char *path, curve *train, curve *held_out) {
    char *text;
    size_t bytes;
    tk_status status = tk_file_read(path, &text, &bytes);
    if (status != TK_OK) return status;
    for (char *line = strtok(text, "\n"); status == TK_OK && line; line = strtok(NULL, "\n")) {
        json_t *object = json_loads(line, 0, NULL);
        if (!add_point(train, object, "loss") || !add_point(held_out, object, "eval_loss"))
            status = tk_error_set(TK_OUT_OF_MEMORY, "no memory to draw %s", path);
        json_decref(object);
    }
    tk_text_free(text);
    return status;
}

typedef struct frame {
    double left, top, width, height, last_step, low, high; /* of values */
} frame;

static void put_curve(FILE *out, const frame *f, const curve *c, const char *colour,
                      double thickness) {
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%g\" points=\"", colour,
            thickness);
    size_t stride = c->count / 2000 + 1;
    for (size_t i = 0; i < c->count; i += stride) {
        double x = f->left + f->width * c->points[i].step / f->last_step;
        double y = f->top + f->height * (f->high - c->points[i].value) / (f->high - f->low);
        fprintf(out, "%.1f,%.1f ", x, y);
    }
    fprintf(out, "\"/>\n");
}

/* The least of 1, 2, 5, 10, 20, ... times a power of ten that divides `range` into 8 at most. */
static double spacing(double range) {
    double power = pow(10, floor(log10(range / 8)));
    const double digits[] = {1, 2, 5, 10};
    for (int i = 0; i < 3; i++)
        if (range / (digits[i] * power) <= 8) return digits[i] * power;
    return digits[3] * power;
}

static void put_axes(FILE *out, const frame *f) {
    double gap = spacing(f->high - f->low);
    for (int i = 0; f->low + gap * i <= f->high * (1 + 1e-9); i++) {
        double y = f->top + f->height - f->height * gap * i / (f->high - f->low);
        fprintf(out, "<line x1=\"%g\" x2=\"%g\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/>\n",
                f->left, f->left + f->width, y, y);
        fprintf(out, "<text x=\"%g\" y=\"%.1f\" text-anchor=\"end\">%g</text>\n", f->left - 6,
                y + 4, f->low + gap * i);
    }
    gap = fmax(spacing(f->last_step), 1);
    for (int i = 0; gap * i <= f->last_step; i++)
        fprintf(out, "<text x=\"%.1f\" y=\"%g\" text-anchor=\"middle\">%.0f</text>\n",
                f->left + f->width * gap * i / f->last_step, f->top + f->height + 18, gap * i);
    fprintf(out, "<text x=\"%g\" y=\"%g\" text-anchor=\"middle\">step</text>\n",
            f->left + f->width / 2, f->top + f->height + 36);
}

static frame frame_of(const curve *train, const curve *held_out) {
    frame f = {64, 40, 640, 320, 1, INFINITY, -INFINITY};
    for (int k = 0; k < 2; k++) {
        const curve *c = k ? held_out : train;
        for (size_t i = 0; i < c->count; i++) {
            if (c->points[i].step > f.last_step) f.last_step = c->points[i].step;
            if (c->points[i].value > f.high) f.high = c->points[i].value;
            if (c->points[i].value < f.low) f.low = c->points[i].value;
        }
    }
    if (!(f.low < f.high)) f.low = 0, f.high = 1;
    f.low = floor(f.low * 2) / 2; /* half a nat below, so that the axis begins at a round number */
    return f;
}

/* Means over the points around each (up to a hundredth of all on either side), so that the trend
 * shows through the noise and does not lag behind it. Sums from the front make it linear; false
 * when memory is out. */
static bool smooth(curve *c) {
    size_t reach = c->count / 100 + 2;
    double *sums = malloc((c->count + 1) * sizeof *sums);
    if (!sums) return false;
    sums[0] = 0;
    for (size_t i = 0; i < c->count; i++) sums[i + 1] = sums[i] + c->points[i].value;
    for (size_t i = 0; i < c->count; i++) {
        size_t side = i < reach ? i : reach;
        if (c->count - 1 - i < side) side = c->count - 1 - i;
        c->points[i].value = (sums[i + side + 1] - sums[i - side]) / (double)(2 * side + 1);
    }
    free(sums);
    return true;
}

static bool put_picture(FILE *out, curve *train, const curve *held_out) {
    frame f = frame_of(train, held_out);
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 728 416\" "
                 "font-family=\"sans-serif\" "
                 "font-size=\"12\">\n<rect width=\"728\" height=\"416\" fill=\"white\"/>\n");
    fprintf(out,
            "<text x=\"64\" y=\"24\">loss in nats a byte: "
            "<tspan fill=\"#1f77b4\">training, smoothed</tspan>%s</text>\n",
            held_out->count ? ", <tspan fill=\"#d62728\">held out</tspan>" : "");
    put_axes(out, &f);
    put_curve(out, &f, train, "#c6dbef", 1);
    bool ok = smooth(train);
    put_curve(out, &f, train, "#1f77b4", 2);
    put_curve(out, &f, held_out, "#d62728", 2);
    for (size_t i = 0; i < held_out->count; i++)
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#d62728\"/>\n",
                f.left + f.width * held_out->points[i].step / f.last_step,
                f.top + f.height * (f.high - held_out->points[i].value) / (f.high - f.low));
    fprintf(out, "</svg>\n");
    return ok;
}

tk_status run_draw(const char *folder) {
    char log[4096], picture[4096], *text = NULL;
    size_t bytes = 0;
    curve train = {0}, held_out = {0};
    tk_status status = run_path(log, sizeof log, folder, "log.jsonl");
    if (status == TK_OK) status = run_path(picture, sizeof picture, folder, "loss.svg");
    if (status == TK_OK) status = read_curves(log, &train, &held_out);
    FILE *out = status == TK_OK ? open_memstream(&text, &bytes) : NULL;
    if (status == TK_OK && !out)
        status = tk_error_set(TK_OUT_OF_MEMORY, "no memory to draw %s", picture);
    if (out) {
        bool ok = put_picture(out, &train, &held_out);
        ok = fclose(out) == 0 && ok;
        status = ok ? tk_file_write(picture, text, bytes)
                    : tk_error_set(TK_OUT_OF_MEMORY, "no memory to draw %s", picture);
    }
    free(text);
    free(train.points);
    free(held_out.points);
    return status;
}
