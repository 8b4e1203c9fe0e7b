"""Size limits of a Lark grammar, computed before Lark expands the grammar.

Lark expands a terminal to one regular expression, including the terminals it references. It expands a rule to all its
alternatives: every optional part doubles them, and every choice multiplies them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from responses_app.dialects.constraints.regex_to_ebnf import InvalidGrammar

MAX_TERMINAL: Final = 10_000
MAX_TERMINALS: Final = 50_000
# The longest terminal of Lark's module `common` has about so many characters.
IMPORTED_TERMINAL: Final = 100
MAX_RULES: Final = 1_000
MAX_EXPANSIONS: Final = 5_000
MAX_SYMBOLS: Final = 50_000
# From this number of repeats on Lark creates extra rules.
_MANY_REPEATS: Final = 50
# An upper bound for these rules, each of which repeats its part up to so many times.
_REPEAT_RULES: Final = 20
_REPEATS_OF_A_RULE: Final = 5
# Counts saturate at this value.
_CAP: Final = 10**9


class ExpansionSize(NamedTuple):
    """Number of expansions of a part of a rule, and total number of symbols in the expansions."""

    expansions: int
    symbols: int


def check(statements: Iterable[Any]) -> None:
    """Count the parsed statements of a grammar. Raises InvalidGrammar with the exceeded limit."""
    definitions = [statement for statement in statements if statement.data in ("term", "rule", "ignore")]
    terminals = {_name(statement): statement.children[-1] for statement in definitions if statement.data == "term"}
    ignored = {
        f"%ignore {number}": statement.children[-1]
        for number, statement in enumerate(definitions)
        if statement.data == "ignore"
    }
    _check_terminals(terminals | ignored)
    _check_rules({_name(statement): statement.children[-1] for statement in definitions if statement.data == "rule"})


def _name(definition: Any) -> str:
    return str(definition.children[0 if definition.data == "term" else 1])


def _check_terminals(trees: Mapping[str, Any]) -> None:
    lengths: dict[str, int] = {}
    total = 0
    for name in trees:
        length = _length_of(name, trees, lengths)
        if length > MAX_TERMINAL:
            raise InvalidGrammar(
                f"terminal '{name}' has more than {MAX_TERMINAL} characters once the terminals that it names are written out"
            )
        total += length
    if total > MAX_TERMINALS:
        raise InvalidGrammar(f"its terminals have {total} characters once written out; at most {MAX_TERMINALS} are allowed")


def _length_of(name: str, trees: Mapping[str, Any], lengths: dict[str, int]) -> int:
    """Estimate the length of the regular expression of a terminal. Lark rejects recursive terminals later."""
    if name not in lengths:
        lengths[name] = 0
        lengths[name] = _length(trees[name], trees, lengths) if name in trees else IMPORTED_TERMINAL
    return lengths[name]


def _length(node: Any, trees: Mapping[str, Any], lengths: dict[str, int]) -> int:
    if not hasattr(node, "children"):
        name = getattr(node, "name", None)
        return len(str(node)) if name is None else _length_of(str(name), trees, lengths)
    brackets = len(node.children) + 4 if len(node.children) > 1 and node.data != "expansion" else 0
    return min(_CAP, brackets + sum(_length(child, trees, lengths) for child in node.children))


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
    """Counter of a rule; `expansions` and `symbols` count the extra rules that Lark adds for repeats."""

    def __init__(self) -> None:
        self.expansions = self.symbols = 0

    def size(self, node: Any) -> ExpansionSize:
        """Return the size of a part of the rule."""
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
        return ExpansionSize(1, 1)

    def _repeated(self, inner: ExpansionSize, operator: str, bounds: list[int]) -> ExpansionSize:
        if operator == "?":
            return _optional(inner)
        if operator == "~":
            return self._counted(inner, bounds[0], bounds[-1])
        # The extra rule for one or more: the part, or the rule itself and the part.
        self._add(2 * inner.expansions, 2 * inner.symbols + inner.expansions)
        return ExpansionSize(2, 1) if operator == "*" else ExpansionSize(1, 1)

    def _counted(self, inner: ExpansionSize, minimum: int, maximum: int) -> ExpansionSize:
        if maximum < _MANY_REPEATS:
            return _sum(_product([inner] * count) for count in range(minimum, maximum + 1))
        repeated = _product([inner] * _REPEATS_OF_A_RULE)
        self._add(_REPEAT_RULES * (repeated.expansions + 1), _REPEAT_RULES * (repeated.symbols + _REPEATS_OF_A_RULE))
        return ExpansionSize(inner.expansions, 2 * inner.symbols)

    def _add(self, expansions: int, symbols: int) -> None:
        self.expansions, self.symbols = min(_CAP, self.expansions + expansions), min(_CAP, self.symbols + symbols)


def _sum(sizes: Iterable[ExpansionSize]) -> ExpansionSize:
    expansions = symbols = 0
    for size in sizes:
        expansions, symbols = min(_CAP, expansions + size.expansions), min(_CAP, symbols + size.symbols)
    return ExpansionSize(expansions, symbols)


def _product(sizes: Iterable[ExpansionSize]) -> ExpansionSize:
    expansions, symbols = 1, 0
    for size in sizes:
        symbols = min(_CAP, symbols * size.expansions + size.symbols * expansions)
        expansions = min(_CAP, expansions * size.expansions)
    return ExpansionSize(expansions, symbols)


def _optional(inner: ExpansionSize) -> ExpansionSize:
    return ExpansionSize(min(_CAP, inner.expansions + 1), inner.symbols)
