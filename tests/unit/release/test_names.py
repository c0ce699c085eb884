"""What the answer of an index means for one of our names."""

import json

import pytest

from release.names import CouldNotTell, Published, judge, parse
from release.project import Project

REPOSITORY = "https://code.example/minutebook"
OURS = Project("minutebook", "0.9.1", REPOSITORY, (), "pyproject.toml")
WITHOUT_LINK = Project("minutebook", "0.9.1", "", (), "pyproject.toml")


def test_a_name_that_the_index_lacks_is_free() -> None:
    assert str(judge(OURS, None)) == "ok the name minutebook is free"


@pytest.mark.parametrize("link", [REPOSITORY, REPOSITORY + "/", REPOSITORY.upper() + ".git"])
def test_a_project_that_links_to_our_repository_is_ours(link: str) -> None:
    found = judge(OURS, Published("0.9.0", ("https://docs.example", link)))

    assert str(found) == "ok the name minutebook is ours; 0.9.1 comes after 0.9.0"


def test_a_version_that_is_uploaded_cannot_be_uploaded_again() -> None:
    found = judge(OURS, Published("0.9.1", (REPOSITORY,)))

    assert str(found) == "problem minutebook 0.9.1 is uploaded already: raise the version"


def test_a_project_that_links_elsewhere_has_taken_the_name() -> None:
    found = judge(OURS, Published("3.0", ("https://code.example/another",)))

    assert str(found).startswith("problem the name minutebook is taken, with 3.0: choose another")


def test_without_a_repository_of_ours_no_project_is_ours() -> None:
    found = judge(WITHOUT_LINK, Published("3.0", ("",)))

    assert not found.is_ok
    assert "project.urls of pyproject.toml" in found.remedy


def test_links_are_read_from_both_places_of_a_project_s_json() -> None:
    info = {"version": "1.0", "home_page": "https://a", "project_urls": {"Repository": "https://b"}}
    bare = {"version": "1.0", "home_page": None, "project_urls": None}

    assert set(parse(json.dumps({"info": info}).encode()).links) == {"https://a", "https://b"}
    assert parse(json.dumps({"info": bare}).encode()) == Published("1.0", ("",))


@pytest.mark.parametrize(
    "content",
    [b"<html>", b"[]", b"{}", b'{"info": null}', b'{"info": {"project_urls": 7}}', b"\xff"],
)
def test_an_answer_of_another_shape_says_nothing(content: bytes) -> None:
    with pytest.raises(CouldNotTell):
        parse(content)
