"""The user's Celery applications: the tasks that actions may send there, and their brokers."""

from dataclasses import dataclass, field
from functools import lru_cache

from models.carriers import application_in
from models.celery_task import BROKERS, DEFAULT_APPLICATION, CeleryRules
from runtime.config import Settings


@dataclass(frozen=True, slots=True)
class Application:
    """A Celery application, and how its broker is reached."""

    # None is the default application.
    name: str | None
    # With its secrets: do not log it.
    url: str = field(repr=False)
    # What names the lists of messages in Redis.
    options: dict[str, object] = field(default_factory=dict)

    @property
    def is_amqp(self) -> bool:
        """Whether its broker is RabbitMQ or another of AMQP."""
        return is_amqp(self.url)

    @property
    def shown(self) -> str:
        """Its name in a sentence."""
        return "the Celery application" + (f" {self.name}" if self.name else "")


def applications(settings: Settings) -> list[Application]:
    """Return all applications, the default one first."""
    return [application_of(settings, name) for name in settings.celery.names]


def application_of(settings: Settings, name: str | None) -> Application:
    """Return an application by its name, the default one for None; raises KeyError."""
    its = settings.celery.of(name)
    url = its.broker_url.get_secret_value() or settings.effective_broker_url
    return Application(settings.celery.canonical(name), url, its.broker_options)


def name_of(settings: Settings, queue: str) -> str | None:
    """Return the application to which an operation's queue belongs; None is the default one."""
    name = application_in(queue)
    return name if name in settings.celery.names else None


@lru_cache(maxsize=4)
def rules_of(settings: Settings) -> CeleryRules:
    """Return what actions may send, to each application."""
    others = {name: _rules(settings, name) for name in settings.celery.brokers}
    return _rules(settings, None, others)


def _rules(
    settings: Settings, name: str | None, others: dict[str, CeleryRules] | None = None
) -> CeleryRules:
    its = application_of(settings, name)
    return CeleryRules(
        settings.celery.tasks_of(name),
        its.is_amqp,
        applications=others or {},
        default=settings.celery.application,
    )


def broker_setting(name: str | None) -> str:
    """Return the setting of an application's broker."""
    if name in (None, DEFAULT_APPLICATION):
        return "SCHED_CELERY_BROKER_URL"
    return f"{BROKERS}_{name.upper()}"


def is_amqp(url: str) -> bool:
    """Whether a broker's URL is that of RabbitMQ or another of AMQP."""
    return "amqp" in url.partition("://")[0]
