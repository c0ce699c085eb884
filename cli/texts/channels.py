"""Channels in words."""

from collections.abc import Iterator

from cli.render import Line, Table, sentence
from views.channels import Channels, Tested


def _channels(listed: Channels) -> Iterator[Line]:
    yield Table(("NAME",), [[one.name] for one in listed.root])


FORMS = {
    Channels: _channels,
    Tested: sentence("channel {name} took the test message"),
}
