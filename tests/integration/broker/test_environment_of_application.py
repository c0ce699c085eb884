"""Variables by which Celery finds the broker of an application, in the environment of ours."""

from collections.abc import Callable, Iterator

import pytest
from pydantic import SecretStr

from broker.app import app, configure, sending_connection
from runtime.config import Settings

VARIABLES = ("CELERY_BROKER_URL", "CELERY_BROKER_READ_URL", "CELERY_BROKER_WRITE_URL")


@pytest.fixture
def settings(home_of: Callable[[str], Settings]) -> Iterator[Settings]:
    """Settings that the broker's app has again after the test."""
    made = home_of("sqlite")
    yield made
    configure(made)


def test_neither_workers_nor_daemons_go_to_the_broker_of_the_application(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in VARIABLES:
        monkeypatch.setenv(name, "redis://theirs.invalid:6379/0")
    ours = SecretStr("redis://ours.invalid:6379/0")
    configure(settings.model_copy(update={"broker_url": ours}))

    hosts = {app.connection_for_read().hostname, sending_connection().hostname}
    assert hosts == {"ours.invalid"}


def test_the_settings_of_the_application_are_not_ours(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CELERY_CONFIG_MODULE", "of_no_package_of_ours")
    monkeypatch.setattr(app.loader, "_conf", app.loader.read_configuration())

    configure(settings)

    assert app.loader.conf == {}
