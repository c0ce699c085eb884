"""Metadata that an index accepts, or refuses."""

import pytest

from release.wheels import check_metadata

VALID = """\
Metadata-Version: 2.4
Name: minutebook
Version: 0.9.0
Summary: The cron daemon for Celery
Description-Content-Type: text/markdown

# Minutebook
"""


def test_valid_metadata_with_a_description_is_accepted() -> None:
    assert str(check_metadata("x.whl", VALID.encode())) == "ok the metadata of x.whl is valid"


@pytest.mark.parametrize(
    ("old", "new", "fact"),
    [
        ("Version: 0.9.0", "Version: nine", "the metadata of x.whl is invalid"),
        ("Name: minutebook\n", "", "the metadata of x.whl is invalid"),
        ("text/markdown", "text/plain", "x.whl has no description in Markdown"),
        ("# Minutebook", "", "x.whl has no description in Markdown"),
    ],
    ids=["version", "name", "kind of description", "description"],
)
def test_other_metadata_is_a_problem(old: str, new: str, fact: str) -> None:
    found = check_metadata("x.whl", VALID.replace(old, new).encode())

    assert (found.fact, found.is_ok) == (fact, False)
