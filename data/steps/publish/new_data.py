"""The "new data available" mail of a publish."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from data.mail.templated import deliver_template
from data.mail.templates import MailTemplate
from data.mail.values import NEW_DATA, news_of
from data.store.readers import readers_of
from data.store.small_apps import templates_of
from minutebook.steps import StepFailed, StepOutcome, StepResult
from models.store import tenants
from runtime.database import reading
from tasks.step_context import WorkContext

STEP = "publish"
# The template of a small app that has none of its own.
DEFAULT = MailTemplate(
    NEW_DATA,
    subject="{{ small_app.title }}: new data available",
    text="""Hello {{ recipient.name }},

there is something new in {{ small_app.title }}, published on {{ date }} at {{ time }} \
({{ small_app.zone }}):

{% for domain in domains %}- {{ domain.name }}: {{ domain.rows }} \
row{% if domain.rows != 1 %}s{% endif %}
{% endfor %}{% if design %}- design: {{ design|join(", ") }}
{% endif %}{% if permissions %}- permissions: {{ permissions|join(", ") }}
{% endif %}""",
    html="""<p>Hello {{ recipient.name }},</p>
<p>there is something new in <b>{{ small_app.title }}</b>, published on {{ date }} at {{ time }} \
({{ small_app.zone }}):</p>
<ul>
{% for domain in domains %}<li>{{ domain.name }}: {{ domain.rows }} \
row{% if domain.rows != 1 %}s{% endif %}</li>
{% endfor %}{% if design %}<li>design: {{ design|join(", ") }}</li>
{% endif %}{% if permissions %}<li>permissions: {{ permissions|join(", ") }}</li>
{% endif %}</ul>""",
)


@dataclass(frozen=True, slots=True)
class News:
    """The published changes of an operation: domains with rows, and names of documents."""

    domains: Mapping[str, int] = field(default_factory=dict)
    design: Sequence[str] = ()
    permissions: Sequence[str] = ()

    def __bool__(self) -> bool:
        """Whether anything changed."""
        return bool(self.domains or self.design or self.permissions)


def mail_news(context: WorkContext, notify: bool | None, news: News) -> StepResult | None:
    """Mail the news to the small app's `notify_recipients`; return the result, None for no mail.

    What the user of a manual run said decides, then the action's `notify`. Otherwise the mail is
    sent for manual runs, unless the small app's `notify` is false. Recipients who had this
    operation's mail are skipped. A failure to send is a partial result, because the data are
    published.
    """
    with reading(context.engine) as connection:
        app = tenants.document_of(connection, context.small_app.id)
        own = templates_of(connection, context.small_app.id).get(NEW_DATA)
        readers = readers_of(connection, context.small_app.id)
    choice = notify if context.notify is None else context.notify
    if not news or not readers.are_mailed(choice, is_manual=context.is_manual):
        return None
    template = DEFAULT if own is None else MailTemplate(NEW_DATA, **own)
    # No attempt follows, because the step does not fail.
    sending = replace(context, recipients=readers.recipients, attempts_left=0)
    title = app.get("title") or context.small_app.name
    values = news_of(news.domains, news.design, news.permissions)
    try:
        return deliver_template(sending, STEP, template, title, values)
    except StepFailed as failed:
        return StepResult(f"failed: {failed}", StepOutcome.PARTIAL, {"error": str(failed)})
