"""The JSON Schema of a function's parameters, from its type hints, defaults and docstring."""

from __future__ import annotations

import collections.abc
import dataclasses
import datetime
import enum
import inspect
import pathlib
import re
import types
import typing
import uuid
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

Schema: TypeAlias = "dict[str, Any]"


class Parsed(NamedTuple):
    """The schema of a type, and how a value of it is made from JSON."""

    schema: Schema
    convert: Callable[[Any], Any]


class Described(NamedTuple):
    """A function as a tool."""

    description: str
    schema: Schema
    #: Makes keyword arguments from the arguments of a call.
    bind: Callable[[dict[str, Any]], dict[str, Any]]


def describe(function: Callable[..., Any], schema: Schema | None = None) -> Described:
    """Describes a function. With a schema, the arguments are passed as they are."""
    description, remarks = _docstring(function)
    if schema is not None:
        return Described(description, schema, _same)
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        hints = typing.get_type_hints(target, include_extras=True)
    except NameError as error:
        raise TypeError(f"cannot resolve the type hints: {error}; pass schema=") from None
    properties: dict[str, Any] = {}
    required: list[str] = []
    converters: dict[str, Callable[[Any], Any]] = {}
    takes_more = False
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_more = True
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError(f"parameter {name} cannot be passed by name; pass schema=")
        try:
            parsed = _parse(hints.get(name, Any), ())
        except TypeError as error:
            raise TypeError(f"parameter {name}: {error}; pass schema=") from None
        property_ = dict(parsed.schema)
        if name in remarks:
            property_.setdefault("description", remarks[name])
        if parameter.default is parameter.empty:
            required.append(name)
        else:
            _set_default(property_, parameter.default)
        properties[name] = property_
        converters[name] = parsed.convert
    schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    if not takes_more:
        schema["additionalProperties"] = False

    def bind(arguments: dict[str, Any]) -> dict[str, Any]:
        return {name: converters.get(name, _same)(value) for name, value in arguments.items()}

    return Described(description, schema, bind)


def _same(value: Any) -> Any:
    return value


_PLAIN: dict[Any, Parsed] = {
    str: Parsed({"type": "string"}, _same),
    int: Parsed({"type": "integer"}, _same),
    float: Parsed({"type": "number"}, float),
    bool: Parsed({"type": "boolean"}, _same),
    None: Parsed({"type": "null"}, _same),
    type(None): Parsed({"type": "null"}, _same),
    Any: Parsed({}, _same),
    object: Parsed({}, _same),
    list: Parsed({"type": "array"}, _same),
    dict: Parsed({"type": "object"}, _same),
    pathlib.Path: Parsed({"type": "string"}, pathlib.Path),
    uuid.UUID: Parsed({"type": "string", "format": "uuid"}, uuid.UUID),
    datetime.datetime: Parsed({"type": "string", "format": "date-time"}, datetime.datetime.fromisoformat),
    datetime.date: Parsed({"type": "string", "format": "date"}, datetime.date.fromisoformat),
}

_SEQUENCES: dict[Any, Callable[[Any], Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    collections.abc.Sequence: list,
    collections.abc.Iterable: list,
    collections.abc.Set: frozenset,
}


def _parse(hint: Any, within: tuple[Any, ...]) -> Parsed:
    """Parses a type hint; `within` are the classes that it is a part of."""
    if isinstance(hint, collections.abc.Hashable) and hint in _PLAIN:
        return _PLAIN[hint]
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return _annotated(_parse(arguments[0], within), arguments[1:])
    if origin in (typing.Union, types.UnionType):
        return _union([_parse(argument, within) for argument in arguments])
    if origin is typing.Literal:
        return Parsed({"enum": list(arguments)}, _same)
    if origin in _SEQUENCES:
        return _sequence(_parse(arguments[0], within), origin)
    if origin is tuple:
        return _tuple(arguments, within)
    if origin in (dict, collections.abc.Mapping, collections.abc.MutableMapping):
        return _mapping(_parse(arguments[1], within))
    if isinstance(hint, typing.NewType):
        return _parse(hint.__supertype__, within)
    if isinstance(hint, type):
        return _class(hint, within)
    raise TypeError(f"no schema for the type {hint!r}")


def _annotated(parsed: Parsed, extras: tuple[Any, ...]) -> Parsed:
    schema = dict(parsed.schema)
    for extra in extras:
        # A text, or an object such as pydantic's `Field`.
        description = extra if isinstance(extra, str) else getattr(extra, "description", None)
        if isinstance(description, str):
            schema["description"] = description
    return Parsed(schema, parsed.convert)


def _union(parts: list[Parsed]) -> Parsed:
    def convert(value: Any) -> Any:
        for part in parts:
            if _accepts(part.schema, value):
                try:
                    return part.convert(value)
                except (TypeError, ValueError, KeyError):
                    continue
        return value

    return Parsed({"anyOf": [part.schema for part in parts]}, convert)


_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
    "array": (list,),
    "object": (dict,),
}


def _accepts(schema: Schema, value: Any) -> bool:
    """Whether a part of a union can be meant by a value."""
    if "enum" in schema and value not in schema["enum"]:
        return False
    kind = schema.get("type")
    if kind is None:
        return True
    if isinstance(value, bool) and kind != "boolean":
        return False
    return isinstance(value, _TYPES[kind])


def _sequence(item: Parsed, origin: Any) -> Parsed:
    schema: Schema = {"type": "array", "items": item.schema}
    make = _SEQUENCES[origin]
    if make is not list:
        schema["uniqueItems"] = True

    def convert(values: list[Any]) -> Any:
        return make(item.convert(value) for value in values)

    return Parsed(schema, convert)


def _tuple(arguments: tuple[Any, ...], within: tuple[Any, ...]) -> Parsed:
    if len(arguments) == 2 and arguments[1] is ...:
        item = _parse(arguments[0], within)

        def convert_all(values: list[Any]) -> tuple[Any, ...]:
            return tuple(map(item.convert, values))

        return Parsed({"type": "array", "items": item.schema}, convert_all)
    items = [_parse(argument, within) for argument in arguments]
    schema: Schema = {
        "type": "array",
        "prefixItems": [item.schema for item in items],
        "minItems": len(items),
        "maxItems": len(items),
    }

    def convert(values: list[Any]) -> tuple[Any, ...]:
        return tuple(item.convert(value) for item, value in zip(items, values, strict=True))

    return Parsed(schema, convert)


def _mapping(item: Parsed) -> Parsed:
    schema: Schema = {"type": "object", "additionalProperties": item.schema}

    def convert(values: dict[str, Any]) -> dict[str, Any]:
        return {name: item.convert(value) for name, value in values.items()}

    return Parsed(schema, convert)


def _class(hint: Any, within: tuple[Any, ...]) -> Parsed:
    if hint in within:
        raise TypeError(f"{hint.__name__} contains itself")
    within = (*within, hint)
    if issubclass(hint, enum.Enum):
        values = [member.value for member in hint]
        schema: Schema = {"enum": values}
        if all(isinstance(value, str) for value in values):
            schema["type"] = "string"
        return Parsed(schema, hint)
    if hasattr(hint, "model_json_schema"):
        return Parsed(hint.model_json_schema(), hint.model_validate)
    if dataclasses.is_dataclass(hint):
        return _dataclass(hint, within)
    if typing.is_typeddict(hint):
        hints = typing.get_type_hints(hint, include_extras=True)
        parsed = {name: _parse(_item(part), within) for name, part in hints.items()}
        return _object(parsed, sorted(hint.__required_keys__), dict)
    raise TypeError(f"no schema for the type {hint.__name__}")


def _item(hint: Any) -> Any:
    """The type of a key that a `TypedDict` marks as required or not."""
    marks = [getattr(typing, name, None) for name in ("Required", "NotRequired", "ReadOnly")]
    if typing.get_origin(hint) in marks and typing.get_origin(hint) is not None:
        return _item(typing.get_args(hint)[0])
    return hint


def _dataclass(hint: Any, within: tuple[Any, ...]) -> Parsed:
    hints = typing.get_type_hints(hint, include_extras=True)
    parsed: dict[str, Parsed] = {}
    required: list[str] = []
    for field in dataclasses.fields(hint):
        if not field.init:
            continue
        part = _parse(hints[field.name], within)
        schema = dict(part.schema)
        if field.default is not dataclasses.MISSING:
            _set_default(schema, field.default)
        elif field.default_factory is dataclasses.MISSING:
            required.append(field.name)
        parsed[field.name] = Parsed(schema, part.convert)
    return _object(parsed, required, hint)


def _object(parsed: dict[str, Parsed], required: list[str], make: Callable[..., Any]) -> Parsed:
    schema: Schema = {
        "type": "object",
        "properties": {name: part.schema for name, part in parsed.items()},
        "additionalProperties": False,
    }
    if required:
        schema["required"] = required

    def convert(values: dict[str, Any]) -> Any:
        return make(**{name: parsed[name].convert(value) for name, value in values.items()})

    return Parsed(schema, convert)


def _set_default(schema: Schema, default: Any) -> None:
    """Notes a default that JSON can express."""
    if isinstance(default, enum.Enum):
        default = default.value
    if default is None or isinstance(default, (str, int, float, bool, list, dict)):
        schema["default"] = default


_SECTION = re.compile(r"^(Args|Arguments|Parameters):\s*$", re.MULTILINE)
_ARGUMENT = re.compile(r"^\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?:\s*(.+)$")
_PARAM = re.compile(r"^\s*:param\s+(?:[\w\[\], |]+\s+)?(\w+):\s*(.+)$", re.MULTILINE)


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The description, and what the docstring says about each parameter."""
    text = inspect.getdoc(function) or ""
    remarks = {match[1]: match[2].strip() for match in _PARAM.finditer(text)}
    text = _PARAM.sub("", text)
    section = _SECTION.search(text)
    if section is None:
        return text.strip(), remarks
    rest: list[str] = []
    name: str | None = None
    lines = iter(text[section.end() :].strip("\n").splitlines())
    for line in lines:
        if line and not line[0].isspace():
            rest = [line, *lines]
            break
        match = _ARGUMENT.match(line)
        if match:
            name = match[1]
            remarks[name] = match[2].strip()
        elif name is not None and line.strip():
            remarks[name] += " " + line.strip()
    description = text[: section.start()].strip()
    if rest:
        description += "\n\n" + "\n".join(rest)
    return description.strip(), remarks
