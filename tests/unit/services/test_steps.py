"""What is shown of the steps' parameters."""

from typing import Any, ClassVar

from pydantic import BaseModel

from services.steps import _schema


class Noted(BaseModel):
    """Parameters that note each time they are described."""

    described: ClassVar[list[str]] = []
    day: str

    @classmethod
    def model_json_schema(cls, *args: Any, **options: Any) -> dict[str, Any]:
        cls.described.append(cls.__name__)
        return super().model_json_schema(*args, **options)


def test_parameters_are_described_once_for_all_forms() -> None:
    shown = [_schema(Noted), _schema(Noted)]

    assert [list(one["properties"]) for one in shown if one] == [["day"], ["day"]]
    assert Noted.described == ["Noted"]
