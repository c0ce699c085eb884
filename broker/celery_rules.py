"""Which tasks of the user's own Celery application this installation lets actions send."""

from models.celery_task import CeleryRules
from runtime.config import Settings


def rules_of(settings: Settings) -> CeleryRules:
    """Return the rules of these settings: an application may have a broker of its own."""
    shares_broker = celery_broker_url(settings) == settings.effective_broker_url
    return CeleryRules(settings.celery.tasks, shares_broker)


def celery_broker_url(settings: Settings) -> str:
    """Return the URL of the broker of the user's application, secrets included: do not log."""
    return settings.celery.broker_url.get_secret_value() or settings.effective_broker_url
