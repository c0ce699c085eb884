"""The error of a failed try to deliver a notice, by mail or by webhook."""


class Undelivered(Exception):
    """A notice was not delivered; `permanent`: a retry cannot help."""

    def __init__(self, message: str, *, permanent: bool) -> None:
        self.permanent = permanent
        super().__init__(message)
