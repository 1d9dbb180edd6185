"""Control flow of kernels written in Python: the emulator's lanes give what Python gives."""

import numpy
import pytest
from kernel_front import fails, lower, on_device

from tiki.kernels.cute.lib.math import Boolean, Float32, Int32, Int64, const_expr, cute, range_constexpr

OUTSIDE = 7

# ---- what is captured ----


def plain(a, b):
    return a + b * 2 - 3


def if_only(a, b):
    c = a
    if a > b:
        c = b
    return c


def if_else(a, b):
    if a > b:
        c = a - b
    else:
        c = b - a
    return c


def elif_chain(a, b):
    if a < -2:
        c = 1
    elif a < 0:
        c = 2
    elif a == b:
        c = 3
    else:
        c = a
    return c


def if_nested(a, b):
    c = 0
    if a > 0:
        if b > 0:
            c = a
        else:
            c = b
        c += 1
    return c


def if_two_names(a, b):
    low, high = a, b
    if a > b:
        low, high = b, a
    return high * 100 + low


def if_of_constants(a, b):
    c = 5
    if a > b:
        c = 9
    return c


def if_same_constant(a, b):
    c = 5
    if a > b:
        c = 5
    d = range_constexpr(c)  # c is still a Python number
    return a + len(d)


def if_temporary(a, b):
    c = a
    if a > b:
        t = a * 2
        c = t + 1
    else:
        t = b * 3
        c = t - 1
    return c


def if_list(a, b):
    pair = [a, b]
    if a > b:
        pair[0] = b
    return pair[0] * 10 + pair[1]


def if_dict(a, b):
    d = {"x": a, "y": 1}
    if a > b:
        d["x"] = d["x"] + 1
        d["y"] = 2
    return d["x"] * 10 + d["y"]


def if_tuple(a, b):
    t = (a, (b, 1))
    if a > 0:
        t = (b, (a, 2))
    return t[0] + 10 * t[1][0] + 100 * t[1][1]


def if_static(a, b):
    if OUTSIDE == 7:
        return a
    return b


def if_const_expr(a, b):
    if const_expr(OUTSIDE > 8):
        c = a
    else:
        c = b
    return c


def for_sum(a, b):
    total = 0
    for i in range(a):
        total += i
    return total


def for_from_to(a, b):
    total = 0
    for i in range(b, a):
        total = total + i * i
    return total


def for_step(a, b):
    total = 0
    for i in range(b, a, 3):
        total += i
    return total


def for_no_time(a, b):
    total = a
    for _ in range(b - b):
        total = 100
    return total


def for_nested(a, b):
    total = 0
    for i in range(a):
        for j in range(i, b):
            total += i * j
    return total


def for_swap(a, b):
    x, y = a, b
    for _ in range(a):
        x, y = y, x + 1
    return x * 1000 + y


def for_if(a, b):
    count = 0
    for i in range(a):
        if i % 2 == 0:
            count += 1
        else:
            count -= b
    return count


def for_temporary(a, b):
    t = 5
    total = t
    for i in range(a):
        t = i + b
        total += t
    t = 3
    return total + t


def for_conditional_temporary(a, b):
    total = 0
    for i in range(a):
        if i > b:
            x = i
        else:
            x = b
        total += x
    return total


def for_unchanged(a, b):
    k = 4
    total = 0
    for i in range(a):
        if const_expr(OUTSIDE == 0):
            k = b
        total += i * k
    return total


def for_static(a, b):
    total = a
    for i in range(4):
        total += i * b
    return total


def for_static_break(a, b):
    total = a
    for i in range(10):
        if i == 3:
            break
        if i == 1:
            continue
        total += i * b
    else:
        total = 0
    return total


def for_constexpr(a, b):
    total = a
    for i in range_constexpr(1, 6, 2):
        total += i
    return total


def for_device(a, b):
    total = a
    for i in cute.range(0, 6, 2):
        total += i * b
    return total


def for_device_unrolled(a, b):
    total = a
    for i in cute.range(5, unroll=-1):
        total += i * b
    return total


def for_over_list(a, b):
    total = 0
    for x in [a, b, 3]:
        total += x
    return total


def for_carries_list(a, b):
    acc = [a, 0, 0]
    for i in range(b):
        acc[0] = acc[0] + 1
        for j in range_constexpr(2):
            acc[j + 1] += i
    return acc[0] + 10 * acc[1] + 100 * acc[2]


def for_carries_tuple(a, b):
    state = (a, b)
    for i in range(3 + a - a):
        state = (state[1], state[0] + i)
    return state[0] * 50 + state[1]


def while_halve(a, b):
    n, steps = a, 0
    while n > 0:
        n = n // 2
        steps += 1
    return steps


def while_gcd(a, b):
    x, y = abs(a), abs(b)
    while y != 0:
        x, y = y, x % y
    return x


def while_no_time(a, b):
    n = a
    while n > n:
        n += 1
    return n


def while_nested(a, b):
    total, i = 0, 0
    while i < a:
        j = 0
        while j < b:
            total += i + j
            j += 1
        i += 1
    return total


def while_static(a, b):
    i, total = 0, a
    while i < 3:
        total += b
        i += 1
    return total


def while_static_break(a, b):
    i = 0
    while True:
        i += 1
        if i == 4:
            break
    return a + i


def while_and(a, b):
    i = 0
    while i < a and i * i < b + 20:
        i += 1
    return i


def for_inside_while(a, b):
    total, n = 0, a
    while n > 0:
        for i in range(n):
            total += i
        n -= 2
    return total


def and_or_not(a, b):
    c = 0
    if a > 0 and b > 0:
        c = 1
    if a > 3 or not b > 2:
        c += 10
    if not (a == b):
        c += 100
    return c


def and_three(a, b):
    c = 0
    if a > -5 and b > -5 and a + b > 0:
        c = 1
    return c


def and_or_values(a, b):
    return Int32(a > 1 and b > 1) + Int32((a < 0 or b < 0)) * 2


def mixed_static_and(a, b):
    c = 0
    if OUTSIDE == 7 and a > b:
        c = 1
    if OUTSIDE == 8 or a > b:
        c += 2
    return c


def comparison_chain(a, b):
    c = 0
    if -3 < a <= b < 9:
        c = 1
    if a < b > 2:
        c += 2
    return c


def ternary(a, b):
    return a if a > b else b


def ternary_nested(a, b):
    return 1 if a > 2 else 2 if b > 2 else 3


def ternary_static(a, b):
    return a if OUTSIDE else b


def ternary_divides(a, b):
    return a // b if b != 0 else 0


def min_max(a, b):
    return min(a, b, 3) * 100 + max(a, b) + max(2, 5) + min([4, 6])


def augmented(a, b):
    a += 1
    a *= b
    a -= 3
    a //= 2
    a %= 7
    a <<= 2
    a |= 1
    a ^= b & 15
    return a


def closure(a, b):
    k = 3

    def inner(x):
        if x > b:
            y = x
        else:
            y = k
        return y

    return inner(a) + inner(b + 1)


def lambda_(a, b):
    f = lambda x: x if x > b else -x  # noqa: E731
    return f(a) + f(2)


@cute.jit
def helper(x: Int32, y=4, *rest, scale: Int32 = 2):
    total = x
    for i in range(y):
        total += i
    for r in rest:
        total += r
    return total * scale


def calls(a, b):
    return helper(a) + helper(b, a, 1, 2, scale=3) + helper(3)


def global_read(a, b):
    c = OUTSIDE
    if a > b:
        c = OUTSIDE + a
    return c


def walrus(a, b):
    if (c := a + b) > 2:
        c = 0
    return c


def comprehension(a, b):
    xs = [a + i for i in range(3)]
    t = sum(xs)
    if a > b:
        i = 4
        t += sum(i for i in xs)
    else:
        i = 5
    return t + i


def deletes(a, b):
    c = a
    if a > b:
        t = a
        c = t
        del t
    return c


def with_statement(a, b):
    import contextlib

    with contextlib.nullcontext(a) as x:
        if x > b:
            x = b
    return x


def try_statement(a, b):
    try:
        c = a
        if a > b:
            c = b
    except ZeroDivisionError:
        c = 0
    finally:
        d = 1
    return c + d


def early_static_return(a, b):
    for i in range(3):
        if i == 2:
            return a * i
    return b


def unrolled_by_index(a, b):
    table = [3, 1, 4]
    total = 0
    for i in range(len(table)):
        if table[i] > 2:
            total += a * table[i]
    return total


def appended_on_both_paths(a, b):
    xs = []
    if a > b:
        xs.append(1)
        xs.append(a)
    else:
        xs.append(2)
        xs.append(b)
    return xs[0] * 100 + xs[1]


def list_changed_in_loop(a, b):
    xs = [a, b]
    for _ in range(b):
        xs.append(xs.pop(0) + 1)
    return xs[0] * 100 + xs[1]


def rebound_inside(a, b):
    total = a

    def bump(x):
        nonlocal total
        total = total + x
        return total

    last = 0
    for i in range(b):
        last = bump(i)
    if a > b:
        bump(100)
    return total * 7 + last


def flag(a, b):
    found = False
    for i in range(a):
        if i == b:
            found = True
    return 1 if found else 0


def wide(a, b):
    big = Int64(a) * 1000003
    for _ in range(b):
        big = big + Int64(1)
    return Int32(big % 65536)


CASES = [
    plain, if_only, if_else, elif_chain, if_nested, if_two_names, if_of_constants, if_same_constant,
    if_temporary, if_list, if_dict, if_tuple, if_static, if_const_expr, for_sum, for_from_to, for_step,
    for_no_time, for_nested, for_swap, for_if, for_temporary, for_conditional_temporary, for_unchanged,
    for_static, for_static_break, for_constexpr, for_over_list, for_carries_list, for_carries_tuple,
    while_halve, while_gcd, while_no_time, while_nested, while_static, while_static_break, while_and,
    for_inside_while, and_or_not, and_three, and_or_values, mixed_static_and, comparison_chain, ternary,
    ternary_nested, ternary_static, ternary_divides, min_max, augmented, closure, lambda_, global_read, walrus,
    comprehension, deletes, with_statement, try_statement, early_static_return, unrolled_by_index,
    appended_on_both_paths, list_changed_in_loop, rebound_inside, flag,
]  # fmt: skip

A = numpy.array(
    [-9, -5, -3, -1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2, 2, 0, 0, 5, 5, 3, -4, 1, 10, 6, 7, 12, 4, -2, 8, 1, 3]
)
B = numpy.array([-9, 4, -3, 2, 0, -1, 2, 5, 3, 5, 0, 7, -8, 1, 3, 1, 6, -6, 2, 9, 3, -4, 2, 4, 6, 1, 5, 8, -7, 3, 1, 4])


def in_python(function):
    return [int(function(int(a), int(b))) for a, b in zip(A, B)]


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_what_python_gives(function):
    assert on_device(function, A, B).tolist() == in_python(function)


def test_functions_that_only_a_kernel_runs():
    def of_helper(x, y=4, *rest, scale=2):
        return (x + sum(range(y)) + sum(rest)) * scale

    expected = [of_helper(a) + of_helper(b, a, 1, 2, scale=3) + of_helper(3) for a, b in zip(A, B)]
    assert on_device(calls, A, B).tolist() == expected
    assert on_device(for_device, A, B).tolist() == [a + 6 * b for a, b in zip(A, B)]
    assert on_device(for_device_unrolled, A, B).tolist() == [a + 10 * b for a, b in zip(A, B)]
    assert "[unroll = -1]" in lower(for_device_unrolled, 2).text
    expected = [(a * 1000003 + max(b, 0)) % 65536 for a, b in zip(A.tolist(), B.tolist())]
    assert on_device(wide, A, B).tolist() == expected


def test_the_rest_of_a_condition_is_not_computed():
    """A load or division behind `and` stands inside an if, so it runs where Python would run it."""

    def guarded(a, b):
        c = 0
        if b != 0 and a // b > 1:
            c = 1
        return c

    assert on_device(guarded, A, B).tolist() == in_python(guarded)
    assert lower(guarded, 2).text.count("if ") == 2


def test_what_does_not_change_is_not_carried():
    text = lower(for_unchanged, 2).text
    assert "carry (%total" in text and text.count("yield") == 1 and "%k" not in text
    assert "carry" not in lower(if_temporary, 2).text


def test_names_appear_in_the_text():
    text = lower(for_sum, 2).text
    assert "%total" in text and "%i" in text


# ---- what is not ----


def changes_type(a):
    x = a
    for i in range(a):  # here
        x = x + Float32(i)
    return a


def changes_type_while(a):
    x = a
    while x > 0:  # here
        x = x - Int64(1)
    return Int32(x)


def branches_differ(a):
    x = a
    if a > 0:  # here
        x = Float32(a)
    return Int32(x)


def number_and_float(a):
    x = a
    if a > 0:  # here
        x = 1.5
    return x + 0


def tuple_and_number(a):
    x = (a, a)
    if a > 0:  # here
        x = a
    return x


def list_grows(a):
    x = [a]
    for i in range(a):  # here
        x = x + [i]
    return x[0]


def none_and_number(a):
    x = None
    if a > 0:  # here
        x = a
    return x


def undefined_on_one_path(a):
    if a > 0:
        x = a
    return x  # here


def undefined_on_other_path(a):
    if a > 0:
        pass
    else:
        x = a
    a = x + 1  # here
    return a


def undefined_after_loop(a):
    for i in range(a):
        x = i
    return x  # here


def index_after_loop(a):
    for i in range(a):
        pass
    return i  # here


def used_before(a):
    if a is None:
        x = 1
    return x  # here


def augmented_before(a):
    for i in range(a):
        x += i  # here
    return a


def early_return(a):
    if a > 0:
        return a  # here
    return 0


def early_return_in_loop(a):
    for i in range(3):
        if a > i:
            return a  # here
    return 0


def return_from_device_loop(a):
    for i in range(a):
        return i  # here
    return 0


def device_break(a):
    for i in range(a):
        if const_expr(True):
            break  # here
    return a


def break_on_device(a):
    for i in range(10):
        if a > i:
            break  # here
    return a


def continue_on_device(a):
    while a > 0:
        a -= 1
        continue  # here
    return a


def else_of_loop(a):
    total = 0
    for i in range(a):
        total += i
    else:
        total = 1  # here
    return total


def as_condition_elsewhere(a):
    return len([i for i in range(3) if a > i])  # here


def in_operator(a):
    return 1 if a in (1, 2) else 0  # here


def as_index(a):
    return [1, 2, 3][a]  # here


def as_int(a):
    return int(a)  # here


def as_float(a):
    return int(float(a))  # here


def const_of_device(a):
    return const_expr(a)  # here


def constexpr_range_of_device(a):
    for i in range_constexpr(a):  # here
        pass
    return a


def iterates_number(a):
    for i in a:  # here
        pass
    return a


def range_of_float(a):
    for i in range(Float32(a)):  # here
        pass
    return a


def range_down(a):
    for i in range(a, 0, -1):  # here
        pass
    return a


def escapes(a):
    kept = []
    for i in range(a):  # here
        list.append(kept, i + 1)
    return kept[0] * 2


def escapes_from_if(a):
    kept = {}
    if a > 0:  # here
        dict.update(kept, x=a * 3)
    return kept["x"] + 1


def appended_in_loop(a):
    kept = []
    for i in range(a):  # here
        kept.append(i + 1)
    return kept[0]


class Box:
    value = 0


def attribute_in_loop(a):
    box = Box()
    box.value = 1
    for _ in range(a):
        box.value = box.value + 1  # here
    return box.value


def attribute_in_if(a):
    box = Box()
    if a > 0:
        box.value += 1  # here
    return box.value


def appended_on_one_path(a):
    xs = []
    if a > 0:  # here
        xs.append(1)
    return len(xs)


def walrus_in_and(a):
    if a > 0 and (c := a) > 1:  # here
        return c
    return a


def generator(a):
    yield a  # here


def ternary_types(a):
    return Int32(Float32(1) if a > 0 else Int64(2))  # here


def rebinds_nonlocal(a):
    x = 0

    def inner():
        nonlocal x
        if a > 0:  # here
            x = 1

    inner()
    return x


def bits_of_float(a):
    return Int32(Float32(a) & 3)  # here


def strange_operand(a):
    return Int32("seven")  # here


def power_of_device(a):
    return a**a  # here


def assertion_message(a):
    assert OUTSIDE == 8, "seven"
    return a


FAULTS = [
    (changes_type, "x is Int32 before the for on line", "Float32 after its body"),
    (changes_type_while, "x is Int32 before the while", "Int64"),
    (branches_differ, "x is Float32 where the condition of the if on line", "Int32 where it does not"),
    (number_and_float, "x is the Python value 1.5 where", "Int32"),
    (tuple_and_number, "x is Int32 where", "(Int32, Int32)"),
    (list_grows, "x is [Int32] before", "[Int32, Int32] after"),
    (none_and_number, "x is Int32 where", "None"),
    (undefined_on_one_path, "x has no value when the condition of the if on line", "does not hold"),
    (undefined_on_other_path, "x has no value when the condition", "holds"),
    (undefined_after_loop, "x has no value when the for on line", "runs no time"),
    (index_after_loop, "i is the index of the for"),
    (used_before, "x is used before it has a value"),
    (augmented_before, "x is used before it has a value"),
    (early_return, "return inside the if on line", "cannot be captured"),
    (early_return_in_loop, "return inside the if"),
    (return_from_device_loop, "return inside the for"),
    (device_break, "break inside the for"),
    (break_on_device, "break inside the if"),
    (continue_on_device, "continue inside the while"),
    (else_of_loop, "the else of the for"),
    (as_condition_elsewhere, "a Boolean of the device as a Python condition"),
    (in_operator, "as a Python condition"),
    (as_index, "where Python needs an integer at build time"),
    (as_int, "integer at build time"),
    (as_float, "float at build time"),
    (const_of_device, "const_expr of a value of the device"),
    (constexpr_range_of_device, "range_constexpr of a value of the device"),
    (iterates_number, "a for over a Int32"),
    (range_of_float, "range of Float32"),
    (range_down, "range with step -1"),
    (escapes, "kept (a list) is changed inside the for on line", "cannot be carried"),
    (escapes_from_if, "kept (a dict) is changed inside the if on line"),
    (appended_in_loop, "kept is a list or dictionary that the for on line", "changes in size"),
    (attribute_in_loop, "assignment to an attribute inside the for", "use a name"),
    (attribute_in_if, "assignment to an attribute inside the if"),
    (appended_on_one_path, "xs is [the Python value 1] where", "[] where it does not"),
    (walrus_in_and, "c := is inside an `and`"),
    (generator, "generators cannot be captured"),
    (ternary_types, "`if else` gives Float32 or Int64"),
    (rebinds_nonlocal, "rebinds x, which is global or nonlocal"),
    (bits_of_float, "& of Float32"),
    (strange_operand, "Int32 of a str"),
    (power_of_device, "the exponent is an integer"),
]


@pytest.mark.parametrize(
    "function, words", [(row[0], row[1:]) for row in FAULTS], ids=lambda x: getattr(x, "__name__", "")
)
def test_faults_are_named_at_their_line(function, words):
    fails(function, *words)


def test_assertions():
    def of_device(a):
        assert a < 5, "too large"
        return a

    text = lower(of_device, 1).text
    assert "assert" in text and '"too large"' in text
    with pytest.raises(AssertionError, match="seven"):
        lower(assertion_message, 1)


def test_a_function_without_source():
    scope = {}
    exec("def nameless(a):\n    return a", scope)
    with pytest.raises(ValueError, match="the source of nameless cannot be read"):
        lower(scope["nameless"], 1)
    with pytest.raises(ValueError, match="no function made by def"):
        lower(lambda a: a, 1)
    with pytest.raises(ValueError, match="is no function that can be captured"):
        cute.jit(3)


def test_outside_of_a_kernel():
    assert helper(1) == helper.__wrapped__(1)  # a host function that launches nothing
    with pytest.raises(ValueError, match="no kernel is being built"):
        Int32(1) < Int32(2)
    assert repr(Boolean) == "Boolean" and repr(Int32(3)) == "Int32(3)"


def test_lines_of_the_text_are_those_of_the_source():
    kernel = lower(plain, 2)
    assert "test_kernel_front_flow.py" in kernel.raw.text_with_lines
