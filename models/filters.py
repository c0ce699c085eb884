"""The base class of filters: which things a list has, and a change of many concerns."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator


class Filter(BaseModel):
    """The fields of a filter: query parameters, options of a command, or fields of a form.

    An empty one admits all. What a request asks beside them, such as `limit`, is ignored.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def _given(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        return {name: value for name, value in values.items() if value not in ("", [""])}
