"""The texts of the pages, from one file that can be translated."""

import re
import tomllib
from datetime import timedelta
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from models.values.durations import lasting
from runtime.plug_ins import named

# The author of what a person changes whom a proxy names, before the name.
SIGNED_ON = "sso "
# The author of what a token or a link with a name does.
_NAMED = re.compile(r"(?:token|link) \w+ \((.+)\)")
FILE = Path(__file__).with_name("texts.toml")


def say(key: str, **values: Any) -> str:
    """Return a text, `overview.title`, with its values; `count` chooses between one and other.

    Raises KeyError for a text that does not exist.
    """
    found: Any = texts()
    for part in key.split("."):
        found = found[part]
    if isinstance(found, dict):
        found = found["one" if values["count"] == 1 else "other"]
    return str(found).format(**values)


def step_name(name: str) -> str:
    """Return what people call a step; of a step of their own, its name in words."""
    return say(f"step.{name}") if name in texts()["step"] else name.replace("_", " ")


def person(author: str) -> str:
    """Return who made a change: the person whom its token or a proxy names."""
    return _NAMED.sub(r"\1", author).removeprefix(SIGNED_ON)


@cache
def texts() -> dict[str, Any]:
    """Return all texts, with those of plug-ins."""
    made = tomllib.loads(FILE.read_text("utf-8"))
    for package in named("pages_in"):
        own = tomllib.loads((files(package) / "texts.toml").read_text("utf-8"))
        made |= {section: made.get(section, {}) | said for section, said in own.items()}
    return made


class Running(Protocol):
    """What knows when it should end."""

    @property
    def eta_s(self) -> float | None: ...
    @property
    def is_longer_than_usual(self) -> bool: ...


def ending_of(left: Running) -> str:
    """Return `ends in 40 s`, `longer than usual`, or nothing."""
    if left.is_longer_than_usual:
        return say("overview.longer")
    return "" if left.eta_s is None else say("overview.eta", span=_seconds(left.eta_s))


def _seconds(seconds: float) -> str:
    # "0 s" would say that it is over.
    whole = timedelta(seconds=max(1, round(seconds)))
    return " ".join(lasting(whole).split()[:2])
