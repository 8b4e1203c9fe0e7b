"""Checkpoint: the files of a model, in a folder or from the model hub."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from responses_app.dialects.families.detection import Detection, Evidence, detect

# Files whose presence is evidence of a family.
_EVIDENCE_FILES = ("tekken.json",)
_ADVICE = "correct the file in a folder, or choose another model or revision."
_MORE_TEMPLATES = "additional_chat_templates"


class Checkpoint:
    """Files of the model `source`, a folder or a hub name. Reading raises OSError, and ValueError for invalid JSON.

    `chat_template` replaces the chat templates of the model: the path of a file, or the name of one of the templates.
    """

    def __init__(self, source: str, chat_template: str | None = None) -> None:
        self.source = source
        self._chat_template = chat_template
        self._folder = Path(source) if Path(source).is_dir() else None

    @property
    def name(self) -> str:
        """Return the last part of the source; for a snapshot in the cache of the model hub, the name of the model."""
        path = Path(self.source.rstrip("/"))
        repository = path.parent.parent.name
        if path.parent.name == "snapshots" and repository.startswith("models--"):
            return repository.rpartition("--")[2]
        return path.name

    @cached_property
    def config(self) -> dict[str, Any]:
        """Return config.json, empty if missing."""
        return self.read_json("config.json")

    @cached_property
    def generation_config(self) -> dict[str, Any]:
        """Return generation_config.json, empty if missing."""
        return self.read_json("generation_config.json")

    @cached_property
    def tokenizer_config(self) -> dict[str, Any]:
        """Return tokenizer_config.json, empty if missing."""
        return self.read_json("tokenizer_config.json")

    def path(self, file: str) -> Path | None:
        """Return the path of a file, None if the checkpoint has no such file.

        Files of a folder are found without transformers, whose import takes seconds. Without a connection to the hub only
        config.json must be in the cache.
        """
        if self._folder is not None:
            return self._folder / file if (self._folder / file).is_file() else None
        from transformers.utils import cached_file

        cached_path = cached_file(
            self.source,
            file,
            _raise_exceptions_for_missing_entries=False,
            _raise_exceptions_for_connection_errors=file == "config.json",
        )
        return None if cached_path is None else Path(cached_path)

    def read_json(self, file: str) -> dict[str, Any]:
        """Return the JSON object of a file, empty if missing."""
        path = self.path(file)
        if path is None:
            return {}
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError(f"{file} of {self.source} is not a JSON object.")
        return content

    def chat_templates(self) -> dict[str, str]:
        """Return the chat templates by name; the usual one is `default`. Raises ValueError for a missing `chat_template`."""
        if self._chat_template is None:
            return self._stored_templates
        if (path := Path(self._chat_template)).is_file():
            try:
                return {"default": path.read_text(encoding="utf-8")}
            except UnicodeDecodeError:
                raise ValueError(f"chat_template={path} is not text in UTF-8: name a file with a Jinja template") from None
        if self._chat_template in self._stored_templates:
            return {"default": self._stored_templates[self._chat_template]}
        names = ", ".join(self._stored_templates) or "none"
        raise ValueError(
            f"chat_template={self._chat_template} is neither a file nor the name of a chat template of {self.source} ({names})."
        )

    @cached_property
    def _stored_templates(self) -> dict[str, str]:
        """Chat templates by name from the files of the model. Separate files replace tokenizer_config.json."""
        templates = _named_templates("tokenizer_config.json", self.tokenizer_config.get("chat_template"))
        templates |= _named_templates("chat_template.json", self.read_json("chat_template.json").get("chat_template"))
        if (path := self.path("chat_template.jinja")) is not None:
            templates["default"] = path.read_text(encoding="utf-8")
        templates |= {path.stem: path.read_text(encoding="utf-8") for path in self._more_templates()}
        return {name: template for name, template in templates.items() if template.strip()}

    def _more_templates(self) -> Iterator[Path]:
        """Yield the files of the folder of additional chat templates."""
        if self._folder is not None:
            yield from sorted((self._folder / _MORE_TEMPLATES).glob("*.jinja"))
            return
        from transformers.utils.hub import is_offline_mode, list_repo_templates

        names = {name.removesuffix(".jinja") for name in list_repo_templates(self.source, local_files_only=is_offline_mode())}
        yield from filter(None, (self.path(f"{_MORE_TEMPLATES}/{name}.jinja") for name in sorted(names)))

    def added_tokens(self) -> frozenset[str]:
        """Return the texts of the added tokens."""
        listed = self.tokenizer_config.get("added_tokens_decoder")
        if isinstance(listed, Mapping):
            return frozenset(_contents(list(listed.values())))
        path = self.path("tokenizer.json")
        return frozenset(_contents(_added_tokens(path.read_text(encoding="utf-8")))) if path is not None else frozenset()

    def detect_family(self, reasoning_parser: str | None = None, tool_parser: str | None = None) -> Detection:
        """Detect the model's family; the parsers that are named replace the detected ones. Raises ValueError for unknown names."""
        return detect(
            Evidence(
                name=self.name,
                model_type=str(self.config.get("model_type") or ""),
                architectures=tuple(map(str, self.config.get("architectures") or ())),
                templates=tuple(self.chat_templates().values()),
                added_tokens=self.added_tokens(),
                files=tuple(file for file in _EVIDENCE_FILES if self.path(file) is not None),
                reasoning_parser=reasoning_parser,
                tool_parser=tool_parser,
            )
        )


def _named_templates(file: str, value: object) -> dict[str, str]:
    """Return the templates of a `chat_template`: a text, an object of texts, or a list of objects with `name` and `template`.

    Raises ValueError for other values, which transformers refuses with an error that names no file.
    """
    if value is None or isinstance(value, str):
        return {"default": value} if value else {}
    if isinstance(value, Mapping):
        value = [{"name": name, "template": template} for name, template in value.items()]
    if not isinstance(value, list):
        raise ValueError(f"{file} has a chat_template that is neither a text nor a list: {_ADVICE}")
    templates = {}
    for number, entry in enumerate(value, 1):
        texts = [entry.get(key) for key in ("name", "template")] if isinstance(entry, Mapping) else []
        if not texts or not all(isinstance(text, str) for text in texts):
            raise ValueError(
                f"{file} has a chat_template whose entry {number} is no object with the texts 'name' and 'template': {_ADVICE}"
            )
        templates[str(texts[0])] = str(texts[1])
    return templates


def _added_tokens(text: str) -> list[Any]:
    """Return `added_tokens` of the text of a tokenizer.json. The vocabulary, which takes most of the time, is not parsed."""
    key = '"added_tokens"'
    start = text.find("[", text.find(key) + len(key)) if key in text else -1
    entries = json.JSONDecoder().raw_decode(text, start)[0] if start >= 0 else []
    return entries if isinstance(entries, list) else []


def _contents(tokens: list[Any]) -> list[str]:
    return [str(token["content"]) for token in tokens if isinstance(token, dict) and "content" in token]
