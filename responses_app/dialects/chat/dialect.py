"""Talks to any chat model through its own template, and listens for `<think>` and Hermes calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date
from weakref import finalize

from responses_app.dialects.base import OutputParser, Turn, UnsupportedInput
from responses_app.dialects.chat.parser import ChatParser
from responses_app.dialects.chat.prompt import ImagePlaceholder, SystemMessagePlacement, function, guarded, messages
from responses_app.dialects.chat.scanner import END_THINK, THINK
from responses_app.dialects.chat.structural_tags import ReasoningMarkers, ReasoningStart, constrain
from responses_app.dialects.chat.template import ChatTemplate, TemplateRefused
from responses_app.dialects.content import images
from responses_app.dialects.text.budget import Budget
from responses_app.dialects.text.tokenizer import TokenizerAdapter
from responses_app.dialects.tools.selection import toolset
from responses_app.engine_interface import Constraint

QUIET = frozenset({"none", "minimal"})
_PROBE = "\ue0f3"
_SOME_DAY = date(2000, 1, 1)


class ChatDialect:
    """A chat model; `marks` begin and end its reasoning, `<think>` and `</think>` unless told otherwise.

    `always_thinks` is for models that leave out the first mark although their template does not write it. `supports_images` says that
    the model takes images; it is told them if its template writes them, or else if `spell` does.
    """

    def __init__(
        self,
        vocabulary: TokenizerAdapter,
        template: ChatTemplate,
        stop_token_ids: Sequence[int],
        *,
        always_thinks: bool = False,
        marks: ReasoningMarkers | None = None,
        supports_images: bool = False,
        token_text: ImagePlaceholder | None = None,
    ) -> None:
        self.stop_token_ids: Sequence[int] = tuple(stop_token_ids)
        self.vocabulary = vocabulary
        self._spell = token_text if template.image is None else None
        self.supports_images = supports_images and (template.image is not None or self._spell is not None)
        self._template = template
        self._always_thinks = always_thinks
        self._marks = marks or (THINK, END_THINK)
        self._rules = _rules(template)
        self._texts: dict[int, str] = {}

    def render(self, turn: Turn, budget: Budget | None = None) -> list[int]:
        """Prompt token ids. Raises BadTurn, TooLong, Stopped."""
        try:
            return self.vocabulary.encode(self._text(turn), turn.memo, budget)
        except UnicodeEncodeError as error:  # lone surrogates
            raise UnsupportedInput("The input is not valid Unicode.", "input", "invalid_value") from error

    def constrain(self, turn: Turn) -> Constraint | None:
        """A structural tag over the whole answer, reasoning included. Raises BadTurn."""
        tools = toolset(turn)
        if not tools.offered and turn.format.get("type", "text") == "text":
            return None
        return constrain(turn, tools, self._thinking(turn))

    def parser_for(self, turn: Turn) -> OutputParser:
        """A fresh listener. With `parallel_tool_calls: false` it hides what follows the first call (§3.9)."""
        return ChatParser(
            self.vocabulary,
            self.stop_token_ids,
            toolset(turn).allows,
            thinking=self._thinking(turn) is ReasoningStart.OPEN,
            one_call=not turn.parallel_tool_calls,
        )

    def token_text(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones as they are written."""
        return b"".join(self.vocabulary.spell(token) for token in tokens).decode(errors="replace")

    def _text(self, turn: Turn) -> str:
        """The rendered prompt, remembered as long as the turn lives: it is asked for up to three times."""
        text = self._texts.get(id(turn))
        if text is None:
            text = self._texts[id(turn)] = self._rendered(turn)
            finalize(turn, self._texts.pop, id(turn), None).atexit = False
        return text

    def _rendered(self, turn: Turn) -> str:
        tools = toolset(turn)
        try:
            text = self._template.render(
                messages(
                    turn, self._rules, self.vocabulary.escape_special, supports_images=self.supports_images, spell=self._spell
                ),
                today=turn.today,
                tools=[guarded(function(tool), self.vocabulary.escape_special) for tool in tools.offered],
                thinking=turn.effort not in QUIET,
            )
        except TemplateRefused as refused:
            raise UnsupportedInput(
                f"The model's chat template refuses this input: {refused}", "input", "invalid_value"
            ) from refused
        except RecursionError as error:
            raise UnsupportedInput("The input is nested too deeply.", "input", "invalid_value") from error
        self._all_shown(turn, text)
        return text

    def _all_shown(self, turn: Turn, text: str) -> None:
        """Every image has its placeholder. Some templates write none in what tools return, and nobody would miss it. Raises BadTurn."""
        shown = list(images(turn.items)) if self.supports_images else []
        spell = self._spell or (lambda _: self._template.image or "")
        marks = Counter(spell(number) for number in range(1, len(shown) + 1))
        if any(text.count(mark) != count for mark, count in marks.items()):
            # Those of the user are what a template for images is made for.
            lost = next((image for image in shown if ".output[" in image.path), shown[0])
            message = f"The model's chat template does not take the image at '{lost.path}'."
            raise UnsupportedInput(message, lost.path, "unsupported_value")

    def _thinking(self, turn: Turn) -> ReasoningStart:
        """How the answer begins, read from the end of the prompt: some templates open `<think>`, some close it at once."""
        start, end = self._marks
        prompt = self._text(turn).rstrip()
        if prompt.endswith(end):
            return ReasoningStart.NEVER
        if prompt.endswith(start) or (self._always_thinks and turn.effort not in QUIET):
            return ReasoningStart.OPEN
        return ReasoningStart.FREE if start in self._template.source else ReasoningStart.NEVER


def _rules(template: ChatTemplate) -> SystemMessagePlacement:
    """Where the template lets a system message stand, found by trying."""
    user, model, rule = (
        {"role": role, "content": _PROBE if role == "system" else "x"} for role in ("user", "assistant", "system")
    )
    if _probe_role(template, [rule, user, model, rule, user], 2):
        return SystemMessagePlacement.ANYWHERE
    return SystemMessagePlacement.FIRST if _probe_role(template, [rule, user], 1) else SystemMessagePlacement.NOWHERE


def _probe_role(template: ChatTemplate, said: Sequence[dict[str, str]], count: int) -> bool:
    try:
        return template.render(said, today=_SOME_DAY).count(_PROBE) == count
    except TemplateRefused:
        return False
