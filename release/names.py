"""Whether an index has our names: free, ours, or taken by others.

A name is ours if what the index has under it links to our repository. An index does not verify
links; it shows the owner of a project on its page.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

import httpx

from release.findings import Finding
from release.project import Project

INDEX = "https://pypi.org"
WITHIN_S = 20.0
MOST_BYTES = 5_000_000
# Neither redirects to another place, nor an answer that unpacks to more than it says.
AS_IT_IS = {"Accept": "application/json", "Accept-Encoding": "identity"}


@dataclass(frozen=True)
class Published:
    """What an index has under a name: its newest version, and where it links to."""

    version: str
    links: tuple[str, ...]


class CouldNotTell(Exception):
    """The index gave no answer that says whether it has a name."""


def check_names(
    index: str, projects: Sequence[Project], within_s: float = WITHIN_S
) -> Iterator[Finding]:
    """Yield a finding for each of our names."""
    for project in projects:
        try:
            found = ask(index, project.name, within_s)
        except CouldNotTell as error:
            fact = f"could not tell whether {project.name} is free: {error}"
            yield Finding(fact, "check the network, and that the index answers; then try again")
        else:
            yield judge(project, found)


def judge(project: Project, found: Published | None) -> Finding:
    """Return what the answer of an index means for a project."""
    name, version = project.name, project.version
    if found is None:
        return Finding(f"the name {name} is free")
    taken = f"the name {name} is taken, with {found.version}"
    if not project.repository:
        has_it = f"if it is ours, write its repository into project.urls of {project.place}"
        return Finding(taken, f"choose another name; {has_it} and compare")
    if _plain(project.repository) not in map(_plain, found.links):
        return Finding(taken, f"choose another name: it does not link to {project.repository}")
    if found.version == version:
        return Finding(f"{name} {version} is uploaded already", "raise the version")
    return Finding(f"the name {name} is ours; {version} comes after {found.version}")


def _plain(url: str) -> str:
    return url.casefold().rstrip("/").removesuffix(".git")


def ask(
    index: str, name: str, within_s: float = WITHIN_S, most_bytes: int = MOST_BYTES
) -> Published | None:
    """Return what the index has under a name, None if nothing; raises CouldNotTell."""
    url = f"{index.rstrip('/')}/pypi/{name}/json"
    until = monotonic() + within_s
    try:
        with httpx.stream("GET", url, headers=AS_IT_IS, timeout=within_s) as response:
            if response.status_code == httpx.codes.NOT_FOUND:
                return None
            if response.status_code != httpx.codes.OK:
                raise CouldNotTell(f"{url} answers {response.status_code}")
            return parse(_bounded(response, until, most_bytes))
    except httpx.HTTPError as error:
        raise CouldNotTell(f"{url}: {error or type(error).__name__}") from None


def _bounded(response: httpx.Response, until: float, most_bytes: int) -> bytes:
    content = b""
    for part in response.iter_raw():
        content += part
        if len(content) > most_bytes:
            raise CouldNotTell(f"{response.url} answers more than {most_bytes:,} bytes")
        if monotonic() > until:
            raise CouldNotTell(f"{response.url} takes too long")
    return content


def parse(content: bytes) -> Published:
    """Return what a project's JSON says; raises CouldNotTell."""
    try:
        given: dict[str, Any] = json.loads(content)["info"]
        links = {**(given.get("project_urls") or {}), "": given.get("home_page") or ""}
        return Published(str(given["version"]), tuple(map(str, links.values())))
    except (ValueError, LookupError, TypeError, AttributeError):
        raise CouldNotTell("the answer is not the JSON of a project") from None
