"""Settings of the user's own Celery applications."""

import re
from typing import Annotated, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from runtime.references import resolved_setting
from runtime.sections import Names, Section, split
from runtime.sections.named import Named, object_of
from runtime.urls import check_broker_url

_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
# What stands in the place of a secret.
HIDDEN = "***"
# How people read the name of the application that needs none.
_DEFAULT = "default"


class ApplicationSettings(Section):
    """A Celery application: its broker, and what actions may send there."""

    tasks: Names = Field((), description="names or patterns of tasks that actions may send")
    broker_url: SecretStr = Field(
        SecretStr(""), description="broker of that application; Minutebook's own by default"
    )
    global_keyprefix: str | None = Field(
        None, description="that application's global_keyprefix: the prefix of its keys in Redis"
    )
    sep: str | None = Field(
        None, description="that application's sep: what parts a queue and a priority in Redis"
    )
    priority_steps: Annotated[tuple[int, ...], BeforeValidator(split)] = Field(
        (), description="that application's priority_steps in Redis, by commas"
    )

    @property
    def broker_options(self) -> dict[str, object]:
        """Its options of `broker_transport_options` that name the lists of messages in Redis."""
        given = {
            "global_keyprefix": self.global_keyprefix,
            "sep": self.sep,
            "priority_steps": list(self.priority_steps),
        }
        return {name: value for name, value in given.items() if value}

    @field_validator("broker_url")
    @classmethod
    def _is_a_broker(cls, value: SecretStr) -> SecretStr:
        url = resolved_setting(value.get_secret_value())
        if url:
            check_broker_url(url)
        return SecretStr(url)


def _application(value: object) -> object:
    """Return an application's settings: an object, or its broker's URL alone."""
    if not isinstance(value, str) or value.lstrip().startswith("{"):
        return object_of(value)
    return {"broker_url": value}


def _names(value: dict[str, ApplicationSettings]) -> Named[ApplicationSettings]:
    for name in value:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is no name of an application; write lowercase letters, digits and _, "
                "such as shop"
            )
        if name == _DEFAULT:
            raise ValueError(
                f"{name!r} stands for the application of SCHED_CELERY_BROKER_URL; write another "
                "name, and that name in SCHED_CELERY_APPLICATION to make it the default one"
            )
    return Named(value)


Applications = Annotated[
    dict[str, Annotated[ApplicationSettings, BeforeValidator(_application)]],
    BeforeValidator(object_of),
    AfterValidator(_names),
]


class CelerySettings(ApplicationSettings):
    """The default application, which needs no name, and all others by name."""

    application: str | None = Field(
        None,
        description="the application of tasks that name none: one of SCHED_CELERY_BROKERS_…; "
        "by default that of SCHED_CELERY_BROKER_URL",
    )
    hide: str = Field(
        r"(?i)(?:passw(?:or)?d|secret|token|api[_-]?key|authorization)['\"]?\s*[=:]\s*"
        r"(?:['\"]?(?:bearer|basic)\s+)?\S+"
        r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)",
        description="a regular expression: what it finds in the traceback, the returned value and "
        "the arguments that a run shows, is shown as ***",
    )
    brokers: Applications = Field(
        Named(),
        description="brokers of further applications, by name: a URL, or an object with the keys "
        "of this section",
    )

    @field_validator("hide")
    @classmethod
    def _is_an_expression(cls, value: str) -> str:
        try:
            re.compile(value)
        except re.error as error:
            raise ValueError(f"write a regular expression of Python: {error}") from None
        return value

    @model_validator(mode="after")
    def _is_known(self) -> Self:
        if self.application is None or self.application in self.brokers:
            return self
        known = ", ".join(sorted(self.brokers)) or "none"
        raise ValueError(
            f"application {self.application!r} is not among the brokers ({known}); set "
            f"SCHED_CELERY_BROKERS_{self.application.upper()} too"
        )

    @property
    def secret(self) -> re.Pattern[str] | None:
        """What finds secrets in texts; None if nothing is hidden."""
        return re.compile(self.hide) if self.hide else None

    def of(self, name: str | None) -> ApplicationSettings:
        """Return the settings of an application: the default one for None; raises KeyError."""
        its = self.application if name is None else name
        return self if its is None else self.brokers[its]

    def tasks_of(self, name: str | None) -> tuple[str, ...]:
        """Return the tasks that actions may send there: its own list, else that of all."""
        return self.of(name).tasks or self.tasks

    @property
    def all_tasks(self) -> tuple[str, ...]:
        """The tasks that actions may send to any application."""
        return (*self.tasks, *(one for its in self.brokers.values() for one in its.tasks))

    def canonical(self, name: str | None) -> str | None:
        """Return None for the default application, whether it is named or not."""
        return None if name == self.application else name

    @property
    def names(self) -> tuple[str | None, ...]:
        """The names of all applications: None is the default one, which has none of its own."""
        return (None, *(name for name in self.brokers if name != self.application))
