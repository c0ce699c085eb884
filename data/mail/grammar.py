"""Checks of a template's syntax tree: forbidden constructs and unknown variables."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import nodes

from data.mail.sandbox import FILTERS
from models.problems import unknown_name

ALLOWED = (
    nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Expr, nodes.Keyword,
    nodes.Operand, nodes.Pair,
)  # fmt: skip
REFUSED = (nodes.Call, nodes.Pow, nodes.Mul)
# These accept a variable that does not exist.
LENIENT_FILTERS = {"d", "default"}
LENIENT_TESTS = {"defined", "undefined"}


@dataclass(frozen=True, slots=True)
class TemplateProblem:
    """One problem of a part of a template: its line, the wrong value, what to write instead.

    The line is 0 where it is not known.
    """

    line: int
    value: str | None
    remedy: str


def forbidden(tree: nodes.Template) -> Iterator[TemplateProblem]:
    """Yield each forbidden construct and filter, in order."""
    for node in tree.iter_child_nodes():
        yield from _forbidden(node, loops=0)


def unknown_variables(tree: nodes.Template, known: Mapping[str, Any]) -> Iterator[TemplateProblem]:
    """Yield each variable, and each attribute of one, that `known` does not have, in order.

    `x|default('')` and `x is defined` may name any variable.
    """
    for node in tree.iter_child_nodes():
        yield from _unknown(node, known, frozenset())


def _forbidden(node: nodes.Node, loops: int) -> Iterator[TemplateProblem]:
    if not isinstance(node, ALLOWED) or isinstance(node, REFUSED):
        name = type(node).__name__.lower()
        remedy = f"{name} is not allowed; use {{{{ value }}}}, {{% if %}} and {{% for %}}"
        yield _problem(node, None, remedy)
        return
    if isinstance(node, nodes.Filter) and node.name not in FILTERS:
        known = ", ".join(sorted(FILTERS))
        yield _problem(node, None, f"no filter {node.name!r}; use one of: {known}")
    if isinstance(node, nodes.For):
        loops += 1
        if loops > 1 or node.recursive:
            yield _problem(node, None, "a loop within a loop is not allowed; use one")
            return
    for child in node.iter_child_nodes():
        yield from _forbidden(child, loops)


def _unknown(
    node: nodes.Node, known: Mapping[str, Any], local: frozenset[str]
) -> Iterator[TemplateProblem]:
    chain = _chain(node)
    if chain is not None:
        if chain[0] not in local:
            yield from _unknown_chain(chain, node, known)
        return
    if isinstance(node, nodes.For):
        inner = local | {one.name for one in _targets(node.target)} | {"loop"}
        yield from _unknown_all([node.iter, *node.else_], known, local)
        yield from _unknown_all([*([node.test] if node.test else []), *node.body], known, inner)
        return
    yield from _unknown_all(_required(node), known, local)


def _unknown_all(
    found: list[Any], known: Mapping[str, Any], local: frozenset[str]
) -> Iterator[TemplateProblem]:
    for node in found:
        yield from _unknown(node, known, local)


def _required(node: nodes.Node) -> list[nodes.Node]:
    """Return the children whose variables must exist."""
    is_lenient = (isinstance(node, nodes.Filter) and node.name in LENIENT_FILTERS) or (
        isinstance(node, nodes.Test) and node.name in LENIENT_TESTS
    )
    return [
        child
        for child in node.iter_child_nodes()
        if not (is_lenient and child is getattr(node, "node", None) and _chain(child))
    ]


def _targets(target: nodes.Node) -> list[nodes.Name]:
    return [target] if isinstance(target, nodes.Name) else list(target.find_all(nodes.Name))


def _chain(node: nodes.Node) -> list[str] | None:
    """Return the names in `a.b.c` or `a["b"]["c"]`; None for anything else."""
    attributes: list[str] = []
    while not isinstance(node, nodes.Name):
        if isinstance(node, nodes.Getattr):
            attributes.append(node.attr)
        elif isinstance(node, nodes.Getitem) and _is_text(node.arg):
            attributes.append(str(getattr(node.arg, "value", "")))
        else:
            return None
        node = node.node
    return [node.name, *reversed(attributes)]


def _is_text(node: nodes.Node) -> bool:
    return isinstance(node, nodes.Const) and isinstance(node.value, str)


def _unknown_chain(
    chain: list[str], node: nodes.Node, known: Mapping[str, Any]
) -> Iterator[TemplateProblem]:
    value: Any = known
    for depth, name in enumerate(chain):
        if not isinstance(value, Mapping):
            return
        if name not in value:
            before = chain[:depth]
            there = [".".join([*before, key]) for key in value]
            wrong = ".".join([*before, name])
            yield _problem(node, wrong, unknown_name("variable", wrong, there))
            return
        value = value[name]


def _problem(node: nodes.Node, value: str | None, remedy: str) -> TemplateProblem:
    # Nodes that Jinja makes itself have no line.
    return TemplateProblem(node.lineno or 0, value, remedy)
