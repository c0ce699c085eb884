"""Settings of what one small app (a tenant) may use of an installation."""

from pydantic import Field

from runtime.sections import Section


class LimitSettings(Section):
    """Limits of each small app; 0 is no limit."""

    actions: int = Field(20_000, ge=0, description="actions of a small app")
    disk_mb: int = Field(
        51_200, ge=0, description="MiB of a small app's snapshots and downloads, all together"
    )
    domains: int = Field(1_000, ge=0, description="domains of a small app")
    users: int = Field(100_000, ge=0, description="users of a small app")
    waiting: int = Field(100_000, ge=0, description="operations of a small app that wait to start")
    import_minutes: int = Field(
        2_880, ge=0, description="minutes a day, in UTC, of a small app's refreshes"
    )
    messages: int = Field(10_000, ge=0, description="mails of a small app a minute")
    reserve: int = Field(
        0,
        ge=0,
        description="processes of each queue that one small app leaves free for the others",
    )
