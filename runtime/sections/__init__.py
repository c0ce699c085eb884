"""Groups of settings: their base, and those of mail, notices and secrets."""

import re
from datetime import time, timedelta
from pathlib import Path
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)

from runtime.urls import check_sender, check_web_url

# Documents use the same form: models/values/references.py.
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:/.+")
_QUIET = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


def split(value: object) -> object:
    """Return the parts of a text with commas; other values unchanged."""
    return (
        [part.strip() for part in value.split(",") if part.strip()]
        if isinstance(value, str)
        else value
    )


Names = Annotated[tuple[str, ...], BeforeValidator(split)]


class Section(BaseModel):
    """A group of settings; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class MailSettings(Section):
    """Outgoing mail."""

    sender: str = Field("minutebook@example.com", description="address in From")
    reply_to: str | None = Field(None, description="address in Reply-To")
    rate: int | None = Field(None, ge=1, le=100_000, description="messages a minute at most")

    @field_validator("sender", "reply_to")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        if value is not None:
            check_sender(value)
        return value


class HookSettings(Section):
    """Delivery of hooks and alerts."""

    secret: SecretStr = Field(SecretStr(""), description="signs webhooks, or env:NAME, file:PATH")
    old_secret: SecretStr = Field(
        SecretStr(""), description="the previous secret, which signs too while it is set"
    )
    timeout_s: float = Field(
        10, gt=0, le=60, description="seconds a webhook, or message to a channel, may take in all"
    )
    allow_private: bool = Field(False, description="whether they may go to private addresses")


class AlertSettings(Section):
    """Alerts on failures of any action: their recipients and times."""

    mail: Names = Field((), description="addresses, by commas")
    notify: Names = Field((), description="names of channels (SCHED_NOTIFY_…), by commas")
    webhook: SecretStr = Field(
        SecretStr(""), description="URL of a webhook, or env:NAME, file:PATH"
    )
    after: int = Field(3, ge=1, le=1000, description="failures in a row that raise an alert")
    quiet_hours: str | None = Field(None, description="hours without alerts, such as 22:00-07:00")
    timezone: str = Field("UTC", description="zone of the quiet hours")
    overdue_minutes: int = Field(
        15, ge=1, le=10_080, description="minutes after which an unstarted run is overdue"
    )
    broken_after_s: int = Field(
        180, ge=1, le=86_400, description="seconds after which a fault of the installation is told"
    )
    ping_url: SecretStr = Field(SecretStr(""), description="URL that each tick requests")

    @field_validator("mail")
    @classmethod
    def _are_addresses(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            check_sender(one)
        return value

    @field_validator("webhook", "ping_url")
    @classmethod
    def _is_a_url(cls, value: SecretStr, info: ValidationInfo) -> SecretStr:
        text = value.get_secret_value()
        # Workers resolve a webhook's reference; the daemon calls ping_url itself.
        is_referred_to = info.field_name == "webhook" and _REFERENCE.fullmatch(text) is not None
        if text and not is_referred_to:
            check_web_url(text)
        return value

    @field_validator("quiet_hours")
    @classmethod
    def _is_a_span(cls, value: str | None) -> str | None:
        found = _QUIET.fullmatch(value or "")
        if value and (found is None or found.group(1, 2) == found.group(3, 4)):
            raise ValueError("write two different times of the day, such as 22:00-07:00")
        return value

    @field_validator("timezone")
    @classmethod
    def _is_a_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (KeyError, ValueError, OSError):
            raise ValueError("write an IANA name such as Europe/Paris") from None
        return value

    @property
    def overdue(self) -> timedelta:
        """How long a recorded operation may wait for its start."""
        return timedelta(minutes=self.overdue_minutes)

    @property
    def quiet(self) -> tuple[time, time] | None:
        """The span [start, end) of the day without alerts; None for no such span."""
        found = _QUIET.fullmatch(self.quiet_hours or "")
        if found is None:
            return None
        hours = [int(part) for part in found.groups()]
        return time(hours[0], hours[1]), time(hours[2], hours[3])


class SecretSettings(Section):
    """Which references to secrets (`env:NAME`, `file:PATH`) documents may use."""

    env: Names = Field(
        (), description="patterns of the variables that may be referred to; never SCHED_…"
    )
    folder: Path = Field(
        Path(), description="folder of files that may be referred to; none by default"
    )
    hosts: Names = Field(
        (), description="NAME@HOST: hosts that the secret NAME may be sent to; any by default"
    )

    @field_validator("hosts")
    @classmethod
    def _are_bound(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for one in value:
            if not all(one.partition("@")):
                raise ValueError("write NAME@HOST, such as CRM_TOKEN@crm.example.com")
        return tuple(one.partition("@")[0] + "@" + one.partition("@")[2].lower() for one in value)
