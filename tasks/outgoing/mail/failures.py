"""Errors of sending mail: one message, or the whole server."""


class MailRefused(Exception):
    """The server did not accept one message; `permanent`: a retry cannot succeed.

    `uncertain`: the connection broke during the message, so the server may have accepted it.
    """

    def __init__(self, message: str, *, permanent: bool, uncertain: bool = False) -> None:
        self.permanent = permanent
        self.uncertain = uncertain
        super().__init__(message)


class MailServerFailed(Exception):
    """The server cannot be used: it is unreachable, or refuses this client."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        self.permanent = permanent
        super().__init__(message)
