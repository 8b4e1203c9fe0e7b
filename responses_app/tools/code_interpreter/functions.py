"""Function of the code interpreter, as the model is offered it, and earlier calls, as the model reads them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from responses_app.tools.base import Json
from responses_app.tools.declaration import STRING, PastCall, define_function, dump, fields_or_status

# Types of the tool in requests.
TYPES: Final = frozenset({"code_interpreter"})
PYTHON: Final = "python"
CODE_KEY: Final = "code"
FUNCTIONS: Final[Mapping[str, Json]] = {
    PYTHON: define_function(
        PYTHON,
        "Runs Python code. Returns what the code prints, and the value of its last expression. Variables and files stay for later "
        "calls. numpy, pandas, matplotlib and pillow are installed; there is no internet access. A call may take 120 seconds. "
        "Figures of matplotlib are shown to the user. The user can download files in /mnt/data: to offer a file, link it as "
        "[name](sandbox:/mnt/data/name).",
        {CODE_KEY: STRING},
        [CODE_KEY],
        recipient="python",
    )
}


def _arguments(item: Json) -> str:
    return dump({CODE_KEY: item.get("code") or ""})


def _output(item: Json) -> str:
    return fields_or_status({**item, "outputs": [without_picture(output) for output in item.get("outputs") or ()]}, "outputs")


def without_picture(output: Json) -> Json:
    """Return an output without the picture, which is too long for a text."""
    return {"type": "image"} if output.get("type") == "image" else output


PAST_CALLS: Final = {"code_interpreter_call": PastCall(lambda _: PYTHON, _arguments, _output)}
