"""Read which server a command should ask, and by which token."""

import os
import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from cli.remote.server import Remote
from models.errors import Refused
from runtime.urls import is_host
from services.files import read_text

MISSING = "--url needs a token: set SCHED_TOKEN, or name a file with --token-file"


def server_of(
    *,
    home: Path | None = None,
    url: str | None = None,
    token: str | None = None,
    token_file: Path | None = None,
    app: str | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Remote | None:
    """Return the server of the global options or of SCHED_URL; raises Refused.

    It is None for this machine, which `--home` means, whatever SCHED_URL is.
    """
    if home is not None and url is not None:
        raise Refused("--home and --url cannot be combined; choose one")
    url = url or ("" if home is not None else environ.get("SCHED_URL", ""))
    if url:
        return Remote(_address(url), _token(token, token_file, environ), app)
    if token is not None or token_file is not None:
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
    if not is_address or url.query or url.fragment or not is_host(url.hostname):
        raise Refused(
            f"--url {text!r} is not an address; write one such as https://cron.example.com"
        )
    return url.geturl().rstrip("/").removesuffix("/api")


def _token(given: str | None, file: Path | None, environ: Mapping[str, str]) -> str:
    if given is not None and file is not None:
        raise Refused("--token and --token-file cannot be combined; choose one")
    named = given or environ.get("SCHED_TOKEN", "")
    token = (named if file is None else read_text(file)).strip()
    if not token:
        raise Refused(MISSING)
    if not re.fullmatch(r"[!-~]+", token):
        raise Refused("the token has characters that a token cannot have; copy it again")
    return token
