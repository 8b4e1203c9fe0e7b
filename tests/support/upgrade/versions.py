"""Versions whose data the upgrade test migrates: commit, folder and generated texts of each."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

SECRET_KEY: Final = "secret key of the upgrade test, of no other use"
API_KEY: Final = "sk-of-the-upgrade-test"
# Generated texts, in the order of the requests.
TEXTS: Final = (
    "<|channel|>final<|message|>Hello there!<|return|>",
    "<|channel|>analysis<|message|>They greet me.<|end|><|start|>assistant<|channel|>final<|message|>Hello again!<|return|>",
    '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"city":"Paris"}<|call|>',
)
SEARCH_TEXTS: Final = (
    '<|channel|>commentary to=functions.file_search <|constrain|>json<|message|>{"queries":["When do foxes hunt?"]}<|call|>',
    "<|channel|>final<|message|>They hunt at night【0†foxes.txt】.<|return|>",
)
MORE_TEXTS: Final = (*TEXTS, TEXTS[0], *SEARCH_TEXTS, TEXTS[1], TEXTS[1], TEXTS[0], TEXTS[0], TEXTS[1], TEXTS[0])


@dataclass(frozen=True)
class Version:
    """Released version, with the generated texts of the stored objects in the order of the requests."""

    name: str
    commit: str
    texts: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Folder with the data of the version."""
        return Path(__file__).parents[2] / "upgrade" / f"v{self.name.replace('.', '_')}"


VERSIONS: Final = (
    # The last commit before the tables of the log changed (migration 0008).
    Version("0.1.0", "7091a79a366819cdf0e9538ff15af1db383644f8", TEXTS),
    Version("0.2.0", "5257d939fb526ece335b8b65e528ddaf6dfd6f75", MORE_TEXTS),
)


def write_tape(folder: Path, texts: Iterable[str] = TEXTS, pauses: Iterable[float] = ()) -> str:
    """Write recordings of `texts` and return the URL of the engine. `pauses` has the seconds behind each token, by text."""
    from openai_harmony import load_harmony_encoding

    encoding = load_harmony_encoding("HarmonyGptOss")
    texts = tuple(texts)
    pauses = tuple(pauses) or (0.0,) * len(texts)
    lines = []
    for text, pause_s in zip(texts, pauses, strict=True):
        steps: list[dict[str, Any]] = []
        for token in encoding.encode(text, allowed_special="all"):
            steps += [{"tokens": [token]}, *([{"delay": pause_s}] if pause_s else [])]
        lines.append(json.dumps({"chunks": steps}))
    folder.mkdir(exist_ok=True)
    path = folder / "tape.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return f"script://{path}?loop=1"
