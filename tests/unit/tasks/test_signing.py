from datetime import UTC, datetime

from pydantic import SecretStr

from runtime.sections import HookSettings
from tasks.notices.webhook import secrets_of, signature

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


def signed(settings: HookSettings) -> list[str]:
    told = signature(secrets_of(settings, "shop"), "shop", "https://b.example.com", b"{}", NOON)
    return told.split(",")[1:]


def test_while_a_secret_changes_receivers_of_the_old_and_of_the_new_one_find_theirs() -> None:
    old, new = SecretStr("old"), SecretStr("new")

    both = signed(HookSettings(secret=new, old_secret=old))

    assert both == signed(HookSettings(secret=new)) + signed(HookSettings(secret=old))
    assert len(set(both)) == 2
