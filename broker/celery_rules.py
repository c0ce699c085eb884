"""Which tasks of the user's own Celery application this installation lets actions send."""

from models.celery_task import OUR_QUEUES, CeleryRules
from runtime.config import Settings


def rules_of(settings: Settings) -> CeleryRules:
    """Return the rules of these settings: our own queues are free on a broker of its own."""
    has_own_broker = celery_broker_url(settings) != settings.effective_broker_url
    return CeleryRules(settings.celery.tasks, frozenset() if has_own_broker else OUR_QUEUES)


def celery_broker_url(settings: Settings) -> str:
    """Return the URL of the broker of the user's application, secrets included: do not log."""
    return settings.celery.broker_url.get_secret_value() or settings.effective_broker_url
