"""Errors of sending one notice or mail."""


class Undelivered(Exception):
    """A notice or a mail was not delivered; `permanent`: a retry cannot help."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        self.permanent = permanent
        super().__init__(message)


class MailRefused(Undelivered):
    """The server did not accept one message.

    `uncertain`: the connection broke during the message, so the server may have accepted it.
    """

    def __init__(self, message: str, *, permanent: bool = False, uncertain: bool = False) -> None:
        super().__init__(message, permanent=permanent)
        self.uncertain = uncertain


class MailServerFailed(Undelivered):
    """The server cannot be used: it is unreachable, or refuses this client."""
