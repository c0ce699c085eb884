"""What the texts of settings name: secrets, programs with their variables, brokers."""

from pathlib import Path

import pytest

from broker.app import transport_options
from runtime.references import LARGEST_SECRET, SecretMissing, resolved
from runtime.sections import SecretSettings
from runtime.sections.commands import is_command_among, why_no_command, with_variables
from runtime.urls import check_broker_url, host_and_port, split_sentinel
from tests.tables import table

ANY = SecretSettings(env=("*",), folder=Path("/"))


@pytest.mark.parametrize("allowed", ["*", "TOK*"])
def test_a_variable_is_read_when_it_is_used(allowed: str) -> None:
    secrets = SecretSettings(env=(allowed,))

    assert resolved("env:TOKEN", secrets, {"TOKEN": "s3cret"}) == "s3cret"
    assert resolved("https://example.com/a?b=c", secrets) == "https://example.com/a?b=c"


def test_a_file_is_read_without_its_last_line_break(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")

    assert resolved(f"file:{tmp_path / 'token'}", ANY) == "s3cret"


@pytest.mark.parametrize(
    ("reference", "secrets", "error"),
    [
        ("env:SCHED_DATABASE_URL", ANY, "SCHED_SECRETS_ENV"),
        ("env:TOKEN", SecretSettings(env=("REPORTS_*",)), "env:TOKEN"),
        ("env:OTHER", ANY, "env:OTHER is not set"),
        (f"file:{__file__}", SecretSettings(), "SCHED_SECRETS"),
    ],
    ids=["a_setting_of_ours", "not_allowed", "not_set", "no_file_by_default"],
)
def test_what_may_not_be_read_is_named(reference: str, secrets: SecretSettings, error: str) -> None:
    environ = {"TOKEN": "a", "SCHED_DATABASE_URL": "postgresql://a:b@c/d"}

    with pytest.raises(SecretMissing, match=error):
        resolved(reference, secrets, environ)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "secrets"
    folder.mkdir()
    outside.write_text("a")
    (folder / "link").symlink_to(outside)

    with pytest.raises(SecretMissing, match="SCHED_SECRETS_FOLDER"):
        resolved(f"file:{folder / 'link'}", SecretSettings(folder=folder))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"\xff\xfe", "not UTF-8", id="not_text"),
        pytest.param(b"a" * (LARGEST_SECRET + 1), "larger than", id="too_large"),
        pytest.param(None, "cannot be read", id="missing"),
    ],
)
def test_an_unusable_file_is_named_without_its_content(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)

    with pytest.raises(SecretMissing, match=message):
        resolved(f"file:{file}", ANY)


def test_a_bound_secret_goes_to_its_hosts_alone() -> None:
    bound = SecretSettings(env=("*",), hosts=("KEY@Crm.example.com", "KEY@b.example.com"))

    assert resolved("env:KEY", bound, {"KEY": "a"}, host="crm.example.com") == "a"
    assert resolved("env:FREE", bound, {"FREE": "a"}, host="evil.example") == "a"
    with pytest.raises(SecretMissing, match=r"crm\.example\.com, b\.example\.com only"):
        resolved("env:KEY", bound, {"KEY": "a"}, host="evil.example")


@pytest.mark.parametrize(
    ("text", "allowed"), table(__file__, "a_text_allows_a_program_with_its_variables")
)
def test_a_text_allows_a_program_with_its_variables(text: str, allowed: list[str]) -> None:
    assert is_command_among(text, allowed)


@pytest.mark.parametrize(
    ("text", "allowed"), table(__file__, "no_other_text_allows_a_program_or_a_variable")
)
def test_no_other_text_allows_a_program_or_a_variable(text: str, allowed: list[str]) -> None:
    assert not is_command_among(text, allowed)


def test_a_broken_text_is_refused() -> None:
    for text in ("backup.sh(DAY", "a(DAY,STAGE)", "STAGE)", "a(A)(B)", "(DAY)", "x(A_*)", " "):
        assert why_no_command(text) is not None, text
    for text in ("shell", "*", "/srv/jobs/*", "make(A B_C)", "/opt/a b/x"):
        assert why_no_command(text) is None, text


def test_without_variables_a_program_is_named_alone() -> None:
    assert (with_variables("a", []), with_variables("a", ["B", "C"])) == ("a", "a(B C)")


@pytest.mark.parametrize(
    ("url", "plain", "name"), table(__file__, "the_name_of_the_primary_is_split_off")
)
def test_the_name_of_the_primary_is_split_off(url: str, plain: str, name: str) -> None:
    check_broker_url(url)

    assert split_sentinel(url) == (plain, name)
    assert transport_options(url).get("master_name", "") == name


@pytest.mark.parametrize("url", ["sentinel://a:1/0?master_name=", "sentinel://a:1/x?master_name=m"])
def test_a_sentinel_without_a_name_or_with_a_named_database_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="master_name=NAME"):
        check_broker_url(url)


@pytest.mark.parametrize(
    ("host", "text"), [("mail.example.com", "mail.example.com:25"), ("::1", "[::1]:25")]
)
def test_an_ipv6_address_before_a_port_has_brackets(host: str, text: str) -> None:
    assert host_and_port(host, 25) == text
