"""Settings of the user's own Celery application."""

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr, field_validator

from runtime.references import resolved_setting
from runtime.sections import Names, Section, split
from runtime.urls import check_broker_url

# What stands in the place of a secret.
HIDDEN = "***"


class CelerySettings(Section):
    """The Celery application: its broker, and what actions may send there."""

    tasks: Names = Field((), description="names or patterns of tasks that actions may send")
    broker_url: SecretStr = Field(
        SecretStr(""), description="broker of that application; Minutebook's own by default"
    )
    global_keyprefix: str | None = Field(
        None, description="that application's global_keyprefix: the prefix of its keys in Redis"
    )
    sep: str | None = Field(
        None, description="that application's sep: what parts a queue and a priority in Redis"
    )
    priority_steps: Annotated[tuple[int, ...], BeforeValidator(split)] = Field(
        (), description="that application's priority_steps in Redis, by commas"
    )
    hide: str = Field(
        r"(?i)(?:passw(?:or)?d|secret|token|api[_-]?key|authorization)['\"]?\s*[=:]\s*"
        r"(?:['\"]?(?:bearer|basic)\s+)?\S+"
        r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)",
        description="a regular expression: what it finds in the traceback, the returned value and "
        "the arguments that a run shows, is shown as ***",
    )

    @field_validator("broker_url")
    @classmethod
    def _is_a_broker(cls, value: SecretStr) -> SecretStr:
        url = resolved_setting(value.get_secret_value())
        if url:
            check_broker_url(url)
        return SecretStr(url)

    @field_validator("hide")
    @classmethod
    def _is_an_expression(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"write a regular expression of Python: {error}") from None
        return value

    @property
    def secret(self) -> re.Pattern[str] | None:
        """What finds secrets in texts; None if nothing is hidden."""
        return re.compile(self.hide) if self.hide else None

    @property
    def broker_options(self) -> dict[str, object]:
        """Its options of `broker_transport_options` that name the lists of messages in Redis."""
        given = {
            "global_keyprefix": self.global_keyprefix,
            "sep": self.sep,
            "priority_steps": list(self.priority_steps),
        }
        return {name: value for name, value in given.items() if value}
