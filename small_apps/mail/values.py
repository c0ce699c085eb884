"""The variables of mail templates."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from minutehand.steps import Recipient
from models.values import format_instant


@dataclass(frozen=True, slots=True)
class Occasion:
    """The values shared by all recipients of a mail; `at` is aware, and shown in `zone`."""

    app: str
    title: str
    zone: str
    at: datetime
    operation_id: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def own_values(recipient: Recipient, unsubscribe_url: str | None) -> dict[str, Any]:
    """Return the variables that differ between the recipients of a mail.

    A missing `unsubscribe_url` is an empty text.
    """
    return {
        "recipient": {
            "id": recipient.id,
            "address": recipient.address or "",
            "name": recipient.name or recipient.id,
        },
        "unsubscribe_url": unsubscribe_url or "",
    }


def shared_values(occasion: Occasion) -> dict[str, Any]:
    """Return the variables that all recipients of a mail share."""
    local = occasion.at.astimezone(ZoneInfo(occasion.zone))
    return {
        "small_app": {
            "name": occasion.app,
            "title": occasion.title,
            "zone": occasion.zone,
            "settings": occasion.settings,
        },
        "occurrence_at": format_instant(occasion.at),
        "date": local.strftime("%Y-%m-%d"),
        "time": local.strftime("%H:%M"),
        "operation_id": occasion.operation_id,
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
    **own_values(
        Recipient("ann", "ann@example.com", "Ann Example"),
        "https://example.com/unsubscribe?who=ann",
    ),
    **shared_values(
        Occasion(
            app="shop",
            title="The Shop",
            zone="Europe/Paris",
            at=datetime(2026, 11, 23, 6, tzinfo=UTC),
            operation_id="1dd03b83-7b34-516e-8a7c-7ff8626a8a85",
        )
    ),
}
SAMPLE_NEWS = news_of({"sales": 1200, "stores": 48}, ["start"], [])


def sample_of(template: str, settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return sample values for the named template, with the small app's own settings."""
    news = SAMPLE_NEWS if template == NEW_DATA else {}
    return {**SAMPLE, **news, "small_app": {**SAMPLE["small_app"], "settings": settings}}
