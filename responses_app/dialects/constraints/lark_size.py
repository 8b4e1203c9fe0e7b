"""The size of a Lark grammar once it is written out, counted before Lark writes it out.

Lark writes a terminal as one regular expression, with the terminals that it names inside. It writes a rule as all its expansions: every
optional part doubles them, and every choice multiplies them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from responses_app.dialects.constraints.regex_to_ebnf import InvalidGrammar

MAX_TERMINAL: Final = 10_000
MAX_TERMINALS: Final = 50_000
# The longest terminal of Lark's module `common` has about as many characters.
IMPORTED_TERMINAL: Final = 100
MAX_RULES: Final = 1_000
MAX_EXPANSIONS: Final = 5_000
MAX_SYMBOLS: Final = 50_000
# From this number of repeats on Lark makes rules of their own for them.
_MANY_REPEATS: Final = 50
# An upper bound for these rules, of which each repeats its part up to so many times.
_REPEAT_RULES: Final = 20
_REPEATS_OF_A_RULE: Final = 5
# Larger numbers need not be told apart.
_CAP: Final = 10**9


class Size(NamedTuple):
    """How many expansions a part of a rule has, and how many symbols these have in all."""

    expansions: int
    symbols: int


def check(statements: Iterable[Any]) -> None:
    """Count the statements of a grammar as Lark has parsed them. Raises BadGrammar, which names what is too much."""
    definitions = [one for one in statements if one.data in ("term", "rule", "ignore")]
    terminals = {_name(one): one.children[-1] for one in definitions if one.data == "term"}
    ignored = {f"%ignore {number}": one.children[-1] for number, one in enumerate(definitions) if one.data == "ignore"}
    _check_terminals(terminals | ignored)
    _check_rules({_name(one): one.children[-1] for one in definitions if one.data == "rule"})


def _name(definition: Any) -> str:
    return str(definition.children[0 if definition.data == "term" else 1])


def _check_terminals(trees: Mapping[str, Any]) -> None:
    known: dict[str, int] = {}
    total = 0
    for name in trees:
        length = _length_of(name, trees, known)
        if length > MAX_TERMINAL:
            raise InvalidGrammar(
                f"terminal '{name}' has more than {MAX_TERMINAL} characters once the terminals that it names are written out"
            )
        total += length
    if total > MAX_TERMINALS:
        raise InvalidGrammar(f"its terminals have {total} characters once written out; at most {MAX_TERMINALS} are allowed")


def _length_of(name: str, trees: Mapping[str, Any], known: dict[str, int]) -> int:
    """About how many characters the regular expression of a terminal has. One that names itself is left for Lark to refuse."""
    if name not in known:
        known[name] = 0
        known[name] = _length(trees[name], trees, known) if name in trees else IMPORTED_TERMINAL
    return known[name]


def _length(node: Any, trees: Mapping[str, Any], known: dict[str, int]) -> int:
    if not hasattr(node, "children"):
        name = getattr(node, "name", None)
        return len(str(node)) if name is None else _length_of(str(name), trees, known)
    brackets = len(node.children) + 4 if len(node.children) > 1 and node.data != "expansion" else 0
    return min(_CAP, brackets + sum(_length(child, trees, known) for child in node.children))


def _check_rules(trees: Mapping[str, Any]) -> None:
    if len(trees) > MAX_RULES:
        raise InvalidGrammar(f"it has {len(trees)} rules; at most {MAX_RULES} are allowed")
    all_expansions = all_symbols = 0
    for name, tree in trees.items():
        counter = _Counter()
        own = counter.size(tree)
        expansions, symbols = own.expansions + counter.expansions, own.symbols + counter.symbols
        _check_total(f"rule '{name}'", expansions, symbols)
        all_expansions, all_symbols = all_expansions + expansions, all_symbols + symbols
    _check_total("the grammar", all_expansions, all_symbols)


def _check_total(what: str, expansions: int, symbols: int) -> None:
    if expansions > MAX_EXPANSIONS:
        raise InvalidGrammar(
            f"{what} has {_number(expansions)} expansions once its optional parts and choices are multiplied out; "
            f"at most {MAX_EXPANSIONS} are allowed"
        )
    if symbols > MAX_SYMBOLS:
        raise InvalidGrammar(
            f"{what} has {_number(symbols)} symbols once its optional parts and choices are multiplied out; "
            f"at most {MAX_SYMBOLS} are allowed"
        )


def _number(count: int) -> str:
    return f"{count}" if count < _CAP else f"more than {_CAP}"


class _Counter:
    """Counts one rule; `expansions` and `symbols` are those of the rules that Lark adds for its repeats."""

    def __init__(self) -> None:
        self.expansions = self.symbols = 0

    def size(self, node: Any) -> Size:
        """The size of a part of the rule."""
        kind = getattr(node, "data", None)
        if kind == "expansions":
            return _sum(map(self.size, node.children))
        if kind == "expansion":
            return _product(map(self.size, node.children))
        if kind == "alias":
            return self.size(node.children[0])
        if kind == "maybe":
            return _optional(self.size(node.children[0]))
        if kind == "expr":
            return self._repeated(self.size(node.children[0]), str(node.children[1]), [int(n) for n in node.children[2:]])
        return Size(1, 1)

    def _repeated(self, inner: Size, operator: str, bounds: list[int]) -> Size:
        if operator == "?":
            return _optional(inner)
        if operator == "~":
            return self._counted(inner, bounds[0], bounds[-1])
        # A rule for one or more: the part, or the rule itself and the part.
        self._add(2 * inner.expansions, 2 * inner.symbols + inner.expansions)
        return Size(2, 1) if operator == "*" else Size(1, 1)

    def _counted(self, inner: Size, least: int, most: int) -> Size:
        if most < _MANY_REPEATS:
            return _sum(_product([inner] * count) for count in range(least, most + 1))
        longest = _product([inner] * _REPEATS_OF_A_RULE)
        self._add(_REPEAT_RULES * (longest.expansions + 1), _REPEAT_RULES * (longest.symbols + _REPEATS_OF_A_RULE))
        return Size(inner.expansions, 2 * inner.symbols)

    def _add(self, expansions: int, symbols: int) -> None:
        self.expansions, self.symbols = min(_CAP, self.expansions + expansions), min(_CAP, self.symbols + symbols)


def _sum(sizes: Iterable[Size]) -> Size:
    expansions = symbols = 0
    for size in sizes:
        expansions, symbols = min(_CAP, expansions + size.expansions), min(_CAP, symbols + size.symbols)
    return Size(expansions, symbols)


def _product(sizes: Iterable[Size]) -> Size:
    expansions, symbols = 1, 0
    for size in sizes:
        symbols = min(_CAP, symbols * size.expansions + size.symbols * expansions)
        expansions = min(_CAP, expansions * size.expansions)
    return Size(expansions, symbols)


def _optional(inner: Size) -> Size:
    return Size(min(_CAP, inner.expansions + 1), inner.symbols)
