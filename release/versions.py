"""Whether all that names our version names the same one."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from release.findings import Finding
from release.project import Project

# An image, the tag that kustomize gives one, and a wheel that a page names.
TAGS = re.compile(
    r"\bminutebook(?:-data)?:(\d[\w.]*\w)"
    r"|name: minutebook(?:-data)?, newTag: ([\w.]+\w)"
    r"|\bminutebook(?:_client)?-(\d[\w.]*\w)-py3"
)
PLACES = (
    *("docker-compose.yml", "deploy/kubernetes/*.yaml"),
    *("docs/**/*.md", "*.md", "release/client/*.md"),
)
HEADING = re.compile(r"^## \[?([^\s\]]+)\]?(.*)$", re.M)
PROJECT_PAGES = ("README.md", "release/client/README.md")


@dataclass(frozen=True)
class Written:
    """The versions that a file names."""

    place: str
    versions: frozenset[str]


def check_versions(root: Path, projects: Sequence[Project]) -> Iterator[Finding]:
    """Yield a finding for each place that names our version."""
    server, client = projects
    yield compare(server.version, Written(client.place, frozenset({client.version})))
    yield compare(server.version, required(server, client.name))
    for place in _files(root, PLACES):
        text = (root / place).read_text(encoding="utf-8")
        named = Written(place, tags_in(text))
        if named.versions:
            yield compare(server.version, named)
    yield check_changes(server.version, (root / "CHANGELOG.md").read_text(encoding="utf-8"))
    for place in PROJECT_PAGES:
        yield check_page(place, (root / place).read_text(encoding="utf-8"))


def _files(root: Path, patterns: Sequence[str]) -> list[str]:
    found = {one.relative_to(root).as_posix() for each in patterns for one in root.glob(each)}
    return sorted(found)


def compare(version: str, written: Written) -> Finding:
    """Return whether a place names this version and no other."""
    if written.versions == {version}:
        return Finding(f"{written.place} names {version}")
    others = ", ".join(sorted(written.versions - {version})) or "no version"
    return Finding(f"{written.place} names {others}", f"write {version}, as pyproject.toml does")


def required(server: Project, client: str) -> Written:
    """Return the version of the client that the server requires."""
    lines = (one.replace(" ", "").partition("==") for one in server.requirements)
    versions = frozenset(version for name, _, version in lines if name == client and version)
    return Written(f"the requirement {client} of {server.place}", versions)


def tags_in(text: str) -> frozenset[str]:
    """Return the versions of our images and wheels that a text names."""
    return frozenset("".join(found.groups(default="")) for found in TAGS.finditer(text))


def check_changes(version: str, text: str) -> Finding:
    """Return whether the newest heading of CHANGELOG.md is of this version, with its date."""
    newest = HEADING.search(text)
    if newest is None or newest[1] != version:
        named = "no version" if newest is None else newest[1]
        return Finding(f"CHANGELOG.md begins with {named}", f"give {version} a heading")
    if "unreleased" in newest[2].casefold():
        return Finding(f"CHANGELOG.md calls {version} unreleased", "write the date of the release")
    return Finding(f"CHANGELOG.md begins with {version}")


def check_page(place: str, text: str) -> Finding:
    """Return whether a README may become the page of its project on the index."""
    if "PyPI yet" in text:
        fact = f"{place} says that it is not on PyPI yet, and becomes its page there"
        return Finding(fact, "remove the sentence before you build what you upload")
    return Finding(f"{place} may be its page on PyPI")
