// From C++17: the same headers, the same calls; a scope in a destructor and errors as exceptions
// take four lines.
#include <cstdio>
#include <stdexcept>
#include <tiki/array.h>

namespace {

class Scope {
  public:
    explicit Scope(tk_context *context) : scope(tk_scope_open(context)) {}
    ~Scope() { tk_scope_close(scope); }
    Scope(const Scope &) = delete;
    Scope &operator=(const Scope &) = delete;

  private:
    tk_scope scope;
};

void check(tk_status status) {
    if (status != TK_OK) throw std::runtime_error(tk_error_message());
}

double item(tk_array array) {
    double value = 0;
    check(tk_item(array, &value));
    return value;
}

} // namespace

int main() {
    tk_context *context = nullptr;
    check(tk_context_create(nullptr, &context));
    {
        Scope scope(context);
        tk_array x = tk_linspace(context, 0, 1, 5, true, TK_FLOAT32);
        std::printf("mean of 0, 0.25 ... 1: %.2f\n", item(tk_mean(x, TK_ALL_AXES, TK_DROPDIMS)));
        std::printf("sum of a 2 x 3 x 4 of ones: %.0f\n",
                    item(tk_sum(tk_ones(context, TK_SHAPE(2, 3, 4), TK_FLOAT32), TK_AXES(0, 1, 2),
                                TK_DROPDIMS)));
        try {
            item(x);
        } catch (const std::runtime_error &error) {
            std::printf("%s\n", error.what());
        }
    }
    tk_context_release(context);
}
