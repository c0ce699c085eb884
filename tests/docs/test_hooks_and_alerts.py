"""docs/how-to/hooks-and-alerts: it verifies what we sign, and its keys are those we send."""

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from models.notices import NoticeKind
from runtime.config import load_settings
from tasks.notices.webhook import SIGNATURE, signature
from tests.docs.pages import text_of

TEXT = text_of("how-to/hooks-and-alerts")
NOON = datetime(2027, 1, 4, 12, tzinfo=UTC)
URL = "https://example.com/hooks"
BODY = '{"kind":"run_ended","error":"…"}'.encode()


@pytest.fixture
def page() -> dict[str, Any]:
    (block,) = re.findall(r"```python\n(.*?)```", TEXT, re.S)
    names: dict[str, Any] = {"__name__": "verify"}
    exec(block, names)
    return names


def test_the_page_verifies_what_we_sign(page: dict[str, Any]) -> None:
    header = signature(["s3cret", "old"], "shop", URL, BODY, NOON)
    now = NOON.timestamp() + 5

    def is_genuine(**changes: Any) -> bool:
        given = {"secret": "s3cret", "app": "shop", "url": URL, "body": BODY, "now": now, **changes}
        return bool(page["is_genuine"](header=header, **given))

    assert is_genuine()
    assert is_genuine(secret="old")
    others = {"secret": "other", "app": "bakery", "url": f"{URL}/", "body": BODY + b"!"}
    assert not any(is_genuine(**{key: value}) for key, value in others.items())
    assert not is_genuine(now=now + 301)


def test_the_page_names_the_header_and_each_kind() -> None:
    assert f"`{SIGNATURE}: t=" in TEXT
    assert all(f"`{kind}`" in TEXT for kind in NoticeKind)


def test_its_settings_are_settings(tmp_path: Path) -> None:
    for number, block in enumerate(re.findall(r"```yaml\n(.*?)```", TEXT, re.S)):
        home = tmp_path / str(number)
        home.mkdir()
        (home / "config.yaml").write_text(block)

        assert load_settings(home, {}).alert.timezone in ("UTC", "Europe/Paris")
