"""Who may do what: the roles of tokens, and what each permits."""

from enum import StrEnum


class Role(StrEnum):
    """What the bearer of a token may do, in one small app (a tenant) or in the installation."""

    VIEWER = "viewer"
    OPERATOR = "operator"
    EDITOR = "editor"
    WORKER = "worker"
    ADMIN = "admin"


class TokenKind(StrEnum):
    """What a token opens: each door accepts only its own kind."""

    # The HTTP API, as `Authorization: Bearer`; and the pages, at the sign-in.
    TOKEN = "token"  # noqa: S105 - a kind, no secret
    # The pages, once.
    LINK = "link"


class Permission(StrEnum):
    """What a request does."""

    READ = "read"
    OPERATE = "operate"
    EDIT = "edit"
    WORK = "work"
    FOLLOW = "follow"
    ADMINISTER = "administer"


PERMITS: dict[Role, frozenset[Permission]] = {
    Role.VIEWER: frozenset({Permission.READ}),
    Role.OPERATOR: frozenset({Permission.READ, Permission.OPERATE}),
    Role.EDITOR: frozenset({Permission.READ, Permission.OPERATE, Permission.EDIT}),
    # One of the two: models/store/tokens.py.
    Role.WORKER: frozenset({Permission.WORK, Permission.FOLLOW}),
    Role.ADMIN: frozenset(Permission),
}
