"""`python -m release.check`: against an index on loopback, and with wheels in real environments."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from release.check import main
from release.names import CouldNotTell, Published, ask, check_names
from release.project import Project
from release.wheels import check_client, check_metadata, check_server, metadata_of
from tests.packages.environments import Environment, Wheels
from tests.servers import free_port
from tests.web_source import Page, WebSource, web_source

PATH = "/pypi/minutebook/json"
INFO = {"info": {"version": "0.8.0", "project_urls": {"Source": "https://code.example/m"}}}
OURS = Project("minutebook", "0.9.0", "https://code.example/m", (), "pyproject.toml")


@pytest.fixture
def index() -> Iterator[WebSource]:
    """An index with no project."""
    with web_source() as source:
        yield source


def test_an_unknown_name_is_not_found(index: WebSource) -> None:
    assert ask(index.url, "minutebook") is None
    assert [path for path, _ in index.requests] == [PATH]


def test_a_known_name_is_read(index: WebSource) -> None:
    index.pages[PATH] = Page(json.dumps(INFO).encode())

    assert ask(index.url + "/", "minutebook") == Published("0.8.0", ("https://code.example/m", ""))


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (Page(b"later", status=503), "answers 503"),
        (Page(status=302, headers={"Location": "/elsewhere"}), "answers 302"),
        (Page(b"{}"), "not the JSON of a project"),
        (Page(b'{"info": {}}', part=3), "peer closed connection"),
        (Page(b" " * 200), "more than 100 bytes"),
    ],
    ids=["refusal", "redirect", "other JSON", "cut off", "too long"],
)
def test_another_answer_says_nothing_about_a_name(
    index: WebSource, page: Page, reason: str
) -> None:
    index.pages[PATH] = page

    with pytest.raises(CouldNotTell, match=reason):
        ask(index.url, "minutebook", most_bytes=100)


def test_an_index_that_trickles_is_left(index: WebSource) -> None:
    index.pages[PATH] = Page(json.dumps(INFO).encode(), trickle_s=0.05)

    with pytest.raises(CouldNotTell, match="takes too long"):
        ask(index.url, "minutebook", within_s=0.2)


def test_without_an_index_a_check_could_not_tell_and_fails() -> None:
    (found,) = check_names(f"http://127.0.0.1:{free_port()}", [OURS])

    assert not found.is_ok
    assert found.fact.startswith("could not tell whether minutebook is free")


def test_the_built_files_have_valid_metadata(wheels: Wheels) -> None:
    for file in wheels.files:
        assert check_metadata(file.name, metadata_of(file)).is_ok


def test_the_client_s_wheel_is_installed_and_asked(wheels: Wheels, tmp_path: Path) -> None:
    found = check_client(wheels.client, tmp_path)

    assert found.is_ok, found
    assert Environment(tmp_path / "client").run(
        ["bin/python", "-c", "import minutebook"], tmp_path / "client"
    ).returncode == 0  # fmt: skip


def test_a_client_that_requires_something_does_not_work_alone(
    wheels: Wheels, tmp_path: Path
) -> None:
    found = check_client(wheels.server, tmp_path)

    assert not found.is_ok
    assert "install -q --no-index" in found.fact


@pytest.mark.matrix
def test_the_server_runs_with_what_an_index_has(wheels: Wheels, tmp_path: Path) -> None:
    found = check_server(wheels.client, wheels.server, tmp_path)

    assert found.is_ok, found


@pytest.mark.matrix
def test_a_release_is_checked_with_one_line_each(
    index: WebSource, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main(["--index", index.url])

    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["ok the name minutebook is free", "ok the name minutebook-client is free"]
    assert lines[-1].startswith("ok both wheels install into an empty environment")
    assert code == int(any(line.startswith("problem ") for line in lines))
    assert all(line.startswith(("ok ", "problem ")) for line in lines)
