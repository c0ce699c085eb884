"""The tasks of the user's Celery application that actions may send, and its broker."""

from models.celery_task import CeleryRules
from runtime.config import Settings


def rules_of(settings: Settings) -> CeleryRules:
    return CeleryRules(
        settings.celery.tasks, shares_broker(settings), is_amqp(celery_broker_url(settings))
    )


def is_amqp(url: str) -> bool:
    """Whether a broker's URL is that of RabbitMQ or another of AMQP."""
    return "amqp" in url.partition("://")[0]


def shares_broker(settings: Settings) -> bool:
    """Whether the user's application has the same broker as Minutebook."""
    return celery_broker_url(settings) == settings.effective_broker_url


def celery_broker_url(settings: Settings) -> str:
    """Return the URL of the application's broker, secrets included: do not log it."""
    return settings.celery.broker_url.get_secret_value() or settings.effective_broker_url
