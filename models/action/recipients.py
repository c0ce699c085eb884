"""The recipients of an action's mails, and the subjects of an event action."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Protocol

from pydantic_core import InitErrorDetails

from models.document import Document
from models.parsing import Reading
from models.problems import line_error
from models.values import Flag, Names, flag_of

EVERYBODY = "all"


class RecipientUser(Protocol):
    """The part of a user that the filter of recipients reads.

    `active` is false if the user was switched off (inactive); `activated_at` is None if the account
    was never activated (inactivated). A user may be both.
    """

    @property
    def id(self) -> str: ...
    @property
    def active(self) -> bool: ...
    @property
    def activated_at(self) -> datetime | None: ...
    @property
    def groups(self) -> frozenset[str]: ...


class RecipientFilterModel(Document):
    """Named users and members of named groups (`all`: every user), minus those left out.

    Inactive and inactivated users are left out. `include_…` keeps a kind too, `only_…` keeps only
    that kind; both `only_…` together are refused. `only_` of one kind with `include_` of the other
    keeps the users of the first kind, including those of both kinds.
    """

    example = '{"groups": ["all"]}'

    users: Names = ()
    groups: Names = ()
    include_inactive_users: Flag = False
    include_inactivated_users: Flag = False
    only_inactive_users: Flag = False
    only_inactivated_users: Flag = False

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], _reading: Reading, /) -> list[InitErrorDetails]:
        """Return the fault of both `only_` flags together."""
        if flag_of(raw.get("only_inactive_users")) and flag_of(raw.get("only_inactivated_users")):
            remedy = (
                "cannot be combined with only_inactive_users; keep one of them, or make two actions"
            )
            return [line_error(("only_inactivated_users",), raw["only_inactivated_users"], remedy)]
        return []

    @property
    def names_nobody(self) -> bool:
        """Whether neither a user nor a group is named."""
        return not self.users and not self.groups

    @property
    def keeps_inactive(self) -> bool:
        """Whether inactive users may be kept."""
        return self.include_inactive_users or self.only_inactive_users

    @property
    def keeps_inactivated(self) -> bool:
        """Whether inactivated users may be kept."""
        return self.include_inactivated_users or self.only_inactivated_users

    def keeps(self, user: RecipientUser) -> bool:
        """Return whether the flags keep `user`, whether named or not."""
        activated = user.activated_at is not None
        if self.only_inactive_users and user.active:
            return False
        if self.only_inactivated_users and activated:
            return False
        return (user.active or self.keeps_inactive) and (activated or self.keeps_inactivated)

    def selects(self, user: RecipientUser) -> bool:
        """Return whether `user` is named, or in a named group, and kept by the flags."""
        named = user.id in self.users or EVERYBODY in self.groups
        return (named or not user.groups.isdisjoint(self.groups)) and self.keeps(user)

    def counts(self, user: RecipientUser) -> bool:
        """Return whether `user` may be the subject of an event action.

        Without names every user may, except those that the flags leave out.
        """
        return self.keeps(user) if self.names_nobody else self.selects(user)
