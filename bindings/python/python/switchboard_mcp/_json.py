"""JSON text of Python values."""

from __future__ import annotations

import json
from typing import Any


def dumps(value: object) -> str:
    """JSON text, also of dataclasses, enums, sets, dates, paths and pydantic models."""
    return json.dumps(value, default=_default, separators=(",", ":"))


def _default(value: object) -> object:
    import dataclasses
    import datetime
    import enum
    import os
    import uuid

    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        found: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        return found
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, os.PathLike):
        return os.fspath(value)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, uuid.UUID):
        return str(value)
    model_dump = getattr(value, "model_dump", None)
    if model_dump is not None:
        return model_dump(mode="json", by_alias=True)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")
