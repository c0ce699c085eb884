"""The variables of mail templates."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from minutebook.steps import Recipient, SmallApp
from models.values import format_instant


def own_values(recipient: Recipient) -> dict[str, Any]:
    """Return the variables that differ between the recipients of a mail."""
    return {
        "recipient": {
            "id": recipient.id,
            "address": recipient.address or "",
            "name": recipient.name or recipient.id,
        },
    }


def shared_values(app: SmallApp, title: str, at: datetime, operation_id: str) -> dict[str, Any]:
    """Return the variables that all recipients of a mail share; `at` is shown in the app's zone."""
    local = at.astimezone(ZoneInfo(app.zone))
    return {
        "small_app": {
            "name": app.name,
            "title": title,
            "zone": app.zone,
            "settings": dict(app.settings),
        },
        "occurrence_at": format_instant(at),
        "date": local.strftime("%Y-%m-%d"),
        "time": local.strftime("%H:%M"),
        "operation_id": operation_id,
    }


# The name of a small app's own template for the "new data available" mail.
NEW_DATA = "new_data"


def news_of(
    domains: Mapping[str, int], design: Sequence[str], permissions: Sequence[str]
) -> dict[str, Any]:
    """Return the extra variables of NEW_DATA: published domains with rows, names of documents."""
    return {
        "domains": [{"name": name, "rows": rows} for name, rows in domains.items()],
        "design": list(design),
        "permissions": list(permissions),
    }


SAMPLE: Mapping[str, Any] = {
    **own_values(Recipient("ann", "ann@example.com", "Ann Example")),
    **shared_values(
        SmallApp(1, "shop", "Europe/Paris"),
        "The Shop",
        datetime(2026, 11, 23, 6, tzinfo=UTC),
        "1dd03b83-7b34-516e-8a7c-7ff8626a8a85",
    ),
}
SAMPLE_NEWS = news_of({"sales": 1200, "stores": 48}, ["start"], [])


def sample_of(template: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return sample values for the named template, with the small app's own settings."""
    news = SAMPLE_NEWS if template == NEW_DATA else {}
    return {**SAMPLE, **news, "small_app": {**SAMPLE["small_app"], "settings": settings}}
