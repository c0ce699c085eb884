"""Templates of an admin's: Jinja2 in a sandbox, without what could run on or fill the memory.

The sandbox alone bounds neither CPU nor memory. So a template knows `{{ }}`, `{% if %}` and one
level of `{% for %}`; it calls nothing, and only filters that cannot multiply text are there.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import StrictUndefined, TemplateError, nodes
from jinja2.exceptions import SecurityError, TemplateSyntaxError, UndefinedError
from jinja2.meta import find_undeclared_variables
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from mail.message import Content, one_line

LONGEST_TEMPLATE = 100_000
LONGEST_OUTPUT = 1_000_000
# No `format`, `center`, `indent`, `replace`, `safe`: they multiply text, or end the escaping.
FILTERS = frozenset(
    (
        "abs", "capitalize", "count", "d", "default", "dictsort", "e", "escape", "first", "float",
        "int", "items", "join", "last", "length", "list", "lower", "max", "min", "reverse", "round",
        "sort", "string", "sum", "title", "trim", "truncate", "unique", "upper", "urlencode",
    )
)  # fmt: skip
ALLOWED = (
    nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Expr, nodes.Keyword,
    nodes.Operand, nodes.Pair,
)  # fmt: skip
REFUSED = (nodes.Call, nodes.Pow, nodes.Mul)


class InvalidTemplate(ValueError):
    """A template cannot be used, or not with these values; the text says where and why."""


@dataclass(frozen=True, slots=True)
class MailTemplate:
    """A stored template: its name, and its three parts as they were written."""

    name: str
    subject: str
    text: str
    html: str | None = None


class _Sandbox(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"*", "**", "%"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        # `'%999999999d' % 1` makes a gigabyte.
        if operator != "%" or isinstance(left, str):
            raise SecurityError(f"the operator {operator} is not allowed here")
        return super().call_binop(context, operator, left, right)


def _bounded_join(values: Iterable[Any], separator: str = "", attribute: str | None = None) -> str:
    parts = [value[attribute] if attribute is not None else value for value in values]
    texts = [str(part) for part in parts]
    if sum(map(len, texts)) + len(str(separator)) * len(texts) > LONGEST_OUTPUT:
        raise SecurityError("join makes a text that is too long")
    return str(separator).join(texts)


def _bounded_round(value: float, precision: int = 0) -> float:
    if not 0 <= precision <= 12:
        raise SecurityError("round takes 0 to 12 digits")
    return round(value, precision)


def _sandbox(*, escapes: bool) -> _Sandbox:
    made = _Sandbox(autoescape=escapes, undefined=StrictUndefined, keep_trailing_newline=True)
    made.globals.clear()
    made.filters = {name: made.filters[name] for name in FILTERS}
    # Escaping happens after joining: what `join` gives is plain text, never markup.
    bounded: dict[str, Callable[..., Any]] = {"join": _bounded_join, "round": _bounded_round}
    made.filters |= bounded
    return made


_PLAIN = _sandbox(escapes=False)
_HTML = _sandbox(escapes=True)


def render(template: MailTemplate, values: Mapping[str, Any]) -> Content:
    """Return what `template` says with `values`. Raises InvalidTemplate.

    The HTML part escapes every value; the subject is one line.
    """
    html = None
    if template.html is not None:
        html = _render(_HTML, template.html, values, f"{template.name} html")
    return Content(
        subject=one_line(_render(_PLAIN, template.subject, values, f"{template.name} subject")),
        text=_render(_PLAIN, template.text, values, f"{template.name} text"),
        html=html,
    )


def check(template: MailTemplate) -> set[str]:
    """Return the names that the template reads. Raises InvalidTemplate when it cannot be used."""
    names: set[str] = set()
    parts = {"subject": template.subject, "text": template.text, "html": template.html or ""}
    for part, source in parts.items():
        names |= find_undeclared_variables(_parse(_PLAIN, source, f"{template.name} {part}"))
    return names


def _parse(sandbox: _Sandbox, source: str, where: str) -> nodes.Template:
    if len(source) > LONGEST_TEMPLATE:
        raise InvalidTemplate(
            f"template {where} has {len(source)} characters; write at most {LONGEST_TEMPLATE}"
        )
    try:
        tree = sandbox.parse(source)
    except TemplateSyntaxError as error:
        raise InvalidTemplate(f"template {where}, line {error.lineno}: {error.message}") from None
    for node in tree.iter_child_nodes():
        _check(node, where, loops=0)
    return tree


def _check(node: nodes.Node, where: str, loops: int) -> None:
    if not isinstance(node, ALLOWED) or isinstance(node, REFUSED):
        name = type(node).__name__.lower()
        raise InvalidTemplate(
            f"template {where}, line {node.lineno}: {name} is not allowed; "
            "use {{ value }}, {% if %} and {% for %}"
        )
    if isinstance(node, nodes.Filter) and node.name not in FILTERS:
        raise InvalidTemplate(
            f"template {where}, line {node.lineno}: no filter {node.name!r}; "
            f"known: {', '.join(sorted(FILTERS))}"
        )
    if isinstance(node, nodes.For):
        loops += 1
        if loops > 1 or node.recursive:
            raise InvalidTemplate(
                f"template {where}, line {node.lineno}: a loop within a loop is not allowed"
            )
    for child in node.iter_child_nodes():
        _check(child, where, loops)


def _render(sandbox: _Sandbox, source: str, values: Mapping[str, Any], where: str) -> str:
    compiled = sandbox.from_string(_parse(sandbox, source, where))
    parts: list[str] = []
    length = 0
    try:
        for part in compiled.generate(dict(values)):
            length += len(part)
            if length > LONGEST_OUTPUT:
                raise InvalidTemplate(f"template {where} makes over {LONGEST_OUTPUT} characters")
            parts.append(part)
    except UndefinedError as error:
        known = ", ".join(sorted(values))
        raise InvalidTemplate(f"template {where}: {error.message}; known: {known}") from None
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise InvalidTemplate(f"template {where}: {error}") from None
    return "".join(parts)
