"""count_files: count the files of a folder, and fail if there are too many."""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, field_validator

import minutebook


class CountFiles(BaseModel):
    """The parameters of the step, checked when an action is saved."""

    model_config = ConfigDict(extra="forbid")

    folder: str
    most: int = 100

    @field_validator("folder")
    @classmethod
    def _is_absolute(cls, value: str) -> str:
        if not value.startswith("/"):
            raise ValueError("write an absolute path, such as /srv/inbox")
        return value


@minutebook.step("count_files", parameters=CountFiles)
def count_files(context: minutebook.StepContext) -> minutebook.StepResult:
    """Count the files of a folder; fail permanently if there are too many."""
    parameters = CountFiles.model_validate(context.parameters)
    folder = Path(parameters.folder)
    if not folder.is_dir():
        # It may be mounted in a minute: try again.
        raise minutebook.StepFailed(f"{folder} is not there")
    names = sorted(path.name for path in folder.iterdir())
    for done, name in enumerate(names):
        if context.should_stop():
            return minutebook.StepResult(f"stopped at {name}", minutebook.StepOutcome.PARTIAL)
        context.progress(done, len(names), message=name, phase="count")
    if len(names) > parameters.most:
        raise minutebook.StepFailed(f"{len(names)} files are too many", permanent=True)
    before = context.checkpoint.get("count")
    context.checkpoint["count"] = len(names)
    unit = context.small_app.settings.get("file_word", "files")
    context.logger.info("before there were %s", before)
    return minutebook.StepResult(f"{len(names)} {unit}", details={"count": len(names)})
