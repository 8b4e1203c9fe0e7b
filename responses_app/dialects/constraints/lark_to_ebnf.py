"""Conversion of a Lark grammar to EBNF, for text inside a JSON string."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from responses_app.dialects.constraints.regex_to_ebnf import InvalidGrammar
from responses_app.dialects.constraints.regex_to_ebnf import to_ebnf as regex_to_ebnf

_DIRECTIVE: Final = re.compile(r"^\s*%(\w+)[ \t]*(\S*)", re.MULTILINE)
START: Final = "start"


def ebnf(definition: str) -> str:
    """Return all rules, `root` first. Raises InvalidGrammar.

    Ignored terminals may appear between any two terminals. Lark writes out each terminal with the terminals that it names, and each
    rule with all its alternatives, so a small grammar may take unlimited time and memory: the process has limits for both.
    """
    from lark import load_grammar
    from lark.exceptions import LarkError

    _check_directives(definition)
    try:
        # The grammar is only loaded: Lark's parsers reject terminals that match the empty string.
        terminals, rules, ignored = _read(load_grammar, definition)
    except InvalidGrammar:
        raise
    except (LarkError, RecursionError, re.error, OSError, ValueError) as error:
        raise InvalidGrammar(f"the grammar cannot be read: {str(error).strip() or type(error).__name__}") from error
    return "\n".join(_rules(rules, terminals, ignored))


def prepare() -> None:
    """Create the parser of Lark's own syntax early: creation takes 0.2 s."""
    from lark.load_grammar import _get_parser

    make: Callable[[], object] = _get_parser
    make()


def _check_directives(definition: str) -> None:
    for name, what in _DIRECTIVE.findall(definition):
        if name == "import" and not re.match(r"common(\.|$)", what.removeprefix("(")):
            raise InvalidGrammar(f"'%import {what}' is not possible: only terminals of 'common' can be imported")
        if name not in ("import", "ignore"):
            raise InvalidGrammar(f"'%{name}' is not supported")


def _read(lark: Any, definition: str) -> tuple[Sequence[Any], Sequence[Any], Sequence[str]]:
    """Return terminals, rules, and the names of ignored terminals."""
    grammar, _files = lark.load_grammar(definition, "grammar", [], global_keep_all_tokens=True)
    for _name, _parameters, tree, _options in grammar.rule_defs:
        _remove_aliases(tree)
    compiled: tuple[Sequence[Any], Sequence[Any], Sequence[str]] = grammar.compile([START], "*")
    return compiled


def _remove_aliases(tree: Any) -> None:
    """Replace `x -> name` by `x` in a rule: Lark refuses equal expansions of different names, as in `a "b"* -> list | a`."""
    if not hasattr(tree, "children"):
        return
    tree.children = [child.children[0] if getattr(child, "data", "") == "alias" else child for child in tree.children]
    for child in tree.children:
        _remove_aliases(child)


def _rules(rules: Sequence[Any], terminals: Sequence[Any], ignored: Sequence[str]) -> Iterable[str]:
    names = {rule.origin.name: f"r{n}" for n, rule in enumerate(rules)}
    terms = {terminal.name: f"t{n}" for n, terminal in enumerate(terminals)}
    gap = " gap" if ignored else ""
    if START not in names:
        raise InvalidGrammar(f"the grammar has no rule '{START}'")
    if START not in _terminating_rules(rules):
        raise InvalidGrammar(f"no text can match: the rule '{START}' never comes to an end")
    yield f"root ::= {names[START]}"
    for name, short in names.items():
        options = [_expansion(rule.expansion, names, terms, gap) for rule in rules if rule.origin.name == name]
        yield f"{short} ::= {' | '.join(options)}"
    for terminal in terminals:
        yield f"{terms[terminal.name]} ::= {_terminal(terminal)}"
    if ignored:
        yield f"gap ::= ({' | '.join(terms[name] for name in ignored)})?"


def _terminating_rules(rules: Sequence[Any]) -> set[str]:
    """Return the rules with at least one matching text.

    Such a rule has an expansion without rules, or with terminating rules only.
    """
    needs = [{symbol.name for symbol in rule.expansion if not symbol.is_term} for rule in rules]
    users = defaultdict(list)
    for at, names in enumerate(needs):
        for name in names:
            users[name].append(at)
    ready, terminating = [at for at, names in enumerate(needs) if not names], set[str]()
    while ready:
        name = rules[ready.pop()].origin.name
        if name in terminating:
            continue
        terminating.add(name)
        for at in users[name]:
            needs[at].discard(name)
            if not needs[at]:
                ready.append(at)
    return terminating


def _expansion(symbols: Iterable[Any], names: dict[str, str], terminals: dict[str, str], gap: str) -> str:
    return " ".join(terminals[s.name] + gap if s.is_term else names[s.name] for s in symbols) or '""'


def _terminal(terminal: Any) -> str:
    try:
        return regex_to_ebnf(terminal.pattern.to_regexp())
    except InvalidGrammar as error:
        raise InvalidGrammar(f"terminal '{terminal.name}': {error}") from error
