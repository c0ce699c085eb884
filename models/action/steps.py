"""The steps of an action with their parameters, in their fixed order."""

from collections.abc import Mapping
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    ValidationError,
    ValidationInfo,
    model_serializer,
    model_validator,
)
from pydantic_core import InitErrorDetails

from minutebook.steps import USER_ORDER, Steps, StepSpec
from models.celery_task import HandOver
from models.document import Document, NoParameters, as_object
from models.job import Job
from models.parsing import Models, Reading, lacking, reading_of, why_unknown
from models.problems import (
    line_error,
    line_errors,
    no_parameters,
    raise_all,
    read_each,
    unknown_key,
    unknown_keys,
)
from models.values import flag_of

MOST_STEPS = 100
OWN_STEP = "; name the module of a step of your own in SCHED_STEP_MODULES"
LACKS_EXTRA = (
    "needs the extra {extra!r}, which is not installed; add it as docs/how-to/install.md#extras "
    "shows, or set SCHED_WORKER_EXTRAS={extra} if the workers have it"
)


class StepModel(BaseModel):
    """One step of an action: its name, and its parameters as stored.

    `written` is `true` if the document had no parameters; `parameters` holds what `true` stands
    for. `spec` is None for an unknown step.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, defer_build=True)

    name: str
    written: bool | dict[str, Any]
    parameters: dict[str, Any]
    spec: StepSpec | None = None


class OperationModel(BaseModel):
    """The steps of an action in the order in which they run.

    Read from the `operations` object, without false steps; at least one must remain. Built-in steps
    come first in their fixed order, then user-defined steps as in the document.
    """

    model_config = ConfigDict(frozen=True, defer_build=True)

    steps: tuple[StepModel, ...]

    @property
    def is_heavy(self) -> bool:
        """Whether one of the known steps is heavy."""
        return any(step.spec is not None and step.spec.heavy for step in self.steps)

    @property
    def sending(self) -> tuple[str, ...]:
        """The names of the known steps that need recipients."""
        return tuple(s.name for s in self.steps if s.spec is not None and s.spec.sends)

    @property
    def handed_over(self) -> tuple[HandOver | None, str | None]:
        """The task to send to the user's Celery application, and its queue, or two None."""
        for one in self.steps:
            if one.spec is not None and one.spec.hand_over is not None:
                handed: tuple[HandOver, str | None] = one.spec.hand_over(one.parameters)
                return handed
        return None, None

    @property
    def job(self) -> Job | None:
        """The job that a worker takes over HTTP, or None."""
        specs = ((one.spec, one.parameters) for one in self.steps if one.spec is not None)
        return next((spec.job(given) for spec, given in specs if spec.job is not None), None)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any, info: ValidationInfo) -> Any:
        reading = reading_of(info)
        raw = as_object(value, '{"maintenance": true}')
        if len(raw) > MOST_STEPS and not reading.tolerant:
            raise ValueError(f"has {len(raw):,} steps; write at most {MOST_STEPS}")
        read, faults = read_each(raw.items(), lambda name, one: _read_step(name, one, reading))
        steps = [step for step in read if step is not None]
        if not raw or not (steps or faults):
            raise ValueError('has no step; write at least one, such as {"maintenance": true}')
        if not reading.tolerant:
            faults += _not_alone(steps)
        raise_all(cls.__name__, faults)
        return {"steps": sorted(steps, key=_order)}

    @classmethod
    def held(cls, steps: Steps) -> Mapping[str, Models]:
        """Return its keys, each with the models that its value is read as."""
        return {name: [spec.parameters] for name, spec in steps.items()}

    @model_serializer
    def _written(self) -> dict[str, Any]:
        return {step.name: step.written for step in self.steps}


def sending_steps(operations: object, known: Steps) -> tuple[str, ...]:
    """Return the steps of an unchecked `operations` object that need recipients."""
    if not isinstance(operations, Mapping):
        return ()
    return tuple(
        name
        for name, value in operations.items()
        if name in known and known[name].sends and flag_of(value) is not False
    )


def _read_step(name: str, value: object, reading: Reading) -> StepModel | None:
    """Return the step, None if it is false; raises ValueError or ValidationError."""
    flag = flag_of(value)
    spec = reading.steps.get(name)
    if spec is None and not reading.tolerant:
        hint = why_unknown(reading.steps)
        raise ValueError(unknown_key(name, [*reading.steps], "step", OWN_STEP) + hint)
    if flag is False:
        return None
    if spec is not None and spec.extra in lacking(reading.steps) and not reading.tolerant:
        raise ValueError(LACKS_EXTRA.format(extra=spec.extra))
    if flag is None and not isinstance(value, Mapping):
        raise ValueError(no_parameters(spec.parameters if spec else NoParameters))
    raw = as_object(value) if flag is None else dict(spec.if_true if spec else {})
    if spec is None:
        return StepModel(name=name, written=flag or raw, parameters=raw)
    checked = _checked(spec, raw, reading)
    return StepModel(name=name, written=flag or checked, parameters=checked, spec=spec)


def _checked(spec: StepSpec, raw: dict[str, Any], reading: Reading) -> dict[str, Any]:
    """Return the parameters to store: a Document's normalised, those of other models as written."""
    is_document = issubclass(spec.parameters, Document)
    # A document reports its unknown keys itself.
    is_checked = is_document or reading.tolerant
    faults = [] if is_checked else unknown_keys(spec.parameters, raw)
    try:
        model = spec.parameters.model_validate(raw, context=reading)
    except ValidationError as error:
        raise_all(spec.name, faults + line_errors(error))
        raise
    except (
        Exception,
        SystemExit,
    ) as error:  # a validator of a user-defined step must not end the command
        text = f"cannot be checked, {type(error).__name__}: {error}; correct the step's parameters"
        raise ValueError(text) from None
    raise_all(spec.name, faults)
    return model.model_dump(mode="json", exclude_unset=True, by_alias=True) if is_document else raw


def _not_alone(steps: list[StepModel]) -> list[InitErrorDetails]:
    if len(steps) < 2:
        return []
    return [
        line_error(
            (step.name,), step.written, "must be the only step; make another action for the rest"
        )
        for step in steps
        if step.spec is not None and step.spec.alone
    ]


def _order(step: StepModel) -> int:
    return step.spec.order if step.spec is not None else USER_ORDER
