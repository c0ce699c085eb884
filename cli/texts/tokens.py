"""Tokens, and links to the dashboard, in words."""

from collections.abc import Iterator

from cli.render import Line, Table, cell
from views.tokens import NewToken, RevokedToken, Tokens
from views.tokens.sessions import NewLink

HEADINGS = ("ID", "ROLE", "APP", "CREATED", "BY", "EXPIRES", "LAST USED")


def _new(made: NewToken) -> Iterator[str]:
    yield made.token


def _tokens(listed: Tokens) -> Iterator[Line]:
    yield Table(
        HEADINGS,
        [
            [
                one.id,
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


def _revoked(done: RevokedToken) -> Iterator[str]:
    yield f"revoked token {done.id}"


def _link(made: NewLink) -> Iterator[str]:
    yield made.url


FORMS = {NewToken: _new, Tokens: _tokens, RevokedToken: _revoked, NewLink: _link}
