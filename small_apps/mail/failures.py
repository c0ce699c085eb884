"""How sending fails: one message alone, or the server altogether."""


class MailRefused(Exception):
    """One message was not taken; `permanent`: sending it again cannot help.

    `uncertain`: the connection broke within it, so that the server may have taken it.
    """

    def __init__(self, message: str, *, permanent: bool, uncertain: bool = False) -> None:
        self.permanent = permanent
        self.uncertain = uncertain
        super().__init__(message)


class MailServerFailed(Exception):
    """The server cannot be used at all: it is not there, or not willing to talk to us."""

    def __init__(self, message: str, *, permanent: bool = False) -> None:
        self.permanent = permanent
        super().__init__(message)
