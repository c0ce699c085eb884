"""The environment variables of settings: their names, and their places among the values."""

from typing import Any

from runtime.plug_ins import named
from runtime.sections.named import object_of

PREFIX = "SCHED_"
# Variables of the command line, which are no settings.
NO_SETTINGS = ("SCHED_HOME", "SCHED_URL", "SCHED_TOKEN")


def named_settings() -> tuple[tuple[str, ...], ...]:
    """Return the paths of settings whose values have names: a variable may give one of them."""
    return (("notify",), *((one,) for one in named("named_settings")))


def put(values: dict[str, Any], path: tuple[str, ...], value: str) -> None:
    """Put the value of a variable over those of a file; raises ValueError, with the whole text."""
    section = values
    for depth, key in enumerate(path[:-1], 1):
        found = section.setdefault(key, {})
        if isinstance(found, str):
            # Values that another variable gives together.
            found = section[key] = _together(path[:depth], found)
        if not isinstance(found, dict):
            raise ValueError(f"config.yaml: {'.'.join(path[:depth])} must be a mapping")
        section = found
    section[path[-1]] = value


def _together(path: tuple[str, ...], text: str) -> object:
    try:
        return object_of(text)
    except ValueError as error:
        raise ValueError(f"{variable_of(path)}: {error}") from None


def named_path(variable: str) -> tuple[str, ...] | None:
    """Return the path of a value with a name of its own: SCHED_CONNECTIONS_SHOP, …"""
    for path in named_settings():
        prefix = variable_of(path) + "_"
        if variable.startswith(prefix) and variable != prefix:
            return (*path, variable.removeprefix(prefix).lower())
    return None


def variable_of(path: tuple[str, ...]) -> str:
    """Return the environment variable of a setting's path."""
    return PREFIX + "_".join(path).upper()
