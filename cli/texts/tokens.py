"""Tokens, and links to the dashboard, in words."""

from cli.render import listing, sentence
from services.tokens import NewToken, RevokedToken, Tokens
from services.tokens.sessions import NewLink

COLUMNS = {
    "id": "ID",
    "name": "NAME",
    "role": "ROLE",
    "scope": "APP",
    "created_at": "CREATED",
    "created_by": "BY",
    "expires_at": "EXPIRES",
    "last_used_at": "LAST USED",
}

FORMS = {
    NewToken: sentence("{token}"),
    Tokens: listing(COLUMNS),
    RevokedToken: sentence("revoked token {id}"),
    NewLink: sentence("{url}"),
}
