"""The actions of a computer that the client drives: what a model is told of them, and which of its words are one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

Json: TypeAlias = Mapping[str, Any]

_NUMBER: Final = {"type": "integer"}
_KEYS: Final = {"type": "array", "items": {"type": "string"}}
_BUTTONS: Final = ("left", "right", "wheel", "back", "forward")
_SPOT: Final = {"x": _NUMBER, "y": _NUMBER}
# type of an action -> its keys, with their schemas.
_ACTIONS: Final[Mapping[str, Json]] = {
    "click": {"button": {"type": "string", "enum": list(_BUTTONS)}, **_SPOT},
    "double_click": _SPOT,
    "drag": {
        "path": {
            "type": "array",
            "items": {"type": "object", "properties": _SPOT, "required": ["x", "y"], "additionalProperties": False},
        }
    },
    "keypress": {"keys": _KEYS},
    "move": _SPOT,
    "screenshot": {},
    "scroll": {**_SPOT, "scroll_x": _NUMBER, "scroll_y": _NUMBER},
    "type": {"text": {"type": "string"}},
    "wait": {},
}
# Held while the mouse does something; a client may give it back, no model is told of it.
_HELD: Final = frozenset({"click", "double_click", "drag", "move", "scroll"})


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _strings(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _path(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, dict) and set(one) == set(_SPOT) and _spots(one) for one in value)


def _spots(value: Json) -> bool:
    return all(map(_whole, value.values()))


_VALID: Final[Mapping[str, Callable[[object], bool]]] = {
    "button": lambda value: value in _BUTTONS,
    "path": _path,
    "keys": _strings,
    "text": lambda value: isinstance(value, str),
}


def _schema(kind: str, keys: Json) -> Json:
    properties = {"type": {"type": "string", "enum": [kind]}, **keys}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


ACTION: Final[Json] = {"anyOf": [_schema(kind, keys) for kind, keys in _ACTIONS.items()]}


def is_action(said: object) -> bool:
    """Whether this is one action, with all that belongs to it and nothing else."""
    kind = said.get("type") if isinstance(said, Mapping) else None
    if not isinstance(said, Mapping) or not isinstance(kind, str) or kind not in _ACTIONS:
        return False
    given = {key: value for key, value in said.items() if key != "type" and value is not None}
    optional = {"keys"} if kind in _HELD else set()
    return given.keys() - optional == _ACTIONS[kind].keys() and all(_VALID.get(key, _whole)(given[key]) for key in given)


def actions(said: Json) -> dict[str, Any] | None:
    """The body of a call of the tool `computer`, which does several things one after the other."""
    wanted = said.get("actions")
    if not isinstance(wanted, list) or not wanted or not all(map(is_action, wanted)):
        return None
    return {"actions": wanted, "pending_safety_checks": []}


def action(said: Json) -> dict[str, Any] | None:
    """The body of a call of the tool in its first form, `computer_use_preview`, which does one thing."""
    wanted = said.get("action")
    return {"action": wanted, "pending_safety_checks": []} if is_action(wanted) else None


def arguments(item: Json) -> Json:
    """The arguments of an earlier call."""
    return {key: item[key] for key in ("actions", "action") if item.get(key) is not None}


def output(item: Json) -> list[dict[str, Any]]:
    """What the client gave back: the screen as it is now."""
    return [{"type": "input_image", "image_url": item["output"]["image_url"], "detail": "auto"}]
