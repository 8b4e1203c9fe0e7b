"""Tape of the chat tests, with recordings selected by the last word of a message, and a signed-in visitor of the chat page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

from tests.support import plain_http
from tests.support.server.serve_command import Server
from tests.support.web.browser import LIMIT_MS, PageErrors

FINAL = "<|channel|>final<|message|>"
THOUGHT = "<|channel|>analysis<|message|>They greet me, so I greet them.<|end|><|start|>assistant"
HOSTILE = """# A title

Some **bold**, `code` and [a link](https://example.org/x), [a trap](javascript:alert(1)).

- one
- two

| a | b |
|---|---|
| 1 | 2 |

```python
print("<b>hi</b>")
```

<script>document.title = "owned"</script><img src=x onerror="document.title='owned'">"""
# Place in a generated text at which the answer pauses within `held`.
HOLD = "\0"
SLOWLY = " ".join(f"word{number}" for number in range(60))
HELD = SLOWLY.replace(" word10 ", f"{HOLD} word10 ")
BROODING = f"<|channel|>analysis<|message|>{HELD}<|end|><|start|>assistant"
GRADUAL = f"# A heading\n\nSome **bold** text.\n\n```python\nprint(1)\n```\n\n{HELD}"
FORMULAS = f"A sum:\n\n$$\\sum_{{i=1}}^n \\frac{{1}}{{i^2}}$$\n\nand $x^2$ in a line.\n\n```python\nprint(sum(range(9)))\n```\n\n{SLOWLY}"
CALL = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"location":"Oslo"}<|call|>'
REMOTE_CALL = '<|channel|>commentary to=functions.demo__get_weather <|constrain|>json<|message|>{"city":"Oslo"}<|call|>'
PICTURE_CALL = "<|channel|>commentary to=functions.files__picture <|constrain|>json<|message|>{}<|call|>"
# Recordings: the end of the last message, the generated text, and the pause in seconds after each token (below 0: one chunk).
LINES = [
    ("greetings", f"{THOUGHT}{FINAL}Hello there!<|return|>", 0.02),
    ("markdown", f"{FINAL}{HOSTILE}<|return|>", 0.0),
    ("slowly", f"{FINAL}{HELD}<|return|>", 0.05),
    ("broodingly", f"{BROODING}{FINAL}Never mind.<|return|>", 0.05),
    ("broodingly", f"{BROODING}{FINAL}Never mind.<|return|>", 0.05),
    (" greetings", f"{FINAL}Hello again!<|return|>", 0.0),
    (" twice", f"{FINAL}The only answer.<|return|>", 0.0),
    ("twice", f"{FINAL}The first answer.<|return|>", 0.0),
    ("twice", f"{FINAL}The second answer.<|return|>", 0.0),
    ("twice", f"{FINAL}The third answer.<|return|>", 0.0),
    ("weatherwise", CALL, 0.0),
    ('"}', f"{FINAL}It is fine in Oslo.<|return|>", 0.0),
    ("handmade", CALL, 0.0),
    ("snowfall", f"{FINAL}So it snows.<|return|>", 0.0),
    ("oddly", f"{FINAL}\x1b[31mred\x1b[0m \u202egnp.exe\u202c {'x' * 3000}<|return|>", 0.0),
    ("brokenly", "<|channel|>musings<|message|>Well.<|return|>", 0.0),
    ("remotely", REMOTE_CALL, 0.0),
    ("}", f"{FINAL}It is mild in Oslo.<|return|>", 0.0),
    (" unusual", f"{FINAL}Then I do not look.<|return|>", 0.0),
    ("hugely", CALL.replace("Oslo", "word " * 20_000), -1),
    ("mathematically", f"{FINAL}{FORMULAS}<|return|>", 0.0),
    ("gradually", f"{FINAL}{GRADUAL}<|return|>", 0.05),
    ("wordlessly", "<|channel|>analysis<|message|>There is nothing to say.<|return|>", 0.0),
    ("pensively", f"{THOUGHT}{FINAL}{HELD}<|return|>", 0.1),
    ("pictorially", PICTURE_CALL, 0.0),
    # The end of the notice that stands for a picture.
    (" the user alone.]", f"{FINAL}A red pixel.<|return|>", 0.0),
    ("dreamily", f"{BROODING}{FINAL}{SLOWLY}<|return|>", 0.05),
    ("structurally", f'{FINAL}{{"name":"Ada","age":36}}<|return|>', 0.0),
    ("endlessly", f"{FINAL}{HELD}<|return|>", 0.0),
]


def tape(folder: Path) -> str:
    """Write the tape of `LINES` and a failing recording. Return the URL of the engine."""
    from openai_harmony import load_harmony_encoding

    encoding = load_harmony_encoding("HarmonyGptOss")
    gate = _gate(folder)
    gate.touch()

    def line(word: str, text: str, pause: float) -> dict[str, Any]:
        steps: list[dict[str, Any]] = []
        for part in text.split(HOLD):
            ids = encoding.encode(part, allowed_special="all")
            # A single chunk, or a chunk per token.
            for tokens in [ids] if pause < 0 else [[token] for token in ids]:
                steps += [{"tokens": tokens}, *([{"delay": pause}] if pause > 0 else [])]
            steps.append({"until": str(gate)})
        return {"match": matched(word), "chunks": steps[:-1]}

    def matched(word: str) -> list[int]:
        ids: list[int] = encoding.encode(f"{word}<|end|><|start|>assistant", allowed_special="all")
        return ids

    lines = [line(*entry) for entry in LINES]
    lines.append({"match": matched("breakage"), "chunks": [{"fault": "bad", "message": "the model is out of sorts"}]})
    path = folder / "chat.jsonl"
    path.write_text("\n".join(json.dumps(entry) for entry in lines) + "\n")
    return f"script://{path}?loop=1"


def matching_tape(folder: Path, texts: Mapping[str, Sequence[str]], pauses: Mapping[str, float] | None = None) -> str:
    """Write recordings of the generated texts by the end of the message that each answers. Return the URL of the engine.

    `pauses` has the seconds behind each token of the answers to a message, which pause at HOLD within `held`; other answers come as
    one chunk. `FOLDER` in a text stands for `folder`. All prompts of a conversation contain its message: a used recording moves to
    the end, so that each is used in turn.
    """
    from openai_harmony import load_harmony_encoding

    encoding = load_harmony_encoding("HarmonyGptOss")
    path, gate = folder / "tools.jsonl", _gate(folder)
    gate.touch()

    def ids(text: str) -> list[int]:
        token_ids: list[int] = encoding.encode(text.replace("FOLDER", str(folder)), allowed_special="all")
        return token_ids

    def chunks(text: str, pause: float | None) -> list[dict[str, Any]]:
        if pause is None:
            return [{"tokens": ids(text)}]
        parts = [[step for token in ids(part) for step in ({"tokens": [token]}, {"delay": pause})] for part in text.split(HOLD)]
        return [step for part in parts for step in (*part, {"until": str(gate)})][:-1]

    lines = [
        {"match": ids(f"{message}<|end|>"), "chunks": chunks(text, (pauses or {}).get(message))}
        for message, generated in texts.items()
        for text in generated
    ]
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return f"script://{path}?loop=1"


def _gate(folder: Path) -> Path:
    return folder / "released"


@contextmanager
def held(server: Server) -> Iterator[Callable[[], None]]:
    """Let answers of the server, whose tape is beside its data folder, pause at HOLD. Yields the function that releases them."""
    gate = _gate(server.folder.parent)
    gate.unlink()
    try:
        yield gate.touch
    finally:
        gate.touch()


class Visitor:
    """Signed-in visitor of the chat page in a browser context, with all browser errors recorded."""

    def __init__(self, server: Server, browser: Browser, **context: Any) -> None:
        self.server = server
        self.page: Page = browser.new_context(**context).new_page()
        self.page.set_default_timeout(LIMIT_MS)
        expect.set_options(timeout=LIMIT_MS)
        self.errors = PageErrors(self.page)
        self.page.goto(f"{server.url}/chat")

    @property
    def field(self) -> Locator:
        """Return the message field."""
        return self.page.get_by_label("Message", exact=True)

    @property
    def answers(self) -> Locator:
        """Return the articles of all responses."""
        return self.page.locator("article.model")

    @property
    def last(self) -> Locator:
        """Return the article of the last response."""
        return self.answers.last

    def press_enter(self, text: str) -> int:
        """Type a message and press Enter, once the conversation has loaded. Return the number of responses before."""
        expect(self.page.locator("form.composer .send")).to_be_enabled()
        count = self.answers.count()
        self.field.fill(text)
        self.field.press("Enter")
        return count

    def send(self, text: str) -> None:
        """Send a message, and wait for the article of the response."""
        before = self.press_enter(text)
        # Until then, `last` is the previous response.
        expect(self.answers.nth(before)).to_be_attached()

    def wait_for_end(self) -> None:
        """Wait for the end of the last response."""
        expect(self.last).to_have_attribute("aria-busy", "false")

    def send_and_wait(self, text: str, words: str) -> None:
        """Send a message and wait for the end of a response with `words`."""
        self.send(text)
        expect(self.last).to_contain_text(words)
        self.wait_for_end()

    def choose(self, *names: str, run_automatically: bool = True) -> None:
        """Enable demo tools."""
        settings = self.page.locator("details.tool-menu > summary")
        settings.click()
        for name in names:
            self.page.get_by_label(name.capitalize(), exact=True).check()
        self.page.get_by_label("Run automatically").set_checked(run_automatically)
        settings.click()

    def use_server(self, label: str, *, chosen: bool = True) -> None:
        """Switch an MCP server of the operator on or off."""
        settings = self.page.locator("details.tool-menu > summary")
        settings.click()
        self.page.get_by_label(label, exact=True).set_checked(chosen)
        settings.click()

    @property
    def uid(self) -> str:
        """Return the id of the last response, from the URL."""
        return self.page.url.rpartition("/")[2]

    def fetched(self, uid: str) -> dict[str, Any]:
        """Return the response from the API."""
        headers = {"Authorization": f"Bearer {self.server.key}"}
        response: dict[str, Any] = plain_http.get(f"{self.server.url}/v1/responses/{uid}", headers=headers, timeout=180).json()
        return response

    def close(self) -> None:
        """Close the browser context."""
        self.page.context.close()


# Scripts that return texts with a contrast below 4.5 (WCAG 2.2, 1.4.3) and controls without an accessible name.
LOW_CONTRAST = """() => {
  const channel = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([red, green, blue]) => 0.2126 * channel(red) + 0.7152 * channel(green) + 0.0722 * channel(blue);
  const ground = (element) => {
    for (; element; element = element.parentElement) {
      const found = parts(getComputedStyle(element).backgroundColor);
      if (found.length < 4 || found[3] > 0) return found;
    }
    return [255, 255, 255];
  };
  const poor = [];
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    if (!own || !element.checkVisibility() || element.closest(":disabled, option, noscript, .visually-hidden, .skip")) continue;
    const pair = [light(parts(getComputedStyle(element).color)), light(ground(element))].sort((a, b) => b - a);
    const contrast = (pair[0] + 0.05) / (pair[1] + 0.05);
    if (contrast < 4.5) poor.push(`${element.tagName}.${element.className} ${contrast.toFixed(2)}`);
  }
  return poor;
}"""
UNNAMED_CONTROLS = """() => [...document.querySelectorAll(
  "input:not([type=hidden]), button, select, textarea, a[href], summary, img:not([alt=''])")]
  .filter((control) => !(control.labels?.length || control.ariaLabel || control.alt || control.textContent.trim()))
  .map((control) => control.outerHTML)"""
