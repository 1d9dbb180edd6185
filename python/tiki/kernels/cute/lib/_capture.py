"""Python functions as device programs: the syntax tree is read and rewritten, then compiled again.

`if`, `for`, `while`, `and`, `or`, `not`, `a if c else b`, chained comparisons, `assert`, and calls of `range`, `min`
and `max` become calls of _flow, which decides at build time: of plain Python values they do what Python does, of
device values they become structured control flow. Everything else is Python's own, so tracebacks, closures and
defaults stay as they are. Which names a statement carries follows from what it rebinds and what is read later.

Bodies stay where they are written: a captured `if` runs both of its branches, one after the other, a captured
loop runs its body once. Rejected: inner functions for the bodies, in which `return`, `del` and cells change their
meaning; an interpreter of syntax trees, which would have to be Python.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
import types
from typing import Any

from tiki.kernels.cute.lib import _flow
from tiki.kernels.cute.lib._tape import KernelError

_FLOW = "__tk__"
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def capture(function: Any) -> Any:
    """The function, rewritten; the same closure cells, globals and defaults."""
    names = function.__code__.co_freevars
    if _FLOW in names:
        return function  # defined inside a captured function: rewritten with it
    tree, file = _source(function)
    _Function(file).rewrite(tree, set(names))
    _strip(tree)
    factory = ast.FunctionDef(
        name="__factory__",
        args=ast.arguments(
            posonlyargs=[],
            args=[ast.arg(arg=name) for name in (*names, _FLOW)],
            kwonlyargs=[],
            kw_defaults=[],
            defaults=[],
        ),
        body=[tree, ast.Return(value=ast.Name(id=tree.name, ctx=ast.Load()))],
        decorator_list=[],
    )
    module = ast.fix_missing_locations(ast.Module(body=[_at(factory, tree)], type_ignores=[]))
    code = _inner(_inner(compile(module, file, "exec"), "__factory__"), tree.name)
    cells = dict(zip(names, function.__closure__ or ()))
    cells[_FLOW] = types.CellType(_flow)
    closure = tuple(cells[name] for name in code.co_freevars)
    made = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    return made


def _source(function: Any) -> tuple[ast.FunctionDef, str]:
    file = inspect.getsourcefile(function) or function.__code__.co_filename
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise KernelError(
            f"{file}:{function.__code__.co_firstlineno}: the source of {function.__name__} cannot be read: {error}"
        ) from error
    module = ast.parse(textwrap.dedent("".join(lines)), file)
    ast.increment_lineno(module, first - 1)
    found = module.body[0]
    if not isinstance(found, ast.FunctionDef):
        raise KernelError(
            f"{file}:{first}: {function.__name__} is no function made by def, which is what can be captured"
        )
    return found, file


def _strip(tree: ast.FunctionDef) -> None:
    """What was evaluated when the function was defined is taken from the function itself."""
    tree.decorator_list = []
    tree.returns = None
    tree.args.defaults = []
    tree.args.kw_defaults = [None] * len(tree.args.kwonlyargs)
    every = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs, tree.args.vararg, tree.args.kwarg]
    for arg in every:
        if arg is not None:
            arg.annotation = None


def _inner(code: types.CodeType, name: str) -> types.CodeType:
    return next(one for one in code.co_consts if isinstance(one, types.CodeType) and one.co_name == name)


# ---- names ----


def _nodes(tree: Any) -> Any:
    """All nodes of one scope: not those inside functions, lambdas and classes (the nodes themselves are given)."""
    todo = list(tree) if isinstance(tree, list) else [tree]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, _SCOPES):
            todo.extend(node.decorator_list if not isinstance(node, ast.Lambda) else [])
            if not isinstance(node, ast.ClassDef):
                todo.extend(node.args.defaults)
                todo.extend(default for default in node.args.kw_defaults if default is not None)
        else:
            todo.extend(ast.iter_child_nodes(node))


def _base(node: ast.AST) -> str | None:
    """The name behind `name[...]`, which an assignment to it changes."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _bound(tree: Any) -> set[str]:
    """Names that a piece of a function binds; a comprehension keeps its own to itself."""
    nodes = list(_nodes(tree))
    inside = {
        id(name)
        for node in nodes
        if isinstance(node, _COMPREHENSIONS)
        for part in node.generators
        for name in ast.walk(part.target)
    }
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)) and id(node) not in inside:
            names.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((alias.asname or alias.name).split(".")[0] for alias in node.names)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            names.add(node.name)
    return names


def _stores(tree: Any) -> set[str]:
    """Names that a piece of a function binds, or whose objects it may change: by assignment to elements, by methods
    (`xs.append(x)`), or in a function inside that rebinds them."""
    names = _bound(tree)
    for node in _nodes(tree):
        base: str | None = None
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            base = _base(node)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            base = _base(node.func.value)
        if base:
            names.add(base)
    return names


def _rebound_inside(tree: ast.FunctionDef) -> set[str]:
    """Names that functions inside a function rebind: any call may."""
    found = [node for part in tree.body for node in ast.walk(part) if isinstance(node, ast.Nonlocal)]
    return {name for node in found for name in node.names}


def _loads(tree: Any) -> set[str]:
    """Names that a piece reads, in functions and lambdas inside it too."""
    names: set[str] = set()
    for part in tree if isinstance(tree, list) else [tree]:
        for node in ast.walk(part):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                names.add(node.id)
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
    return names


def _parameters(args: ast.arguments) -> set[str]:
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    return {arg.arg for arg in every if arg is not None}


def _captured(tree: ast.FunctionDef) -> set[str]:
    """Names that a function or lambda inside reads: it may run at any time, so they are always live."""
    names: set[str] = set()
    for node in _nodes(tree.body):
        if isinstance(node, _SCOPES):
            inner = _loads(node.body if isinstance(node.body, list) else [node.body])
            names |= inner - (_parameters(node.args) if not isinstance(node, ast.ClassDef) else set())
    return names


class _Liveness:
    """Which names are read later, at each `if`, `for` and `while` (attributes tk_out behind it, tk_head at the
    start of a loop's body)."""

    def __init__(self, always: set[str]) -> None:
        self.always = always
        self.loops: list[tuple[set[str], set[str]]] = []  # live at break and at continue

    def block(self, statements: list[ast.stmt], out: set[str]) -> set[str]:
        for statement in reversed(statements):
            out = self.statement(statement, out)
        return out

    def statement(self, node: Any, out: set[str]) -> set[str]:
        method = getattr(self, "of_" + type(node).__name__, None)
        return method(node, out) if method else self.simple(node, out)

    def simple(self, node: Any, out: set[str]) -> set[str]:
        killed: set[str] = set()
        targets = (
            node.targets
            if isinstance(node, (ast.Assign, ast.Delete))
            else [node.target]
            if isinstance(node, ast.AnnAssign) and node.value
            else []
        )
        for target in targets:
            killed |= {
                name.id
                for name in ast.walk(target)
                if isinstance(name, ast.Name) and not isinstance(name.ctx, ast.Load)
            }
        return (out - killed) | _loads(node)

    def of_If(self, node: Any, out: set[str]) -> set[str]:
        node.tk_out = out | self.always
        return self.block(node.body, out) | self.block(node.orelse, out) | _loads(node.test)

    def loop(self, node: Any, out: set[str], first: set[str], killed: set[str]) -> set[str]:
        behind = self.block(node.orelse, out)
        head = behind | first
        while True:
            self.loops.append((out, head))
            body = (self.block(node.body, head) - killed) | behind | first
            self.loops.pop()
            if body <= head:
                break
            head = head | body
        node.tk_out = out | self.always
        node.tk_head = head | self.always
        return head

    def of_While(self, node: Any, out: set[str]) -> set[str]:
        return self.loop(node, out, _loads(node.test), set())

    def of_For(self, node: Any, out: set[str]) -> set[str]:
        targets = {
            name.id for name in ast.walk(node.target) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
        }
        return self.loop(node, out, set(), targets) | _loads(node.iter) | (_loads(node.target) - targets)

    def of_Return(self, node: Any, out: set[str]) -> set[str]:
        return _loads(node)

    def of_Break(self, node: Any, out: set[str]) -> set[str]:
        return self.loops[-1][0] if self.loops else out

    def of_Continue(self, node: Any, out: set[str]) -> set[str]:
        return self.loops[-1][1] if self.loops else out

    def of_With(self, node: Any, out: set[str]) -> set[str]:
        return self.block(node.body, out) | _loads([item.context_expr for item in node.items])

    def of_Try(self, node: Any, out: set[str]) -> set[str]:
        every = out | _loads(node)
        self.block(node.finalbody, out)
        self.block(node.orelse, every)
        for handler in node.handlers:
            self.block(handler.body, every)
        self.block(node.body, every)
        return every

    of_TryStar = of_Try

    def of_Match(self, node: Any, out: set[str]) -> set[str]:
        for case in node.cases:
            self.block(case.body, out)
        return out | _loads(node)

    def of_FunctionDef(self, node: Any, out: set[str]) -> set[str]:
        return (out - {node.name}) | _loads(node)


# ---- rewriting ----


def _at(made: Any, node: Any) -> Any:
    """Puts a new node at the first line of another: the line of a call over several lines would be its last."""
    made.lineno = made.end_lineno = node.lineno
    made.col_offset = made.end_col_offset = node.col_offset
    return made


def _call(name: str, *args: ast.expr) -> ast.Call:
    function = ast.Attribute(value=ast.Name(id=_FLOW, ctx=ast.Load()), attr=name, ctx=ast.Load())
    return ast.Call(func=function, args=list(args), keywords=[])


def _method(object_name: str, method: str, *args: ast.expr) -> ast.Call:
    function = ast.Attribute(value=ast.Name(id=object_name, ctx=ast.Load()), attr=method, ctx=ast.Load())
    return ast.Call(func=function, args=list(args), keywords=[])


def _tuple(names: list[str], store: bool = False) -> ast.expr:
    ctx: ast.expr_context = ast.Store() if store else ast.Load()
    return ast.Tuple(elts=[ast.Name(id=name, ctx=ctx) for name in names], ctx=ctx)


def _words(names: list[str]) -> ast.expr:
    return ast.Tuple(elts=[ast.Constant(value=name) for name in names], ctx=ast.Load())


def _later(value: ast.expr) -> ast.Lambda:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=nothing, body=value)


def _condition(node: ast.expr) -> ast.expr:
    """Of an expression only the truth counts here: `and` and `or` in it need not give one of their operands."""
    if isinstance(node, ast.BoolOp):
        node.tk_condition = True  # type: ignore[attr-defined]
        for value in node.values:
            _condition(value)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        _condition(node.operand)
    return node


_SYMBOLS = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


class _Function(ast.NodeTransformer):
    """Rewrites one function; functions inside it get a transformer of their own."""

    def __init__(self, file: str, outer: _Function | None = None) -> None:
        self.file = file
        self.count: int = 0 if outer is None else outer.count + 100
        self.checked: set[str] = set() if outer is None else set(outer.checked)
        self.locals: set[str] = set()
        self.outside: set[str] = set()  # global and nonlocal names
        self.rebound: set[str] = set()  # names that functions inside rebind
        self.scopes: list[tuple[str, bool]] = []  # enclosing statements: the name of their object, whether a loop

    def refuse(self, node: Any, message: str) -> KernelError:
        return KernelError(f"{self.file}:{node.lineno}: {message}")

    def rewrite(self, tree: ast.FunctionDef, enclosing: set[str]) -> None:
        declared = [node for node in _nodes(tree.body) if isinstance(node, (ast.Global, ast.Nonlocal))]
        self.outside = {name for node in declared for name in node.names}
        parameters = _parameters(tree.args)
        self.locals = (_bound(tree.body) | parameters) - self.outside
        self.rebound = _rebound_inside(tree) & self.locals
        always = _captured(tree) | self.outside
        _Liveness(always).block(tree.body, set(always))
        risky = self.risky(tree) & self.locals
        self.checked |= risky
        unset = sorted(risky - parameters)
        tree.body = self.statements(tree.body)
        if unset:
            first = 1 if ast.get_docstring(tree, clean=False) is not None else 0
            targets: list[ast.expr] = [ast.Name(id=name, ctx=ast.Store()) for name in unset]
            unset_value = ast.Attribute(value=ast.Name(id=_FLOW, ctx=ast.Load()), attr="UNSET", ctx=ast.Load())
            tree.body.insert(first, _at(ast.Assign(targets=targets, value=unset_value), tree.body[0]))

    def risky(self, tree: ast.FunctionDef) -> set[str]:
        """Names that control flow binds, so that they may be missing afterwards."""
        names = set(self.rebound)
        for node in _nodes(tree.body):
            if isinstance(node, (ast.If, ast.While, ast.For)):
                names |= _stores([*node.body, *node.orelse])
                if isinstance(node, ast.For):
                    names |= _stores(node.target)
        return names

    def statements(self, body: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in body:
            made = self.visit(statement)
            result.extend(made if isinstance(made, list) else [made])
        return result

    def fresh(self) -> str:
        self.count += 1
        return f"__tk{self.count}__"

    def place(self, made: list[ast.stmt], node: ast.AST) -> list[ast.stmt]:
        for statement in made:
            if not hasattr(statement, "lineno"):
                _at(statement, node)
        return made

    def assign(self, names: list[str], value: ast.expr) -> ast.stmt:
        if not names:
            return ast.Expr(value=value)
        return ast.Assign(targets=[_tuple(names, store=True)], value=value)

    # ---- statements ----

    def visit_If(self, node: Any) -> list[ast.stmt]:
        name = self.fresh()
        names = sorted(_stores([*node.body, *node.orelse]) & self.locals | self.rebound)
        live = [one for one in names if one in node.tk_out]
        begin = ast.Assign(
            targets=[ast.Name(id=name, ctx=ast.Store())],
            value=_call("If", self.visit(_condition(node.test)), _words(names), _words(live), self.outer_stores(node)),
        )
        self.scopes.append((name, False))
        body = self.statements(node.body)
        orelse = self.statements(node.orelse)
        self.scopes.pop()
        made: list[ast.stmt] = [
            begin,
            ast.If(
                test=_method(name, "then", _tuple(names)),
                body=[*body, _at(self.assign(names, _method(name, "then_done", _tuple(names))), node)],
                orelse=[],
            ),
            ast.If(test=_method(name, "other"), body=orelse or [ast.Pass()], orelse=[]),
            self.assign(names, _method(name, "done", _tuple(names))),
        ]
        return self.place(made, node)

    def changed(self, node: Any, names: list[str]) -> ast.expr:
        """Of names, those whose elements are assigned but which are not bound anew: of these, lists and dictionaries
        are carried, and storage is not."""
        return _words([name for name in names if name not in _bound(node.body) | self.rebound])

    def outer_stores(self, node: Any) -> ast.expr:
        parts = [*node.body, *node.orelse]
        names = sorted(
            {one.id for one in _nodes(parts) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
            & self.outside
        )
        return _words(names)

    def visit_For(self, node: Any) -> list[ast.stmt]:
        name = self.fresh()
        iterable = self.visit(node.iter)
        if self.scopes and isinstance(node.iter, (ast.Name, ast.Attribute, ast.Subscript)):
            iterable = _at(_call("once", self.enclosing(self.scopes), iterable), node.iter)
        stored = _stores(node.body) & self.locals | self.rebound
        targets = _stores(node.target)
        names = sorted((stored | targets & self.locals) & node.tk_head)
        begin = ast.Assign(
            targets=[ast.Name(id=name, ctx=ast.Store())],
            value=_call(
                "For",
                iterable,
                _words(names),
                _words(sorted(targets)),
                self.changed(node, names),
                self.outer_stores(node),
            ),
        )
        self.scopes.append((name, True))
        body = self.statements(node.body)
        orelse = self.statements(node.orelse)
        self.scopes.pop()
        inside = [one for one in names if one not in targets]
        enter: list[ast.stmt] = [_at(self.assign(inside, _method(name, "enter", _tuple(inside))), node)]
        leave: list[ast.stmt] = [_at(self.assign(names, _method(name, "leave", _tuple(names))), node)]
        if orelse:
            orelse.insert(0, _at(ast.Expr(value=_method(name, "no_else")), node.orelse[0]))
        loop = ast.For(
            target=self.visit(node.target),
            iter=_method(name, "items", _tuple(names)),
            body=[*enter, *body, *leave],
            orelse=orelse,
        )
        return self.place([begin, loop], node)

    def visit_While(self, node: Any) -> list[ast.stmt]:
        name = self.fresh()
        names = sorted((_stores(node.body) & self.locals | self.rebound) & node.tk_head)
        begin = ast.Assign(
            targets=[ast.Name(id=name, ctx=ast.Store())],
            value=_call("While", _words(names), self.changed(node, names), self.outer_stores(node)),
        )
        test = _method(name, "test", self.visit(_condition(node.test)), _tuple(names))
        self.scopes.append((name, True))
        body = self.statements(node.body)
        orelse = self.statements(node.orelse)
        self.scopes.pop()
        enter = _at(self.assign(names, _method(name, "enter", _tuple(names))), node)
        if orelse:
            orelse.insert(0, _at(ast.Expr(value=_method(name, "no_else")), node.orelse[0]))
        loop = ast.While(test=test, body=[enter, *body], orelse=orelse)
        return self.place([begin, loop, self.assign(names, _method(name, "done", _tuple(names)))], node)

    def leaving(self, word: str, node: ast.stmt, scopes: list[tuple[str, bool]]) -> Any:
        if not scopes:
            return node
        left = _call("leaving", ast.Constant(value=word), self.enclosing(scopes))
        return self.place([ast.Expr(value=left), node], node)

    def enclosing(self, scopes: list[tuple[str, bool]]) -> ast.expr:
        """The objects of statements."""
        return ast.Tuple(elts=[ast.Name(id=name, ctx=ast.Load()) for name, _ in scopes], ctx=ast.Load())

    def visit_Return(self, node: ast.Return) -> Any:
        if node.value is not None:
            node.value = self.visit(node.value)
        return self.leaving("return", node, self.scopes)

    def inner_scopes(self) -> list[tuple[str, bool]]:
        """The statements from here out to the loop that break and continue are about."""
        for i in range(len(self.scopes) - 1, -1, -1):
            if self.scopes[i][1]:
                return self.scopes[i:]
        return []

    def visit_Break(self, node: ast.Break) -> Any:
        return self.leaving("break", node, self.inner_scopes())

    def visit_Continue(self, node: ast.Continue) -> Any:
        return self.leaving("continue", node, self.inner_scopes())

    def visit_Assign(self, node: ast.Assign) -> Any:
        node.value = self.visit(node.value)
        node.targets = [self.visit(target) for target in node.targets]
        if self.scopes and any(isinstance(target, ast.Attribute) for target in node.targets):
            return self.leaving("assignment to an attribute", node, self.scopes)
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            named = _call("named", ast.Constant(value=node.targets[0].id), node.value)
            node.value = _at(named, node.value)
        elif (
            len(node.targets) == 1
            and isinstance(node.targets[0], ast.Tuple)
            and all(isinstance(one, ast.Name) for one in node.targets[0].elts)
        ):
            words = _words([one.id for one in node.targets[0].elts if isinstance(one, ast.Name)])
            node.value = _at(_call("named_all", words, node.value), node.value)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        node.value = self.visit(node.value)
        if not isinstance(node.target, ast.Name):
            node.target = self.visit(node.target)
            attribute = isinstance(node.target, ast.Attribute)
            return self.leaving("assignment to an attribute", node, self.scopes) if attribute else node
        name = node.target.id
        read = ast.Name(id=name, ctx=ast.Load())
        made: list[ast.stmt] = [
            node,
            ast.Assign(
                targets=[ast.Name(id=name, ctx=ast.Store())], value=_call("named", ast.Constant(value=name), read)
            ),
        ]
        if name in self.checked:
            made.insert(0, ast.Expr(value=_call("use", ast.Constant(value=name), read)))
        return self.place(made, node)

    def visit_Delete(self, node: ast.Delete) -> Any:
        made: list[ast.stmt] = []
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in self.checked:
                unset = ast.Attribute(value=ast.Name(id=_FLOW, ctx=ast.Load()), attr="UNSET", ctx=ast.Load())
                made.append(ast.Assign(targets=[ast.Name(id=target.id, ctx=ast.Store())], value=unset))
            else:
                made.append(ast.Delete(targets=[self.visit(target)]))
        return self.place(made, node)

    def visit_Assert(self, node: ast.Assert) -> Any:
        message = self.visit(node.msg) if node.msg is not None else ast.Constant(value="")
        return _at(ast.Expr(value=_call("assert_", self.visit(_condition(node.test)), _later(message))), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        node.decorator_list = [self.visit(one) for one in node.decorator_list]
        node.args.defaults = [self.visit(one) for one in node.args.defaults]
        node.args.kw_defaults = [None if one is None else self.visit(one) for one in node.args.kw_defaults]
        _Function(self.file, self).rewrite(node, self.locals)
        return node

    def visit_AsyncFunctionDef(self, node: Any) -> Any:
        raise self.refuse(node, "async functions cannot be captured")

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        return node

    # ---- expressions ----

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Load) and node.id in self.checked:
            return _at(_call("use", ast.Constant(value=node.id), ast.Name(id=node.id, ctx=ast.Load())), node)
        return node

    def lazily(self, node: ast.expr) -> ast.expr:
        """An operand that may not be evaluated: nothing in it may bind names or suspend."""
        for inner in _nodes(node):
            if isinstance(inner, ast.NamedExpr):
                raise self.refuse(
                    inner,
                    f"{inner.target.id} := is inside an `and`, `or`, `if else` or chained comparison, which cannot "
                    f"be captured: assign it before",
                )
        return _at(_later(self.visit(node)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        if not hasattr(node, "tk_condition"):
            name += "value"
        first, *rest = node.values
        result = self.visit(first)
        for value in rest:
            result = _at(_call(name, result, self.lazily(value)), node)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.visit(_condition(node.operand) if isinstance(node.op, ast.Not) else node.operand)
        if isinstance(node.op, ast.Not):
            return _at(_call("not_", operand), node)
        node.operand = operand
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return _at(
            _call("ternary", self.visit(_condition(node.test)), self.lazily(node.body), self.lazily(node.orelse)), node
        )

    def visit_Raise(self, node: ast.Raise) -> Any:
        self.generic_visit(node)
        return self.leaving("raise", node, self.scopes)

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            name = "is_" if isinstance(node.ops[0], ast.Is) else "is_not"
            return _at(_call(name, self.visit(node.left), self.visit(node.comparators[0])), node)
        if len(node.ops) == 1 or not all(type(op) in _SYMBOLS for op in node.ops):
            return self.generic_visit(node)
        pairs: list[ast.expr] = []
        first = self.visit(node.left)
        for i, (op, right) in enumerate(zip(node.ops, node.comparators)):
            value = self.lazily(right) if i else _at(_later(self.visit(right)), right)
            pairs.append(ast.Tuple(elts=[ast.Constant(value=_SYMBOLS[type(op)]), value], ctx=ast.Load()))
        return _at(_call("chain", first, *pairs), node)

    def visit_Call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        plain = name in ("range", "min", "max") and name not in self.locals
        self.generic_visit(node)
        if name == "next" and name not in self.locals and self.scopes:
            return _at(_call("next_", self.enclosing(self.scopes), node.func, *node.args), node)
        if plain:
            node.args.insert(0, node.func)
            node.func = _call(name + "_").func
        return node

    def visit_Yield(self, node: Any) -> Any:
        raise self.refuse(node, "generators cannot be captured")

    visit_YieldFrom = visit_Yield

    def visit_Await(self, node: Any) -> Any:
        raise self.refuse(node, "await cannot be captured")
