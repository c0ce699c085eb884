"""A Jinja2 sandbox with bounded CPU and memory.

Jinja2's own sandbox bounds neither, so filters, concatenation and loops count the characters and
items that they process, and a rendering ends at a limit.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jinja2 import StrictUndefined, Template, nodes, pass_context
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context, markup_join, str_join
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

LONGEST_OUTPUT = 1_000_000
# Characters and items that one rendering may process; each turn of a loop counts as its template.
MOST_WORK = 20_000_000
# The blank makes the name unreachable for templates.
WORK = "work done"
# No `format`, `center`, `indent`, `replace`, `safe`: they multiply text, or turn escaping off.
# No `list` and `string`: together they multiply text. No sorting: it is slow even on short input.
FILTERS = frozenset(
    (
        "abs", "capitalize", "count", "d", "default", "e", "escape", "first", "float", "int",
        "items", "join", "last", "length", "lower", "max", "min", "reverse", "round", "sum",
        "title", "trim", "truncate", "upper", "urlencode",
    )
)  # fmt: skip


class TooLong(Exception):
    """A rendering exceeds the length limit of a mail."""


class Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "%", "+"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "+":
            _charge(context, _size(left) + _size(right))
            return left + right
        # `'%999999999d' % 1` would make a gigabyte.
        if operator != "%" or isinstance(left, str):
            raise SecurityError(f"the operator {operator} is not allowed here")
        return super().call_binop(context, operator, left, right)


class Counted(NodeTransformer):
    """Rewrites `~` and `{% for %}` to filters that count their work."""

    def __init__(self, length: int) -> None:
        self._length = length

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802 - Jinja's name
        self.generic_visit(node)
        parts = nodes.List(node.nodes, lineno=node.lineno)
        return nodes.Filter(parts, "_concat", [], [], None, None, lineno=node.lineno)

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802 - Jinja's name
        self.generic_visit(node)
        length = nodes.Const(self._length, lineno=node.lineno)
        node.iter = nodes.Filter(node.iter, "_each", [length], [], None, None, lineno=node.lineno)
        return node


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | list | tuple | dict) else 1


def _charge(context: Context, work: int) -> None:
    done = context.parent[WORK]
    done[0] += work
    if done[0] > MOST_WORK:
        raise SecurityError("too much work for a mail; shorten its loops and texts")


def _counted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a filter that counts its input and output; it never runs at compile time."""
    takes = getattr(getattr(function, "jinja_pass_arg", None), "name", None)

    @pass_context
    def counted(context: Context, value: Any, *arguments: Any, **named: Any) -> Any:
        _charge(context, _size(value))
        own = {"environment": context.environment, "eval_context": context.eval_ctx}
        before = (own[takes],) if takes else ()
        made = function(*before, value, *arguments, **named)
        _charge(context, _size(made))
        return made

    return counted


@pass_context
def _concat(context: Context, parts: list[Any]) -> str:
    _charge(context, sum(map(_size, parts)))
    return (markup_join if context.eval_ctx.autoescape else str_join)(parts)


@pass_context
def _each(context: Context, values: Any, length: int) -> Any:
    turns = values if isinstance(values, str | list | tuple | dict) else list(values)
    _charge(context, len(turns) * length)
    return turns


def _bounded_join(values: Iterable[Any], separator: str = "", attribute: str | None = None) -> str:
    parts = [value[attribute] if attribute is not None else value for value in values]
    texts = [str(part) for part in parts]
    if sum(map(len, texts)) + len(str(separator)) * len(texts) > LONGEST_OUTPUT:
        raise SecurityError("join makes a text that is too long; join fewer values")
    return str(separator).join(texts)


def _bounded_round(value: float, precision: int = 0) -> float:
    if not 0 <= precision <= 12:
        raise SecurityError("round accepts 0 to 12 digits")
    return round(value, precision)


def _sandbox(*, escapes: bool) -> Sandbox:
    made = Sandbox(autoescape=escapes, undefined=StrictUndefined, keep_trailing_newline=True)
    made.globals.clear()
    made.filters = {name: made.filters[name] for name in FILTERS}
    # Escaping follows joining: `join` returns plain text, never markup.
    bounded: dict[str, Callable[..., Any]] = {"join": _bounded_join, "round": _bounded_round}
    made.filters = {name: _counted(each) for name, each in (made.filters | bounded).items()}
    made.filters |= {"_concat": _concat, "_each": _each}
    return made


PLAIN = _sandbox(escapes=False)
HTML = _sandbox(escapes=True)


def generated(compiled: Template, values: Mapping[str, Any]) -> str:
    """Return the rendered template. Raises TooLong, and the errors of Jinja2."""
    parts: list[str] = []
    length = 0
    for part in compiled.generate({**values, WORK: [0]}):
        length += len(part)
        if length > LONGEST_OUTPUT:
            raise TooLong(f"makes over {LONGEST_OUTPUT} characters; shorten it")
        parts.append(part)
    return "".join(parts)
