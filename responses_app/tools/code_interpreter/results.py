"""Results of code: the outputs that the item shows, and the text and the pictures that the model reads."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Sequence
from typing import Final

from responses_app.protocol.items.server_tools.code_interpreter import CodeResult
from responses_app.sandbox.base import RunResult
from responses_app.tools.base import Json
from responses_app.tools.limits import ToolLimits
from responses_app.tools.outputs.truncation import truncate_output

NO_OUTPUT = "The code ran without output."
# Bytes of a notice about truncation.
NOTICE_BYTES = 100
_WRITTEN = "Files written: "
# Longer tracebacks are not recognized.
_MAX_TRACEBACK_CHARS: Final = 20_000
# A traceback at the end of a text. A message of several lines is recognized if these are indented.
_TRACEBACK: Final = re.compile(
    r"^Traceback \(most recent call last\):\n(?:[ \t].*\n)+([A-Za-z_][\w.]*)(?::.*)?(?:\n[ \t].*|\n)*\Z", re.MULTILINE
)


def code_result(result: RunResult, notices: Sequence[str], limits: ToolLimits) -> CodeResult:
    """Return the end of a code interpreter call. `notices` are sentences for the model in front of the output."""
    pictures = [_data_url(figure) for figure in result.figures]
    text = _text(result, limits.result_bytes)
    frame = [*notices, *_file_list(result)]
    read = _text(result, limits.result_prompt_bytes - sum(len(line.encode()) + 1 for line in frame))
    return CodeResult(
        _outputs(text, pictures, limits.result_bytes),
        model_text="\n".join([*notices, read or NO_OUTPUT, *_file_list(result)]),
        model_images=tuple(pictures),
    )


def has_written(text: str, path: str) -> bool:
    """Return whether `text`, which a model has read of a call, names the file `path` as written by the call."""
    return any(line.startswith(_WRITTEN) and f"{path} (" in line for line in text.split("\n"))


def raised_error(text: str) -> str:
    """Return the name of the exception of a traceback at the end of the text of a result; empty without one."""
    match = _TRACEBACK.search(text[-_MAX_TRACEBACK_CHARS:].partition(f"\n{_WRITTEN}")[0])
    return match[1].rpartition(".")[2] if match else ""


def _text(result: RunResult, max_bytes: int) -> str:
    """Return the printed text, the value of the last expression and the error, in the order of a notebook.

    A long text is cut in the middle: the model needs the value and the error more than the end of what was printed.
    """
    cut_notice = "[More output was dropped.]" if result.is_truncated else None
    end = _join(cut_notice, *(truncate_output(part, max_bytes // 4) for part in (result.value, result.error) if part))
    return _join(truncate_output(result.logs, max(max_bytes - len(end.encode("utf-8", "replace")) - NOTICE_BYTES, 0)), end)


def _join(*parts: str | None) -> str:
    return "\n".join(part.rstrip("\n") for part in parts if part)


def _outputs(text: str, pictures: Sequence[str], max_bytes: int) -> list[Json]:
    outputs: list[Json] = [{"type": "logs", "logs": text}] if text else []
    size = len(text)
    for picture in pictures:
        size += len(picture)
        if size > max_bytes:
            return [*outputs, {"type": "logs", "logs": "[More pictures were left out: the result is too long.]"}]
        outputs.append({"type": "image", "url": picture})
    return outputs


def _file_list(result: RunResult) -> list[str]:
    if not result.files:
        return []
    return [_WRITTEN + ", ".join(f"{file.path} ({file.size} bytes)" for file in result.files)]


def _data_url(png: bytes) -> str:
    return f"data:image/png;base64,{b64encode(png).decode()}"
