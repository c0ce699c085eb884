"""One of our two distributions, as its pyproject.toml describes it."""

import tomllib
from dataclasses import dataclass
from pathlib import Path

PLACES = ("pyproject.toml", "release/client/pyproject.toml")


@dataclass(frozen=True)
class Project:
    """`repository` is empty if `project.urls` has none; `place` is where all this is written."""

    name: str
    version: str
    repository: str
    requirements: tuple[str, ...]
    place: str


def read_projects(root: Path) -> tuple[Project, ...]:
    """Return the server, then the client."""
    return tuple(parse((root / place).read_text(encoding="utf-8"), place) for place in PLACES)


def parse(text: str, place: str) -> Project:
    """Return what a pyproject.toml says."""
    given = tomllib.loads(text)["project"]
    urls = {key.casefold(): url for key, url in given.get("urls", {}).items()}
    required = tuple(given["dependencies"])
    return Project(given["name"], given["version"], urls.get("repository", ""), required, place)
