"""Actions of a computer driven by the client: schemas for the model, and validation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

Json: TypeAlias = Mapping[str, Any]

_NUMBER: Final = {"type": "integer"}
_KEYS: Final = {"type": "array", "items": {"type": "string"}}
_BUTTONS: Final = ("left", "right", "wheel", "back", "forward")
_SPOT: Final = {"x": _NUMBER, "y": _NUMBER}
# Type of an action -> keys with schemas.
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
# Keys held during a mouse action: optional in requests of clients, not offered to models.
_WITH_HELD_KEYS: Final = frozenset({"click", "double_click", "drag", "move", "scroll"})


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_string_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)


def _is_path(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(entry, dict) and set(entry) == set(_SPOT) and _is_point(entry) for entry in value
    )


def _is_point(value: Json) -> bool:
    return all(map(_is_integer, value.values()))


_VALID: Final[Mapping[str, Callable[[object], bool]]] = {
    "button": lambda value: value in _BUTTONS,
    "path": _is_path,
    "keys": _is_string_list,
    "text": lambda value: isinstance(value, str),
}


def _schema(kind: str, keys: Json) -> Json:
    properties = {"type": {"type": "string", "enum": [kind]}, **keys}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


ACTION: Final[Json] = {"anyOf": [_schema(kind, keys) for kind, keys in _ACTIONS.items()]}


def is_action(value: object) -> bool:
    """Return True for a valid action without unknown keys."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    if not isinstance(value, Mapping) or not isinstance(kind, str) or kind not in _ACTIONS:
        return False
    values = {key: entry for key, entry in value.items() if key != "type" and entry is not None}
    optional = {"keys"} if kind in _WITH_HELD_KEYS else set()
    return values.keys() - optional == _ACTIONS[kind].keys() and all(
        _VALID.get(key, _is_integer)(values[key]) for key in values
    )


def actions(value: Json) -> dict[str, Any] | None:
    """Return the body of a call of the tool `computer`, which has several actions; None if invalid."""
    computer_actions = value.get("actions")
    if not isinstance(computer_actions, list) or not computer_actions or not all(map(is_action, computer_actions)):
        return None
    return {"actions": computer_actions, "pending_safety_checks": []}


def action(value: Json) -> dict[str, Any] | None:
    """Return the body of a call of the tool `computer_use_preview`, which has a single action; None if invalid."""
    computer_action = value.get("action")
    return {"action": computer_action, "pending_safety_checks": []} if is_action(computer_action) else None


def arguments(item: Json) -> Json:
    """Return the arguments of an earlier call."""
    return {key: item[key] for key in ("actions", "action") if item.get(key) is not None}


def output(item: Json) -> list[dict[str, Any]]:
    """Return the screenshot sent by the client, as content parts."""
    return [{"type": "input_image", "image_url": item["output"]["image_url"], "detail": "auto"}]
