"""The user's Celery application: the tasks that actions may send there, and its broker."""

from dataclasses import dataclass, field

from models.celery_task import CeleryRules
from runtime.config import Settings


@dataclass(frozen=True, slots=True)
class Application:
    """How the broker of the Celery application is reached."""

    # With its secrets: do not log it.
    url: str = field(repr=False)
    # What names the lists of messages in Redis.
    options: dict[str, object] = field(default_factory=dict)

    @property
    def is_amqp(self) -> bool:
        """Whether its broker is RabbitMQ or another of AMQP."""
        return is_amqp(self.url)


def application_of(settings: Settings) -> Application:
    """Return the application, at its own broker or at ours."""
    url = settings.celery.broker_url.get_secret_value() or settings.effective_broker_url
    return Application(url, settings.celery.broker_options)


def has_one_broker(settings: Settings) -> bool:
    """Return whether the application shares the broker of our own queues."""
    return application_of(settings).url == settings.effective_broker_url


def rules_of(settings: Settings) -> CeleryRules:
    """Return what actions may send."""
    return CeleryRules(settings.celery.tasks, application_of(settings).is_amqp)


def is_amqp(url: str) -> bool:
    """Whether a broker's URL is that of RabbitMQ or another of AMQP."""
    return "amqp" in url.partition("://")[0]
