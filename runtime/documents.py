"""YAML as people write it: without anchors, which can refer to themselves or multiply."""

from typing import Any

import yaml


class InvalidYaml(ValueError):
    """A text is no YAML, or none that is read here; the text says where."""


class _Loader(yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if getattr(event, "anchor", None) is not None:
            raise yaml.MarkedYAMLError(
                problem=f"the anchor or alias {event.anchor!r} is not allowed; write it out",
                problem_mark=event.start_mark,
            )
        return super().compose_node(parent, index)


def _as_written(loader: _Loader, node: yaml.ScalarNode) -> str:
    """Return an instant as the text that it is in JSON."""
    return str(loader.construct_scalar(node))


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _as_written)


def read_yaml(text: str) -> Any:
    """Return what a YAML text says; raises InvalidYaml."""
    try:
        return yaml.load(text, _Loader)  # noqa: S506 - it is a SafeLoader
    except RecursionError:
        raise InvalidYaml("nested too deeply") from None
    except (yaml.YAMLError, ValueError, TypeError, OverflowError) as error:
        raise InvalidYaml(_in_one_line(error)) from None


def _in_one_line(error: Exception) -> str:
    """Return what is wrong, and where, without an excerpt over several lines."""
    mark = getattr(error, "problem_mark", None)
    text = getattr(error, "problem", None) or str(error)
    where = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    return " ".join(text.split()) + where
