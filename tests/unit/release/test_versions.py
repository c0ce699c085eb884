"""What names our version, and whether it is the same one everywhere."""

from pathlib import Path

import pytest

from release.project import Project, parse, read_projects
from release.versions import (
    Written,
    check_changes,
    check_page,
    check_versions,
    compare,
    required,
    tags_in,
)

ROOT = Path(__file__).parents[3]
CLIENT = """\
[project]
name = "minutebook-client"
version = "0.9.0"
dependencies = []
urls = {Repository = "https://code.example/minutebook"}
"""


def server(*requirements: str) -> Project:
    """Return our server with other requirements."""
    return Project("minutebook", "0.9.0", "", requirements, "pyproject.toml")


def test_a_place_with_the_same_version_is_right() -> None:
    found = compare("0.9.0", Written("compose", frozenset({"0.9.0"})))

    assert str(found) == "ok compose names 0.9.0"


@pytest.mark.parametrize(
    ("versions", "named"),
    [({"0.8.0"}, "0.8.0"), ({"0.9.0", "0.8.0"}, "0.8.0"), (set(), "no version")],
    ids=["another", "one of two", "none"],
)
def test_a_place_with_another_version_is_named_with_it(versions: set[str], named: str) -> None:
    found = compare("0.9.0", Written("compose", frozenset(versions)))

    assert str(found) == f"problem compose names {named}: write 0.9.0, as pyproject.toml does"


@pytest.mark.parametrize(
    ("requirement", "versions"),
    [
        ("minutebook-client==0.9.0", {"0.9.0"}),
        ("minutebook-client == 0.8.0", {"0.8.0"}),
        ("minutebook-client>=0.9", set()),
        ("minutebook-other==0.9.0", set()),
    ],
)
def test_the_required_client_is_read(requirement: str, versions: set[str]) -> None:
    assert required(server("celery>=5", requirement), "minutebook-client").versions == versions


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("image: minutebook:0.9.0\nimage: minutebook-data:0.9.1", {"0.9.0", "0.9.1"}),
        ("- {name: minutebook, newTag: 0.9.0}", {"0.9.0"}),
        ("FROM minutebook-data:0.9.0.", {"0.9.0"}),
        ("./dist/minutebook_client-0.9.0-py3-none-any.whl[http]", {"0.9.0"}),
        ("image: postgres:17, urn:minutebook:problem, minutebook-*.whl", set()),
    ],
    ids=["images", "kustomize", "end of a sentence", "wheel", "others"],
)
def test_images_and_wheels_name_a_version(text: str, versions: set[str]) -> None:
    assert tags_in(text) == versions


@pytest.mark.parametrize(
    "heading",
    ["## 0.9.0 (2026-12-01)", "## [0.9.0] - 2026-12-01", "## 0.9.0\n\n## 0.8.0 — unreleased"],
)
def test_the_newest_heading_is_of_this_version(heading: str) -> None:
    assert check_changes("0.9.0", f"# Changes\n\nWords.\n\n{heading}\n").is_ok


@pytest.mark.parametrize(
    ("text", "fact"),
    [
        ("# Changes\n", "CHANGELOG.md begins with no version"),
        ("# Changes\n\n## Unreleased\n\n## 0.9.0", "CHANGELOG.md begins with Unreleased"),
        ("# Changes\n\n## 0.9.0 — unreleased", "CHANGELOG.md calls 0.9.0 unreleased"),
    ],
)
def test_another_newest_heading_is_a_problem(text: str, fact: str) -> None:
    found = check_changes("0.9.0", text)

    assert (found.fact, found.is_ok) == (fact, False)


def test_a_page_of_the_index_does_not_say_that_it_is_not_there() -> None:
    assert not check_page("README.md", "Minutebook is not on PyPI yet.").is_ok
    assert check_page("README.md", "Minutebook is on PyPI.").is_ok


def test_a_project_is_read_with_its_repository() -> None:
    read = parse(CLIENT, "release/client/pyproject.toml")

    assert read.repository == "https://code.example/minutebook"
    assert (read.name, read.version) == ("minutebook-client", "0.9.0")


def test_each_place_of_this_checkout_names_its_version() -> None:
    projects = read_projects(ROOT)

    found = list(check_versions(ROOT, projects))

    assert [str(one) for one in found if " names " in one.fact and not one.is_ok] == []
    facts = " ".join(one.fact for one in found)
    client = "release/client/pyproject.toml"
    for place in (client, "docker-compose.yml", "kustomization", "install.md"):
        assert place in facts
