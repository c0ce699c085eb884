"""Read which server a command should ask, and by which token."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from cli.remote.server import Server
from models.errors import Refused
from views.files import read_text

MISSING = "--url needs a token: set SCHED_TOKEN, or name a file with --token-file"


@dataclass(frozen=True, slots=True)
class Named:
    """What the global options name; None for an option that was left out."""

    home: Path | None = None
    url: str | None = None
    token: str | None = None
    token_file: Path | None = None


def server_of(
    named: Named, app: str | None, environ: Mapping[str, str] = os.environ
) -> Server | None:
    """Return the server of the options or of SCHED_URL, None for this machine; raises Refused.

    `--home` means this machine, whatever SCHED_URL is.
    """
    if named.home is not None and named.url is not None:
        raise Refused("--home and --url cannot be combined; choose one")
    url = named.url or ("" if named.home is not None else environ.get("SCHED_URL", ""))
    if url:
        return Server(_address(url), _token(named, environ), app)
    if named.token is not None or named.token_file is not None:
        raise Refused("--token and --token-file are for a server; name it with --url or SCHED_URL")
    return None


def is_exposed(url: str) -> bool:
    """Return whether the token crosses a network unencrypted."""
    parsed = urlsplit(url)
    host = parsed.hostname or ""
    if parsed.scheme == "https" or host == "localhost":
        return False
    try:
        return not ip_address(host).is_loopback
    except ValueError:
        return True


def _address(text: str) -> str:
    """Return the address of a server, which may be given as that of its API."""
    if "@" in text:
        raise Refused("--url holds a user or a password; leave it out, the token is enough")
    try:
        url = urlsplit(text.strip())
        is_address = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        is_address = False
    if not is_address or url.query or url.fragment:
        raise Refused(
            f"--url {text!r} is not an address; write one such as https://cron.example.com"
        )
    return url.geturl().rstrip("/").removesuffix("/api")


def _token(named: Named, environ: Mapping[str, str]) -> str:
    if named.token is not None and named.token_file is not None:
        raise Refused("--token and --token-file cannot be combined; choose one")
    if named.token_file is not None:
        text = read_text(named.token_file)
    else:
        text = named.token or environ.get("SCHED_TOKEN", "")
    token = text.strip()
    if not token:
        raise Refused(MISSING)
    if not re.fullmatch(r"[!-~]+", token):
        raise Refused("the token has characters that a token cannot have; copy it again")
    return token
