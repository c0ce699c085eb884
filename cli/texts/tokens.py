"""Tokens, and links that sign in, in words."""

from cli.render import listing, sentence
from services.tokens import NewToken, RevokedToken, Tokens
from services.tokens.sessions import NewLink

FORMS = {
    NewToken: sentence("{token}"),
    Tokens: listing("id name role scope=APP created_at created_by=BY expires_at last_used_at"),
    RevokedToken: sentence("revoked token {id}"),
    NewLink: sentence("{url}"),
}
