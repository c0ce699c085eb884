"""requirements/*.lock: what each set of Minutebook's dependencies needs, down to the last."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# They are installed from the checkout itself.
OWN = {"minutebook-client"}


def needed(lines: list[str], seen: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the name of each package that these requirements need, with their extras."""
    for one in map(Requirement, lines):
        for extra in ("", *one.extras):
            if (key := (canonicalize_name(one.name), extra)) in seen:
                continue
            seen.add(key)
            yield key[0]
            its = map(Requirement, requires(one.name) or ())
            given: Mapping[str, str] = {**default_environment(), "extra": extra}  # type: ignore[dict-item]
            asked = [str(it) for it in its if it.marker is None or it.marker.evaluate(given)]
            yield from needed(asked, seen)


@pytest.mark.parametrize(
    ("lock", "extras"),
    [("base", ("web",)), ("server", ("data", "notify", "web", "checkout")), ("dev", ("dev",))],
)
def test_a_lock_names_all_that_its_dependencies_need(lock: str, extras: tuple[str, ...]) -> None:
    text = (ROOT / "requirements" / f"{lock}.lock").read_text(encoding="utf-8")
    named = {canonicalize_name(one) for one in re.findall(r"^([\w.-]+)(?:\[.*\])?==", text, re.M)}
    lines = [*PROJECT["dependencies"]]
    for extra in extras:
        lines += PROJECT["optional-dependencies"][extra]

    assert set(needed(lines, set())) - OWN <= named
