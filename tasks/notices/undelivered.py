"""A try to deliver a notice that failed, whichever way it went."""


class Undelivered(Exception):
    """A notice was not delivered; `permanent`: a retry cannot help."""

    def __init__(self, message: str, *, permanent: bool) -> None:
        self.permanent = permanent
        super().__init__(message)
