"""runtime/references.py: secrets are read at use, and only where the settings allow."""

from pathlib import Path

import pytest

from runtime.references import LARGEST_SECRET, SecretMissing, resolved
from runtime.sections import SecretSettings

ANY = SecretSettings(env=("*",), folder=Path("/"))


def test_a_variable_is_read_when_it_is_used() -> None:
    assert resolved("env:TOKEN", ANY, {"TOKEN": "s3cret"}) == "s3cret"


def test_a_file_is_read_without_its_last_line_break(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")

    assert resolved(f"file:{tmp_path / 'token'}", ANY) == "s3cret"


def test_any_other_text_is_unchanged() -> None:
    assert resolved("https://example.com/a?b=c", ANY, {}) == "https://example.com/a?b=c"


def test_minutebooks_own_settings_are_never_read() -> None:
    with pytest.raises(SecretMissing, match="SCHED_SECRETS_ENV"):
        resolved("env:SCHED_DATABASE_URL", ANY, {"SCHED_DATABASE_URL": "postgresql://a:b@c/d"})


def test_only_allowed_names_are_read() -> None:
    narrow = SecretSettings(env=("REPORTS_*",))

    assert resolved("env:REPORTS_KEY", narrow, {"REPORTS_KEY": "a"}) == "a"
    with pytest.raises(SecretMissing, match="env:OTHER"):
        resolved("env:OTHER", narrow, {"OTHER": "a"})


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(SecretMissing, match="env:TOKEN is not set"):
        resolved("env:TOKEN", ANY, {})


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


def test_by_default_nothing_is_read(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret")

    for reference in ("env:TOKEN", f"file:{tmp_path / 'token'}"):
        with pytest.raises(SecretMissing, match="SCHED_SECRETS"):
            resolved(reference, SecretSettings(), {"TOKEN": "s3cret"})


def test_a_bound_secret_goes_to_its_hosts_alone() -> None:
    bound = SecretSettings(env=("*",), hosts=("KEY@Crm.example.com", "KEY@b.example.com"))

    assert resolved("env:KEY", bound, {"KEY": "a"}, host="crm.example.com") == "a"
    assert resolved("env:FREE", bound, {"FREE": "a"}, host="evil.example") == "a"
    with pytest.raises(SecretMissing, match=r"crm\.example\.com, b\.example\.com only"):
        resolved("env:KEY", bound, {"KEY": "a"}, host="evil.example")
