"""Settings of what one restricted small app (a tenant) may use of an installation."""

from pydantic import Field

from runtime.sections import Section


class LimitSettings(Section):
    """Ceilings of each restricted small app; 0 is none."""

    actions: int = Field(20_000, ge=0, description="actions of a restricted small app")
    users: int = Field(100_000, ge=0, description="users of a restricted small app")
    mails: int = Field(10_000, ge=0, description="mails of a restricted small app in any 24 hours")
