"""The account that runs this process."""

import getpass


def account_name() -> str:
    """Return the account's name; `unknown` for one without a name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
