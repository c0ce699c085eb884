"""YAML 1.2 without anchors, which can refer to themselves or multiply."""

import re
from typing import Any

import yaml


class InvalidYaml(ValueError):
    """A text is not YAML, or uses anchors; the message says where and what to write."""


# A part of PyYAML's message, and what to write instead.
_REMEDIES = {
    "'\\t' that cannot start": "indent with spaces, not with tabs",
    "that cannot start": "write a text that begins with this character in quotes",
    "mapping values are not": "write one `key: value` a line, and a text that holds ': ' in quotes",
    "unexpected end of stream": "close the quotes",
    "expected ',' or": "separate the entries by commas, and close every [ and {",
    "expected <block end>": "indent the entries of one list or object alike",
    "could not find expected ':'": "write `key: value`",
    "unhashable key": "write a text as the key",
}


# As deep as JSON may be. The time to scan brackets grows with the square of their depth.
DEEPEST = 32
# PyYAML takes some 25 µs for each, many times as long as JSON takes.
MOST_VALUES = 50_000
LONGEST_NUMBER = 1_000


# What stands without quotes and is no text, by the core schema of YAML 1.2, with the characters it
# begins with. PyYAML knows YAML 1.1, in which `on` is true, and 12:30 is the number 750.
_DIGITS = r"(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)"
_CORE_SCHEMA = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", [*"-+0123456789"]),
    "float": (
        rf"[-+]?{_DIGITS}(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        [*"-+.0123456789"],
    ),
}
_BASES = {"0o": 8, "0x": 16}


class _Loader(yaml.SafeLoader):
    # Those composed so far.
    _values = 0

    def fetch_flow_collection_start(self, token: Any) -> None:
        """Take a bracket or brace, unless too many are open."""
        if self.flow_level >= DEEPEST:
            raise yaml.MarkedYAMLError(
                problem=f"nested too deeply; write at most {DEEPEST} levels of [ ] and {{ }}",
                problem_mark=self.get_mark(),
            )
        super().fetch_flow_collection_start(token)

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        self._values += 1
        if self._values > MOST_VALUES:
            raise yaml.MarkedYAMLError(
                problem=f"holds more than {MOST_VALUES:,} values and keys; write JSON, or split it",
                problem_mark=event.start_mark,
            )
        if getattr(event, "anchor", None) is not None:
            raise yaml.MarkedYAMLError(
                problem=f"the anchor or alias {event.anchor!r} is not allowed; write it out",
                problem_mark=event.start_mark,
            )
        return super().compose_node(parent, index)


def _as_written(loader: _Loader, node: yaml.ScalarNode) -> str:
    """Return an instant as a text, as in JSON."""
    return str(loader.construct_scalar(node))


def _number(loader: _Loader, node: yaml.ScalarNode) -> int:
    """Return a whole number; Python refuses to write longer ones as text."""
    written = _as_written(loader, node)
    if len(written) > LONGEST_NUMBER:
        raise yaml.MarkedYAMLError(
            problem=f"this number is too long; write at most {LONGEST_NUMBER} digits",
            problem_mark=node.start_mark,
        )
    return int(written, _BASES.get(written[:2], 10))


_Loader.yaml_implicit_resolvers = {}
for _kind, (_written, _first) in _CORE_SCHEMA.items():
    _pattern = re.compile(rf"(?:{_written})\Z")
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", _pattern, _first)
_Loader.add_constructor("tag:yaml.org,2002:timestamp", _as_written)
_Loader.add_constructor("tag:yaml.org,2002:int", _number)


def read_yaml(text: str) -> Any:
    """Return the value of a YAML text; raises InvalidYaml."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - it is a SafeLoader
    except RecursionError:
        raise InvalidYaml("nested too deeply") from None
    except yaml.MarkedYAMLError as error:
        raise InvalidYaml(_explained(error)) from None
    except (yaml.YAMLError, ValueError, TypeError, OverflowError) as error:
        raise InvalidYaml(str(error).partition("\n")[0]) from None


def _explained(error: yaml.MarkedYAMLError) -> str:
    problem = str(error.problem)
    remedy = next((text for part, text in _REMEDIES.items() if part in problem), problem)
    mark = error.problem_mark or error.context_mark
    return f"line {mark.line + 1}, column {mark.column + 1}: {remedy}" if mark else remedy
