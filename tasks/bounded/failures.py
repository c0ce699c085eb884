"""Why a child process has no result."""

from models.errors import SchedulerError


class InputFailed(SchedulerError):
    """An input cannot be used; `permanent`: not before the input or its settings change."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        self.permanent = permanent
        super().__init__(message)


class Stopped(Exception):
    """The work was asked to stop; existing data are unchanged."""
