"""The mail that new data is available: who gets it, what it says, and when there is none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from minutehand.steps import StepFailed, StepOutcome, StepResult
from models.action.recipients import EVERYBODY, RecipientFilterModel
from models.parsing import Reading
from models.store.people import users
from runtime.database import reading
from small_apps.mail.new_data import DEFAULT
from small_apps.mail.templated import deliver_template
from small_apps.mail.templates import MailTemplate
from small_apps.mail.values import NEW_DATA, news_of
from small_apps.step_context import WorkContext
from small_apps.store import small_apps

STEP = "publish"
DEFAULT_RECIPIENTS = {"groups": [EVERYBODY]}


@dataclass(frozen=True, slots=True)
class News:
    """What an operation published: domains with their rows, the names of documents."""

    domains: Mapping[str, int] = field(default_factory=dict)
    design: Sequence[str] = ()
    permissions: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether there is something new."""
        return bool(self.domains or self.design or self.permissions)


def tell(context: WorkContext, asked: bool | None, news: News) -> StepResult | None:
    """Mail what is new to whom the small app says; return what came of it, None for no mail.

    `asked` is what the action says: true and false hold in any case. Without it the mail goes out
    when a person ran the action, unless the small app's `notify` is false. Those who had the mail
    of this operation are passed over. What keeps it from going out is a partial result: what was
    published is published.
    """
    with reading(context.engine) as connection:
        app = small_apps.document_of(connection, context.small_app.id)
        own = small_apps.templates_of(connection, context.small_app.id).get(NEW_DATA)
        rule = app.get("notify_recipients", DEFAULT_RECIPIENTS)
        filtered = RecipientFilterModel.model_validate(rule, context=Reading(tolerant=True))
        recipients = users.recipients_of(connection, context.small_app.id, filtered)
    is_wanted = context.is_manual and app.get("notify", True) if asked is None else asked
    if not news or not is_wanted or (asked is None and not recipients):
        return None
    template = DEFAULT if own is None else MailTemplate(NEW_DATA, **own)
    # There is no next attempt for it: the step does not fail.
    sending = replace(context, recipients=recipients, attempts_left=0)
    title = app.get("title") or context.small_app.name
    values = news_of(news.domains, news.design, news.permissions)
    try:
        return deliver_template(sending, STEP, template, title, values)
    except StepFailed as failed:
        return StepResult(f"failed: {failed}", StepOutcome.PARTIAL, {"error": str(failed)})
