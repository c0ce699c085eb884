"""The keys of the data product: domains with their sources, templates, documents, mail, status."""

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, cast

from pydantic import BeforeValidator, Field
from pydantic_core import InitErrorDetails

from data.small_app.sources import DomainModel
from data.small_app.staged import KINDS, Documents
from models.action.recipients import RecipientFilterModel
from models.document import Document, as_object
from models.parsing import Reading
from models.problems import line_error
from models.tenant.document import SmallAppModel, key_problems
from models.values import Flag, parse_line, parse_text

LONGEST_TEMPLATE = 100_000
LONGEST_SUBJECT = 500

Body = Annotated[str, BeforeValidator(partial(parse_text, most=LONGEST_TEMPLATE))]


class TemplateModel(Document):
    """A mail template: its subject, its text, and an optional HTML version."""

    subject: Annotated[str, BeforeValidator(partial(parse_line, most=LONGEST_SUBJECT))]
    text: Body
    html: Body | None = None


class DataModel(SmallAppModel):
    """A small app with data.

    `notify` false silences the "new data available" mails of this app, unless a publish requests
    one; `notify_recipients` selects their recipients, by default all users. `public_status` shows
    how fresh the data are to people without an account.
    """

    domains: Annotated[dict[str, DomainModel], BeforeValidator(as_object)] = Field(
        default_factory=dict
    )
    templates: Annotated[dict[str, TemplateModel], BeforeValidator(as_object)] = Field(
        default_factory=dict
    )
    design: Documents = Field(default_factory=dict)
    permissions: Documents = Field(default_factory=dict)
    notify: Flag = True
    notify_recipients: RecipientFilterModel | None = None
    public_status: Flag = False

    @classmethod
    def contradictions(cls, raw: Mapping[str, Any], reading: Reading, /) -> list[InitErrorDetails]:
        """Return the problems of its names, and of its `notify_recipients`, too."""
        return (
            super().contradictions(raw, reading)
            + _empty_recipients(raw.get("notify_recipients"))
            + key_problems(raw, ("domains", "templates", *KINDS))
        )


def data_in(model: SmallAppModel) -> DataModel:
    """Return a small app, as `parse_small_app` reads it, with its keys of the data product."""
    return cast("DataModel", model)


def _empty_recipients(recipients: object) -> list[InitErrorDetails]:
    if not isinstance(recipients, Mapping) or any(recipients.get(k) for k in ("users", "groups")):
        return []
    remedy = 'selects no user; write {"groups": ["all"]}, or set "notify" to false'
    return [line_error(("notify_recipients",), dict(recipients), remedy)]
