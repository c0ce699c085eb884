"""Settings of outgoing mail: sender, rate, unsubscribing."""

from pydantic import Field, field_validator

from runtime.sections import Section
from runtime.urls import check_sender, check_unsubscribe


class MailSettings(Section):
    """Outgoing mail."""

    sender: str = Field("minutebook@example.com", description="address in From")
    reply_to: str | None = Field(None, description="address in Reply-To")
    rate: int | None = Field(None, ge=1, le=100_000, description="messages a minute at most")
    unsubscribe: str | None = Field(
        None, description="List-Unsubscribe: https://… or mailto:… with {recipient} and {app}"
    )

    @field_validator("sender", "reply_to")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        if value is not None:
            check_sender(value)
        return value

    @field_validator("unsubscribe")
    @classmethod
    def _is_a_way_out(cls, value: str | None) -> str | None:
        if value is not None:
            check_unsubscribe(value)
        return value
