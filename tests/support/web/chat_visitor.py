"""What the tests of the chat page share: a tape whose lines are chosen by the last word of a message, and a browser that is signed in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.server.serve_command import Server
from tests.support.web.browser import LIMIT_MS, Troubles

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
SLOWLY = " ".join(f"word{number}" for number in range(60))
BROODING = f"<|channel|>analysis<|message|>{SLOWLY}<|end|><|start|>assistant"
GRADUAL = f"# A heading\n\nSome **bold** text.\n\n```python\nprint(1)\n```\n\n{SLOWLY}"
CALL = '<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>{"location":"Oslo"}<|call|>'
# One generation each: how the last message ends, what is said, and the pause behind each token; below 0 all is said at once.
LINES = [
    ("greetings", f"{THOUGHT}{FINAL}Hello there!<|return|>", 0.02),
    ("markdown", f"{FINAL}{HOSTILE}<|return|>", 0.0),
    ("slowly", f"{FINAL}{SLOWLY}<|return|>", 0.05),
    ("broodingly", f"{BROODING}{FINAL}Never mind.<|return|>", 0.3),
    ("broodingly", f"{BROODING}{FINAL}Never mind.<|return|>", 0.3),
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
    ("hugely", CALL.replace("Oslo", "word " * 60_000), -1),
    ("gradually", f"{FINAL}{GRADUAL}<|return|>", 0.05),
    ("wordlessly", "<|channel|>analysis<|message|>There is nothing to say.<|return|>", 0.0),
    ("pensively", f"{THOUGHT}{FINAL}{SLOWLY}<|return|>", 0.1),
    ("endlessly", f"{FINAL}{SLOWLY}<|return|>", 0.5),
]


def tape(folder: Path) -> str:
    """The URL of an engine with these lines, and one that breaks."""
    from openai_harmony import load_harmony_encoding

    encoding = load_harmony_encoding("HarmonyGptOss")

    def line(word: str, said: str, pause: float) -> dict[str, Any]:
        steps: list[dict[str, Any]] = []
        ids = encoding.encode(said, allowed_special="all")
        # All at once, or one by one.
        for tokens in [ids] if pause < 0 else [[token] for token in ids]:
            steps += [{"tokens": tokens}, *([{"delay": pause}] if pause > 0 else [])]
        return {"match": matched(word), "chunks": steps}

    def matched(word: str) -> list[int]:
        ids: list[int] = encoding.encode(f"{word}<|end|><|start|>assistant", allowed_special="all")
        return ids

    lines = [line(*one) for one in LINES]
    lines.append({"match": matched("breakage"), "chunks": [{"fault": "bad", "message": "the model is out of sorts"}]})
    path = folder / "chat.jsonl"
    path.write_text("\n".join(json.dumps(one) for one in lines) + "\n")
    return f"script://{path}?loop=1"


class Visitor:
    """A person in a browser of their own, signed in, who must see no complaint of it."""

    def __init__(self, server: Server, browser: Browser, **context: Any) -> None:
        self.server = server
        self.page: Page = browser.new_context(**context).new_page()
        self.page.set_default_timeout(LIMIT_MS)
        expect.set_options(timeout=LIMIT_MS)
        self.troubles = Troubles(self.page)
        self.page.goto(f"{server.url}/chat")

    @property
    def field(self) -> Locator:
        return self.page.get_by_label("Message", exact=True)

    @property
    def answers(self) -> Locator:
        return self.page.locator("article.model")

    @property
    def last(self) -> Locator:
        return self.answers.last

    def say(self, text: str) -> None:
        """Type and press Enter."""
        self.field.fill(text)
        self.field.press("Enter")

    def ended(self) -> None:
        """The last answer has come to its end."""
        expect(self.last).to_have_attribute("aria-busy", "false")

    def hears(self, text: str, words: str) -> None:
        """Say something and wait for the answer with these words."""
        self.say(text)
        expect(self.last).to_contain_text(words)
        self.ended()

    def choose(self, *names: str, by_itself: bool = True) -> None:
        """Switch demo tools on."""
        settings = self.page.locator("details.settings > summary")
        settings.click()
        for name in names:
            self.page.get_by_label(name.capitalize(), exact=True).check()
        self.page.get_by_label("Run automatically").set_checked(by_itself)
        settings.click()

    @property
    def uid(self) -> str:
        return self.page.url.rpartition("/")[2]

    def fetched(self, uid: str) -> dict[str, Any]:
        """The response, as any client of the API sees it."""
        import httpx2

        headers = {"Authorization": f"Bearer {self.server.key}"}
        found: dict[str, Any] = httpx2.get(f"{self.server.url}/v1/responses/{uid}", headers=headers, timeout=30).json()
        return found

    def close(self) -> None:
        self.page.context.close()


# Texts of less contrast to their ground than 4.5 (WCAG 2.2, 1.4.3), and controls that a screen reader has no name for.
POORLY_SEEN = """() => {
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
NAMELESS = """() => [...document.querySelectorAll("input:not([type=hidden]), button, select, textarea, a[href], summary, img")]
  .filter((one) => !(one.labels?.length || one.ariaLabel || one.alt || one.textContent.trim()))
  .map((one) => one.outerHTML)"""
