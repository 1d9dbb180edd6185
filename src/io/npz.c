/* npz: a zip archive of npy files, by libzip.
 *
 * Reading maps the archive and unpacks each member into memory of its own, which the array then
 * keeps. A member's announced size is believed only as far as deflate can go, so that a small file
 * cannot ask for all memory. Writing lets libzip make the archive under the temporary name, with
 * the arrays' own memory as sources, and then syncs and renames it as every writer does. Dates are
 * those that NumPy writes, so the same arrays give the same bytes. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/vec.h"
#include "io/npy.h"

/* Deflate makes at most 1,032 bytes of one. */
#define MOST_EXPANSION 1040

static tk_status zip_fail(const char *what, zip_error_t *error) {
    bool no_memory = zip_error_code_zip(error) == ZIP_ER_MEMORY;
    return tk_fail(no_memory ? TK_OUT_OF_MEMORY : TK_FORMAT_ERROR, "%.400s: zip archive: %s", what,
                   zip_error_strerror(error));
}

/* ---- reading ---- */

typedef struct npz_reader {
    tk_context *context;
    const char *file;
    zip_t *archive;
    tk_tree *tree; /* of this archive alone */
} npz_reader;

static tk_status unpack_all(const char *what, zip_file_t *member, unsigned char *data,
                            size_t bytes) {
    size_t at = 0;
    while (at < bytes) {
        zip_int64_t count = zip_fread(member, data + at, bytes - at);
        if (count < 0) return zip_fail(what, zip_file_get_error(member));
        if (count == 0)
            return tk_fail(TK_FORMAT_ERROR, "%.400s: the archive announces %zu bytes, found %zu",
                           what, bytes, at);
        at += (size_t)count;
    }
    char more;
    zip_int64_t rest = zip_fread(member, &more, 1); /* also checks the checksum */
    if (rest < 0) return zip_fail(what, zip_file_get_error(member));
    if (rest == 0) return TK_OK;
    return tk_fail(TK_FORMAT_ERROR, "%.400s: the archive announces %zu bytes, found more", what,
                   bytes);
}

static tk_status unpack(const npz_reader *r, const char *what, zip_uint64_t index, size_t bytes,
                        tk_mapping **out_mapping) {
    zip_file_t *member = zip_fopen_index(r->archive, index, 0);
    if (!member) return zip_fail(what, zip_get_error(r->archive));
    unsigned char *data = tk_malloc(bytes);
    tk_status status = data ? unpack_all(what, member, data, bytes) : tk_io_no_memory(what);
    zip_fclose(member);
    if (status == TK_OK) return tk_mapping_adopt(what, data, bytes, out_mapping);
    tk_free(data);
    return status;
}

static tk_status check_stat(const char *what, const zip_stat_t *info) {
    zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE;
    if ((info->valid & needed) != needed)
        return tk_fail(TK_FORMAT_ERROR, "%.400s: the archive does not say its size", what);
    if (info->size / MOST_EXPANSION <= info->comp_size) return TK_OK;
    return tk_fail(TK_FORMAT_ERROR,
                   "%.400s: the archive announces %llu bytes, its %llu packed bytes cannot hold "
                   "that",
                   what, (unsigned long long)info->size, (unsigned long long)info->comp_size);
}

static tk_status set_array(const npz_reader *r, const char *what, const char *name,
                           tk_mapping *mapping) {
    tk_array array;
    tk_scope scope = tk_scope_open(r->context);
    tk_status status = tk_npy_read(r->context, what, &mapping, &array);
    if (status == TK_OK) status = tk_tree_set(r->tree, name, array);
    tk_scope_close(scope);
    tk_mapping_release(mapping);
    return status;
}

static tk_status load_member(const npz_reader *r, const char *what, const char *name,
                             zip_uint64_t index) {
    zip_stat_t info;
    tk_mapping *mapping;
    if (tk_tree_find(r->tree, name) < tk_tree_count(r->tree))
        return tk_fail(TK_FORMAT_ERROR, "%.400s: the name is there twice", what);
    if (zip_stat_index(r->archive, index, 0, &info) != 0)
        return zip_fail(what, zip_get_error(r->archive));
    TK_TRY(check_stat(what, &info));
    TK_TRY(unpack(r, what, index, (size_t)info.size, &mapping));
    return set_array(r, what, name, mapping);
}

static tk_status load_index(const npz_reader *r, zip_uint64_t index) {
    const char *member = zip_get_name(r->archive, index, 0);
    if (!member) return zip_fail(r->file, zip_get_error(r->archive));
    size_t length = strlen(member);
    tk_strbuf what = {0}, name = {0};
    tk_strbuf_printf(&what, "%.200s: \"%.160s\"", r->file, member);
    tk_status status;
    if (length < 5 || strcmp(member + length - 4, ".npy") != 0) {
        status = tk_fail(TK_FORMAT_ERROR, "%.200s: \"%.160s\": members NAME.npy are expected",
                         r->file, member);
    } else {
        tk_strbuf_put(&name, member, length - 4);
        status = what.failed || name.failed ? tk_io_no_memory(r->file)
                                            : load_member(r, what.text, name.text, index);
    }
    tk_strbuf_deinit(&what);
    tk_strbuf_deinit(&name);
    return status;
}

/* libzip takes a file without bytes for an archive without members. */
static tk_status open_archive(const char *file, const tk_mapping *mapping, zip_t **out_archive) {
    *out_archive = NULL;
    if (mapping->bytes == 0)
        return tk_fail(TK_FORMAT_ERROR, "%.400s: a zip archive is expected, the file is empty",
                       file);
    zip_error_t error;
    zip_error_init(&error);
    zip_source_t *source = zip_source_buffer_create(mapping->data, mapping->bytes, 0, &error);
    *out_archive = source ? zip_open_from_source(source, ZIP_RDONLY | ZIP_CHECKCONS, &error) : NULL;
    tk_status status = *out_archive ? TK_OK : zip_fail(file, &error);
    if (!*out_archive && source) zip_source_free(source);
    zip_error_fini(&error);
    return status;
}

static tk_status load_members(npz_reader *r, tk_tree *tree) {
    zip_int64_t count = zip_get_num_entries(r->archive, 0);
    tk_status status = TK_OK;
    for (zip_int64_t i = 0; status == TK_OK && i < count; i++)
        status = load_index(r, (zip_uint64_t)i);
    return status == TK_OK ? tk_tree_merge(tree, r->tree) : status;
}

/* Consumes the mapping. */
static tk_status load_archive(tk_context *context, const char *file, tk_mapping *mapping,
                              tk_tree *tree) {
    npz_reader r = {.context = context, .file = file};
    tk_status status = open_archive(file, mapping, &r.archive);
    if (status == TK_OK) {
        r.tree = tk_tree_new();
        status = r.tree ? load_members(&r, tree) : tk_io_no_memory(file);
        tk_tree_free(r.tree);
        zip_discard(r.archive);
    }
    tk_mapping_release(mapping);
    return status;
}

tk_status tk_npz_load(tk_context *context, const char *path, tk_tree *tree) {
    TK_NEED(context, path, tree);
    tk_mapping *mapping;
    TK_TRY(tk_mapping_open(path, &mapping));
    return load_archive(context, path, mapping, tree);
}

tk_status tk_npz_parse(tk_context *context, const char *name, const void *data, size_t bytes,
                       tk_tree *tree) {
    TK_NEED(context, tree);
    if (bytes) TK_NEED(data);
    tk_mapping *mapping;
    if (!name) name = "memory";
    TK_TRY(tk_mapping_copy(name, data, bytes, &mapping));
    return load_archive(context, name, mapping, tree);
}

/* ---- writing ---- */

/* What must live until the archive is closed. */
typedef struct npz_member {
    tk_strbuf header;
    void *copy;
} npz_member;

typedef struct npz_writer {
    const char *path;
    zip_t *archive;
    bool compressed;
    npz_member *members;
} npz_writer;

static tk_status add_source(npz_writer *w, const char *name, zip_source_t *source) {
    tk_strbuf member = {0};
    tk_strbuf_printf(&member, "%s.npy", name);
    zip_int64_t index =
        member.failed ? -1 : zip_file_add(w->archive, member.text, source, ZIP_FL_ENC_UTF_8);
    bool no_memory = member.failed;
    tk_strbuf_deinit(&member);
    if (index < 0) zip_source_free(source);
    if (no_memory) return tk_io_no_memory(w->path);
    if (index < 0) return zip_fail(w->path, zip_get_error(w->archive));
    zip_int32_t method = w->compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE;
    if (zip_set_file_compression(w->archive, (zip_uint64_t)index, method, 6) != 0 ||
        zip_file_set_dostime(w->archive, (zip_uint64_t)index, 0, 0x21, 0) != 0)
        return zip_fail(w->path, zip_get_error(w->archive));
    return TK_OK;
}

static tk_status add_member(npz_writer *w, npz_member *member, const char *name, tk_array array) {
    const void *data;
    size_t bytes;
    TK_TRY(tk_array_bytes(array, &data, &bytes, &member->copy));
    TK_TRY(tk_npy_put_header(&member->header, array));
    zip_buffer_fragment_t fragments[2] = {
        {(zip_uint8_t *)member->header.text, member->header.length},
        {(zip_uint8_t *)(uintptr_t)data, bytes},
    };
    zip_source_t *source = zip_source_buffer_fragment(w->archive, fragments, bytes ? 2 : 1, 0);
    if (!source) return zip_fail(w->path, zip_get_error(w->archive));
    return add_source(w, name, source);
}

static tk_status add_members(npz_writer *w, const tk_tree *tree) {
    for (size_t i = 0; i < tk_tree_count(tree); i++)
        TK_TRY(add_member(w, &w->members[i], tk_tree_name(tree, i), tk_tree_at(tree, i)));
    return TK_OK;
}

static tk_status close_archive(npz_writer *w, tk_status status) {
    if (status == TK_OK) status = tk_io_begin_step("write", w->path);
    if (status == TK_OK && zip_close(w->archive) == 0) return TK_OK;
    if (status == TK_OK) {
        zip_error_t *error = zip_get_error(w->archive);
        bool system = zip_error_system_type(error) != ZIP_ET_NONE;
        status = tk_fail(system ? TK_IO_ERROR : TK_INTERNAL, "%.400s: zip archive: %s", w->path,
                         zip_error_strerror(error));
    }
    zip_discard(w->archive);
    return status;
}

static tk_status write_archive(npz_writer *w, const char *temporary, const tk_tree *tree) {
    int code = 0;
    w->archive = zip_open(temporary, ZIP_CREATE | ZIP_TRUNCATE, &code);
    if (!w->archive) {
        zip_error_t error;
        zip_error_init_with_code(&error, code);
        tk_status status = zip_fail(w->path, &error);
        zip_error_fini(&error);
        return status;
    }
    return close_archive(w, add_members(w, tree));
}

/* An archive without members: libzip would write no file. */
static tk_status write_empty(tk_writer *writer) {
    static const char end_record[22] = {'P', 'K', 5, 6};
    return tk_writer_put(writer, end_record, sizeof end_record);
}

static tk_status write_tree(tk_writer *writer, const tk_tree *tree, bool compressed) {
    size_t count = tk_tree_count(tree);
    if (count == 0) return write_empty(writer);
    npz_writer w = {.path = writer->path, .compressed = compressed};
    w.members = tk_calloc(count, sizeof *w.members);
    if (!w.members) return tk_io_no_memory(w.path);
    tk_status status = write_archive(&w, writer->temporary, tree);
    for (size_t i = 0; i < count; i++) {
        tk_strbuf_deinit(&w.members[i].header);
        tk_free(w.members[i].copy);
    }
    tk_free(w.members);
    return status == TK_OK ? tk_writer_reopen(writer) : status;
}

tk_status tk_npz_save(const char *path, const tk_tree *tree, bool compressed) {
    TK_NEED(path, tree);
    TK_TRY(tk_tree_eval(tree));
    tk_writer writer;
    TK_TRY(tk_writer_open(&writer, path));
    return tk_writer_close(&writer, write_tree(&writer, tree, compressed));
}
