"""The steps of an action with their parameters, in their fixed order."""

from collections.abc import Iterable, Iterator, Mapping
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

from models.action.parameters import (
    CeleryTaskParameters,
    JobParameters,
    NoParameters,
    PublishParameters,
    RefreshParameters,
    SendEmailParameters,
)
from models.action.unavailable_steps import LATER_STEPS
from models.document import as_object
from models.parsing import Reading, reading_of
from models.problems import (
    line_error,
    line_errors,
    no_parameters,
    raise_all,
    unknown_keys,
    unknown_name,
)
from models.step_spec import StepSpec, why_unknown
from models.values import flag_of

OWN_STEP = "; name the module of a step of your own in SCHED_STEP_MODULES"
EVERYTHING = {"data": True, "design": True, "permissions": True}

BUILT_IN_STEPS: Mapping[str, StepSpec] = {
    spec.name: spec
    for spec in (
        StepSpec("refresh", RefreshParameters, is_heavy=True, order=10),
        StepSpec("publish", PublishParameters, is_heavy=True, order=20, if_true=EVERYTHING),
        StepSpec("send_email", SendEmailParameters, needs_recipients=True, order=30),
        StepSpec("send_execsum", NoParameters, needs_recipients=True, order=40),
        StepSpec("maintenance", NoParameters, order=50),
        StepSpec("celery_task", CeleryTaskParameters, alone=True, order=60),
        StepSpec("job", JobParameters, alone=True, order=60),
    )
}


class StepModel(BaseModel):
    """One step of an action: its name, and its parameters as stored.

    `written` is `true` if the document had no parameters; `parameters` holds what `true` stands
    for. `spec` is None for an unknown step.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    name: str
    written: bool | dict[str, Any]
    parameters: dict[str, Any]
    spec: StepSpec | None = None


class OperationModel(BaseModel):
    """The steps of an action in the order in which they run.

    Read from the `operations` object, without false steps; at least one must remain. The order is
    refresh, publish, send_email, send_execsum, maintenance, then user-defined steps as in the
    document.
    """

    model_config = ConfigDict(frozen=True)

    steps: tuple[StepModel, ...]

    @property
    def is_heavy(self) -> bool:
        """Whether one of the known steps is heavy."""
        return any(step.spec is not None and step.spec.is_heavy for step in self.steps)

    @property
    def sending(self) -> tuple[str, ...]:
        """The names of the known steps that need recipients."""
        return tuple(s.name for s in self.steps if s.spec is not None and s.spec.needs_recipients)

    def step(self, name: str) -> StepModel | None:
        """Return the step `name`, or None if the action does not have it."""
        return next((step for step in self.steps if step.name == name), None)

    @model_validator(mode="before")
    @classmethod
    def _read(cls, value: Any, info: ValidationInfo) -> Any:
        reading = reading_of(info)
        raw = as_object(value, '{"refresh": true}')
        faults, steps = _steps_of(raw, reading)
        if not raw or not (steps or faults):
            raise ValueError('has no step; write at least one, such as {"refresh": true}')
        if not reading.tolerant:
            faults += _not_alone(steps)
        raise_all(cls.__name__, faults)
        return {"steps": sorted(steps, key=_order)}

    @model_serializer
    def _written(self) -> dict[str, Any]:
        return {step.name: step.written for step in self.steps}


def known_steps(user_steps: Mapping[str, StepSpec]) -> dict[str, StepSpec]:
    """Return all steps by name; a user-defined step cannot replace a built-in one."""
    return {**user_steps, **BUILT_IN_STEPS}


def available(names: Iterable[str]) -> list[str]:
    """Return the names of steps that this release can run."""
    return [name for name in names if name not in LATER_STEPS]


def sending_steps(operations: object, user_steps: Mapping[str, StepSpec]) -> tuple[str, ...]:
    """Return the steps of an unchecked `operations` object that need recipients."""
    if not isinstance(operations, Mapping):
        return ()
    known = known_steps(user_steps)
    return tuple(
        name
        for name, value in operations.items()
        if name in known and known[name].needs_recipients and flag_of(value) is not False
    )


def _steps_of(
    raw: Mapping[str, Any], reading: Reading
) -> tuple[list[InitErrorDetails], list[StepModel]]:
    faults: list[InitErrorDetails] = []
    steps: list[StepModel] = []
    for name, value in raw.items():
        try:
            steps += _read_step(name, value, reading)
        except ValidationError as error:
            faults += line_errors(error, under=(name,))
        except ValueError as error:
            faults.append(line_error((name,), value, str(error)))
    return faults, steps


def _read_step(name: str, value: object, reading: Reading) -> Iterator[StepModel]:
    """Yield the step, or nothing if it is false; raises ValueError or ValidationError."""
    known = known_steps(reading.steps)
    flag = flag_of(value)
    spec = known.get(name)
    if spec is None and not reading.tolerant:
        hint = why_unknown(reading.steps)
        raise ValueError(unknown_name("step", name, available(known), OWN_STEP) + hint)
    if flag is False:
        return
    if flag is None and not isinstance(value, Mapping):
        raise ValueError(no_parameters(spec.parameters if spec else NoParameters))
    raw = as_object(value) if flag is None else dict(spec.if_true if spec else {})
    if spec is None:
        yield StepModel(name=name, written=flag or raw, parameters=raw)
        return
    checked = _checked(spec, raw, reading)
    yield StepModel(name=name, written=flag or checked, parameters=checked, spec=spec)


def _checked(spec: StepSpec, raw: dict[str, Any], reading: Reading) -> dict[str, Any]:
    """Return the parameters to store: normalised for built-in steps, else as written."""
    faults = [] if reading.tolerant else unknown_keys(spec.parameters, raw)
    if spec.name in BUILT_IN_STEPS:
        faults = []
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
    if spec.name not in BUILT_IN_STEPS:
        return raw
    return model.model_dump(mode="json", exclude_unset=True, by_alias=True)


def _not_alone(steps: list[StepModel]) -> list[InitErrorDetails]:
    if len(steps) < 2:
        return []
    return [
        line_error((step.name,), step.written, "stands alone; make another action for the rest")
        for step in steps
        if step.spec is not None and step.spec.alone
    ]


def _order(step: StepModel) -> int:
    return step.spec.order if step.spec is not None else StepSpec("", NoParameters).order
