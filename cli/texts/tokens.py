"""Tokens, and links to the dashboard, in words."""

from collections.abc import Iterator

from cli.render import Line, Table, cell, sentence
from views.tokens import NewToken, RevokedToken, Tokens
from views.tokens.sessions import NewLink

HEADINGS = ("ID", "NAME", "ROLE", "APP", "CREATED", "BY", "EXPIRES", "LAST USED")


def _tokens(listed: Tokens) -> Iterator[Line]:
    yield Table(
        HEADINGS,
        [
            [
                one.id,
                cell(one.name),
                one.role,
                one.app or "all",
                cell(one.created_at),
                one.created_by,
                cell(one.expires_at),
                cell(one.last_used_at),
            ]
            for one in listed.root
        ],
    )


FORMS = {
    NewToken: sentence("{token}"),
    Tokens: _tokens,
    RevokedToken: sentence("revoked token {id}"),
    NewLink: sentence("{url}"),
}
