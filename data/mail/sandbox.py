"""A Jinja2 sandbox that knows no call, and only filters that cannot multiply text.

Jinja2 bounds neither CPU nor memory: the child process in which templates render does.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from jinja2 import StrictUndefined, Template
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

LONGEST_OUTPUT = 1_000_000
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
    intercepted_binops = frozenset({"%"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        # `'%999999999d' % 1` would make a gigabyte.
        if isinstance(left, str):
            raise SecurityError(f"the operator {operator} is not allowed here")
        return super().call_binop(context, operator, left, right)


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
    made.filters |= bounded
    return made


PLAIN = _sandbox(escapes=False)
HTML = _sandbox(escapes=True)


def generated(compiled: Template, values: Mapping[str, Any]) -> str:
    """Return the rendered template. Raises TooLong, and the errors of Jinja2."""
    parts: list[str] = []
    length = 0
    for part in compiled.generate(values):
        length += len(part)
        if length > LONGEST_OUTPUT:
            raise TooLong(f"makes over {LONGEST_OUTPUT} characters; shorten it")
        parts.append(part)
    return "".join(parts)
