from pathlib import Path

import pytest

from runtime.references import LARGEST_SECRET, SecretMissing, resolved
from runtime.sections import SecretSettings

ANY = SecretSettings(env=("*",), folder=Path("/"))


@pytest.mark.parametrize("allowed", ["*", "TOK*"])
def test_a_variable_is_read_when_it_is_used(allowed: str) -> None:
    secrets = SecretSettings(env=(allowed,))

    assert resolved("env:TOKEN", secrets, {"TOKEN": "s3cret"}) == "s3cret"


def test_a_file_is_read_without_its_last_line_break(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")

    assert resolved(f"file:{tmp_path / 'token'}", ANY) == "s3cret"


def test_any_other_text_is_unchanged() -> None:
    assert resolved("https://example.com/a?b=c", ANY, {}) == "https://example.com/a?b=c"


@pytest.mark.parametrize(
    ("reference", "secrets", "error"),
    [
        pytest.param("env:SCHED_DATABASE_URL", ANY, "SCHED_SECRETS_ENV", id="a_setting_of_ours"),
        pytest.param(
            "env:TOKEN", SecretSettings(env=("REPORTS_*",)), "env:TOKEN", id="not_allowed"
        ),
        pytest.param("env:OTHER", ANY, "env:OTHER is not set", id="not_set"),
        pytest.param("env:TOKEN", SecretSettings(), "SCHED_SECRETS", id="none_by_default"),
        pytest.param(
            f"file:{__file__}", SecretSettings(), "SCHED_SECRETS", id="no_file_by_default"
        ),
    ],
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
