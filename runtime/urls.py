"""Checks of URLs and addresses in settings. No error repeats a URL: it may hold a password."""

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    # A child process that only reads a file starts in half the time without it.
    import sqlalchemy as sa

DATABASES = {"sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg"}
BROKERS = {"redis", "rediss", "redis+socket", "sentinel", "amqp", "amqps", "pyamqp"}
MAIL_SERVERS = {"smtp", "smtp+starttls", "smtps"}
_DOMAIN = re.compile(r"[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*")


def host_and_port(host: str, port: int) -> str:
    """Return both as in a URL, with an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_host(name: str | None) -> bool:
    """Return whether a host name can be looked up at all; without one, a client has its own.

    For any other, Python's lookup raises UnicodeError, which no client of a server expects.
    """
    try:
        unquote(name or "").encode("idna")
    except UnicodeError:
        return False
    return True


def _check_hosts(*names: str | None) -> None:
    if not all(map(is_host, names)):
        raise ValueError(
            "its host is no valid name; write one whose parts between dots have 1 to 63 characters"
        )


def check_database_url(text: str) -> None:
    """Raise ValueError unless `text` is the URL of a durable database."""
    from sqlalchemy.exc import ArgumentError

    remedy = "write sqlite:///PATH or postgresql://USER:PASSWORD@HOST/NAME"
    try:
        url = database_url(text)
    except (ArgumentError, ValueError):
        raise ValueError(remedy) from None
    if url.drivername not in DATABASES:
        raise ValueError(remedy)
    if url.get_backend_name() == "sqlite" and _is_in_memory(url):
        raise ValueError("a database in memory keeps nothing; write sqlite:///PATH")
    hosts = ",".join([url.host or "", *url.normalized_query.get("host", ())])
    # A path is the folder of a socket.
    _check_hosts(*(one for one in hosts.split(",") if not one.startswith("/")))


def database_url(text: str) -> "sa.URL":
    """Return the URL of a database; `postgres:` is another name of `postgresql:`, as in libpq.

    Raises sqlalchemy.exc.ArgumentError or ValueError.
    """
    from sqlalchemy import make_url

    url = make_url(text)
    return url.set(drivername="postgresql") if url.drivername == "postgres" else url


def check_broker_url(text: str) -> None:
    """Raise ValueError unless `text` is a broker's URL, or several separated by `;`."""
    for one in text.split(";"):
        if not _is_broker(one):
            raise ValueError(
                "write redis://HOST:PORT/0, redis+socket:///PATH, amqp://HOST// or "
                "sentinel://HOST:PORT/0?master_name=NAME"
            )
    _check_hosts(*(urlsplit(one).hostname for one in text.split(";")))
    if text.startswith("sentinel:") and not split_sentinel(text)[1]:
        raise ValueError(
            "Sentinel needs the name of the primary; write "
            "sentinel://HOST:PORT;sentinel://HOST:PORT/0?master_name=NAME"
        )


def split_sentinel(text: str) -> tuple[str, str]:
    """Return a broker's URL without its query, and the `master_name` that the query names.

    Of several Sentinels separated by `;`, any may name it. Other URLs are returned as they are.
    """
    if not text.startswith("sentinel:"):
        return text, ""
    urls = [urlsplit(one) for one in text.split(";")]
    names = [name for url in urls for name in parse_qs(url.query).get("master_name", ())]
    # kombu takes the number of the database from the first.
    path = next((url.path for url in urls if url.path.strip("/")), "")
    plain = [url._replace(query="", path=path).geturl() for url in urls]
    return ";".join(plain), names[0] if names else ""


def check_smtp_url(text: str) -> None:
    """Raise ValueError unless `text` is a mail server's URL."""
    remedy = "write smtp://HOST:PORT, smtp+starttls://… or smtps://USER:PASSWORD@HOST"
    try:
        url = urlsplit(text)
        is_usable = url.scheme in MAIL_SERVERS and bool(url.netloc) and url.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ValueError(remedy)
    _check_hosts(url.hostname)


def check_web_url(text: str) -> None:
    """Raise ValueError unless `text` is an http or https URL with a host."""
    try:
        url = urlsplit(text)
        is_usable = url.scheme in {"http", "https"} and bool(url.hostname) and url.port != 0
    except ValueError:
        is_usable = False
    is_usable = is_usable and is_host(url.hostname)
    if not is_usable or any(char.isspace() or not char.isprintable() for char in text):
        raise ValueError("write a URL such as https://example.com/hooks")


def check_sender(text: str) -> None:
    """Raise ValueError unless `text` is an address: `a@example.com` or `Ann <a@example.com>`."""
    # They take longer to load than most commands to run.
    from email.errors import MessageError
    from email.headerregistry import Address
    from email.utils import parseaddr

    _name, bare = parseaddr(text)
    is_alone = bool(bare) and (text == bare or text.endswith(f"<{bare}>"))
    try:
        domain = Address(addr_spec=bare).domain
    except (ValueError, IndexError, MessageError):
        domain = ""
    is_plain = text.isprintable() and bare.isascii() and _DOMAIN.fullmatch(domain)
    if not (is_alone and is_plain):
        raise ValueError("write one address, such as minutebook@example.com")


def _is_in_memory(url: "sa.URL") -> bool:
    name = url.database or ":memory:"
    return ":memory:" in name or (name.startswith("file:") and url.query.get("mode") == "memory")


def _is_broker(text: str) -> bool:
    try:
        url = urlsplit(text)
        number = url.path.strip("/")
        # Reading the port raises ValueError for a wrong one.
        has_sound_port = url.port is None or url.port > 0
    except ValueError:
        return False
    if url.scheme == "redis+socket":
        return bool(number)
    is_numbered = not number or (number.isascii() and number.isdecimal())
    return url.scheme in BROKERS and has_sound_port and (is_numbered or "amqp" in url.scheme)
