"""What a template may say, and which variables it reads: looked up in its syntax tree."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jinja2 import nodes

from models.problems import unknown_name
from small_apps.mail.sandbox import FILTERS

ALLOWED = (
    nodes.Output, nodes.TemplateData, nodes.If, nodes.For, nodes.Expr, nodes.Keyword,
    nodes.Operand, nodes.Pair,
)  # fmt: skip
REFUSED = (nodes.Call, nodes.Pow, nodes.Mul)
# What asks whether a name is there may ask for any.
ASKING_FILTERS = {"d", "default"}
ASKING_TESTS = {"defined", "undefined"}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a part of a template: the line, what stands there, what to write instead."""

    line: int
    value: str | None
    remedy: str


def refusals(tree: nodes.Template) -> Iterator[Fault]:
    """Yield each construct and filter that templates do not have, in order."""
    for node in tree.iter_child_nodes():
        yield from _refusals(node, loops=0)


def unknown_variables(tree: nodes.Template, known: Mapping[str, Any]) -> Iterator[Fault]:
    """Yield each variable that `known` does not hold, in order.

    Objects in `known` tell which attributes they have. `x|default('')` and `x is defined` may ask
    for any name.
    """
    for node in tree.iter_child_nodes():
        yield from _unknown(node, known, frozenset())


def _refusals(node: nodes.Node, loops: int) -> Iterator[Fault]:
    if not isinstance(node, ALLOWED) or isinstance(node, REFUSED):
        name = type(node).__name__.lower()
        remedy = f"{name} is not allowed; use {{{{ value }}}}, {{% if %}} and {{% for %}}"
        yield Fault(node.lineno, None, remedy)
        return
    if isinstance(node, nodes.Filter) and node.name not in FILTERS:
        known = ", ".join(sorted(FILTERS))
        yield Fault(node.lineno, None, f"no filter {node.name!r}; known: {known}")
    if isinstance(node, nodes.For):
        loops += 1
        if loops > 1 or node.recursive:
            yield Fault(node.lineno, None, "a loop within a loop is not allowed")
            return
    for child in node.iter_child_nodes():
        yield from _refusals(child, loops)


def _unknown(node: nodes.Node, known: Mapping[str, Any], local: frozenset[str]) -> Iterator[Fault]:
    chain = _chain(node)
    if chain is not None:
        if chain[0] not in local:
            yield from _unknown_chain(chain, node.lineno, known)
        return
    if isinstance(node, nodes.For):
        inner = local | {one.name for one in _targets(node.target)} | {"loop"}
        yield from _unknown_all([node.iter, *node.else_], known, local)
        yield from _unknown_all([*([node.test] if node.test else []), *node.body], known, inner)
        return
    yield from _unknown_all(_asked_for(node), known, local)


def _unknown_all(
    found: list[Any], known: Mapping[str, Any], local: frozenset[str]
) -> Iterator[Fault]:
    for node in found:
        yield from _unknown(node, known, local)


def _asked_for(node: nodes.Node) -> list[nodes.Node]:
    """Return the children whose variables have to be there."""
    is_asking = (isinstance(node, nodes.Filter) and node.name in ASKING_FILTERS) or (
        isinstance(node, nodes.Test) and node.name in ASKING_TESTS
    )
    return [
        child
        for child in node.iter_child_nodes()
        if not (is_asking and child is getattr(node, "node", None) and _chain(child))
    ]


def _targets(target: nodes.Node) -> list[nodes.Name]:
    return [target] if isinstance(target, nodes.Name) else list(target.find_all(nodes.Name))


def _chain(node: nodes.Node) -> list[str] | None:
    """Return `a.b.c` (also written `a["b"]["c"]`) as its names, None for anything else."""
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


def _unknown_chain(chain: list[str], line: int, known: Mapping[str, Any]) -> Iterator[Fault]:
    value: Any = known
    for depth, name in enumerate(chain):
        if not isinstance(value, Mapping):
            return
        if name not in value:
            before = chain[:depth]
            there = [".".join([*before, key]) for key in value]
            wrong = ".".join([*before, name])
            yield Fault(line, wrong, unknown_name("variable", wrong, there))
            return
        value = value[name]
