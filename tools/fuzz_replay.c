/* Runs a fuzzer's entry point on files, without a fuzzer: the kept inputs as an ordinary test.
 *
 * Arguments are files or folders; a folder's files are run in any order. Exit 1 when a file cannot
 * be read or there was none; what the entry point finds ends the process by itself. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The whole file, or NULL; *out_size is its length. The caller frees it. */
static uint8_t *read_file(const char *path, size_t *out_size) {
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    uint8_t *data = NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        long size = ftell(file);
        data = size >= 0 ? malloc((size_t)size + 1) : NULL;
        rewind(file);
        if (data && fread(data, 1, (size_t)size, file) != (size_t)size) {
            free(data);
            data = NULL;
        }
        *out_size = (size_t)size;
    }
    fclose(file);
    return data;
}

static int run_file(const char *path) {
    size_t size = 0;
    uint8_t *data = read_file(path, &size);
    if (!data) {
        fprintf(stderr, "%s: cannot be read\n", path);
        return -1;
    }
    LLVMFuzzerTestOneInput(data, size);
    free(data);
    return 1;
}

/* Files run, -1 when one could not be read. */
static int run_folder(DIR *folder, const char *path) {
    int count = 0;
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (entry->d_name[0] == '.') continue;
        size_t length = strlen(path) + strlen(entry->d_name) + 2;
        char *file_path = malloc(length);
        if (!file_path) return -1;
        snprintf(file_path, length, "%s/%s", path, entry->d_name);
        int ran = run_file(file_path);
        free(file_path);
        if (ran < 0) return -1;
        count += ran;
    }
    return count;
}

int main(int count, char **paths) {
    int files = 0;
    for (int i = 1; i < count; i++) {
        DIR *folder = opendir(paths[i]);
        int ran = folder ? run_folder(folder, paths[i]) : run_file(paths[i]);
        if (folder) closedir(folder);
        if (ran < 0) return 1;
        files += ran;
    }
    printf("%d inputs\n", files);
    return files > 0 ? 0 : 1;
}
