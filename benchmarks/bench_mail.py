"""Measure how many mails a second send_email delivers to a real SMTP server on this machine.

The server is a separate process and discards all mail. Each message is rendered, recorded before it
is sent, and recorded as sent.
"""

import os
import socket
from time import perf_counter, process_time

from pydantic import SecretStr

from benchmarks.harness import Database, Figure, Sizes, Stack, main, middle, process, until
from data.settings import settings_in
from data.steps import send_email
from data.steps.send_email import SendEmailParameters
from minutebook.steps import Recipient
from tests.integration.data.steps.conftest import Work
from tests.servers import free_port

TEMPLATE = {
    "subject": "Figures of {{ date }} for {{ recipient.name }}",
    "text": "Dear {{ recipient.name }},\n\n" + "a line of plain text\n" * 20,
    "html": "<p>Dear {{ recipient.name }},</p>" + "<p>a line of a page</p>\n" * 20,
}


def measure(stack: Stack, sizes: Sizes) -> list[Figure]:
    """Return the mails a second of one step."""
    port = free_port()
    command = ["-m", "aiosmtpd", "-n", "-c", "aiosmtpd.handlers.Sink", "-l", f"127.0.0.1:{port}"]
    database = stack.empty()
    log = database.settings.home / "smtp.log"
    with process(command, dict(os.environ), log):
        until(lambda: _listens(port), "the SMTP server listens", log)
        rates = [_rate(database, port, sizes.mails) for _ in range(sizes.repeats)]
    stack.drop(database)
    what = "mail: messages by one send_email, to a server here"
    return [
        Figure(what, middle([rate for rate, _cpu in rates]), "/s", "300"),
        Figure(f"{what}, CPU of one", middle([cpu for _rate, cpu in rates]), "ms"),
    ]


def _rate(database: Database, port: int, number: int) -> tuple[int, float]:
    """Return the messages a second, and the milliseconds of this process for one."""
    work = Work(database.engine, settings_in(database.settings))
    work.apply(templates={"news": TEMPLATE})
    people = [Recipient(f"u{n}", f"u{n}@example.com", f"User {n}") for n in range(number)]
    url = SecretStr(f"smtp://127.0.0.1:{port}")
    context = work.context(SendEmailParameters(template="news"), recipients=people, smtp_url=url)
    began, cpu = perf_counter(), process_time()
    result = send_email.run(context)
    took, cpu = perf_counter() - began, process_time() - cpu
    if result.details["sent"] != number:
        raise RuntimeError(result.message)
    return round(number / took), round(cpu / number * 1e3, 3)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


if __name__ == "__main__":
    main(measure)
