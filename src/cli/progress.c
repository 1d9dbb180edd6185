/* See progress.h. */
#define _DEFAULT_SOURCE
#include "cli/progress.h"

#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/commands.h"

void progress_start(progress *p, tk_context *context, int64_t first, int64_t last) {
    *p = (progress){
        .context = context, .first = first, .last = last, .started = now(), .terminal = isatty(1)};
}

void progress_begin_step(progress *p) { p->step_started = now(); }

static void format_time(double seconds, char *text, size_t bytes) {
    int64_t whole = (int64_t)(seconds + 0.5);
    if (whole >= 3600)
        snprintf(text, bytes, "%lld:%02lld:%02lld", (long long)(whole / 3600),
                 (long long)(whole / 60 % 60), (long long)(whole % 60));
    else
        snprintf(text, bytes, "%lld:%02lld", (long long)(whole / 60), (long long)(whole % 60));
}

static int columns(void) {
    struct winsize size;
    return ioctl(1, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* A line that fits the terminal: the bar takes what the text leaves and may vanish. */
static void put_bar_line(const tk_train_report *r, const progress *p, const char *text) {
    int width = columns() - 1, bar = width - (int)strlen(text) - 3;
    if (bar > 30) bar = 30;
    printf("\r\033[K");
    if (bar >= 4) {
        int64_t full = r->step * bar / p->last;
        putchar('[');
        for (int i = 0; i < bar; i++) putchar(i < full ? '#' : '.');
        printf("] ");
    }
    printf("%.*s", width, text);
}

static double mean_loss(const progress *p, int64_t step) {
    int64_t count = step - p->first < PROGRESS_LOSSES ? step - p->first : PROGRESS_LOSSES;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += p->losses[(step - i) % PROGRESS_LOSSES];
    return sum / (double)count;
}

static void show(progress *p, const tk_train_report *r) {
    char left[32], text[256];
    int64_t done = r->step - p->first, to_do = p->last - r->step;
    double seconds = now() - p->started;
    format_time(seconds / (double)done * (double)to_do, left, sizeof left);
    double megabytes = (double)tk_device_memory(tk_context_device(p->context)).peak / (1 << 20);
    snprintf(text, sizeof text,
             "%lld/%lld loss %.4f lr %.1e norm %.2f %.0f tokens/s %.0f MB %s left",
             (long long)r->step, (long long)p->last, mean_loss(p, r->step), r->rate, r->norm,
             p->rate, megabytes, left);
    if (p->terminal)
        put_bar_line(r, p, text);
    else
        printf("step %s\n", text);
    fflush(stdout);
    p->shown = now();
}

void progress_step(progress *p, const tk_train_report *r) {
    double rate = (double)r->tokens / (now() - p->step_started);
    bool first = r->step == p->first + 1;
    p->rate = first ? rate : 0.9 * p->rate + 0.1 * rate;
    p->losses[r->step % PROGRESS_LOSSES] = r->loss;
    bool is_time = now() - p->shown >= (p->terminal ? 0.1 : 5);
    if (first || is_time || r->step == p->last) show(p, r);
}

void progress_break(const progress *p) {
    if (p->terminal) putchar('\n');
}

void progress_note(const progress *p, const char *text) {
    if (!p->terminal) return;
    fputs(text, stdout);
    fflush(stdout);
}

void progress_clear(const progress *p) {
    if (p->terminal) printf("\r\033[K");
}
