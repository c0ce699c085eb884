"""Why a source gave no data."""

from models.errors import SchedulerError


class SourceFailed(SchedulerError):
    """A source cannot be read; `permanent`: not before somebody changes it or its settings."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        self.permanent = permanent
        super().__init__(message)


class Stopped(Exception):
    """The reading was asked to stop; what was there before is unchanged."""
