"""Grammars of small source and large expansion."""

from __future__ import annotations


def doubling(levels: int) -> str:
    return "start: T0\n" + "".join(f"T{n}: T{n + 1} T{n + 1}\n" for n in range(levels)) + f'T{levels}: "a"'


LARGE = {
    "terminals that double": (doubling(24), "terminal 'T0' has more than 10000 characters"),
    "optional parts": ("start: " + '"a"? ' * 18, "rule 'start' has 262144 expansions"),
    "optional parts in brackets": ("start: " + '["a"] ' * 18, "rule 'start' has 262144 expansions"),
    "stars": ("start: " + '"a"* ' * 18, "rule 'start' has 262180 expansions"),
    "choices": ("start: " + '("a"|"b") ' * 17, "rule 'start' has 131072 expansions"),
    "nested choices": ("start: " + '(("a"|"b") ("c"|"d"))? ' * 9, "rule 'start' has 1953125 expansions"),
    "repeated choices": ('start: ("a"|"b")~49', "rule 'start' has more than 1000000000 expansions"),
    "many repeated choices": ('start: (("a"|"b"|"c"|"d")~5)~1000', "expansions"),
    "choices of many rules": (
        "start: "
        + "|".join(f"r{n}" for n in range(40))
        + "\n"
        + "".join(f"r{n}: " + '("a"|"b") ' * 8 + f'"{n}"\n' for n in range(40)),
        "the grammar has 10280 expansions",
    ),
    "many rules": ("start: r0\n" + "".join(f"r{n}: r{n + 1}\n" for n in range(1100)) + 'r1100: "a"', "it has 1102 rules"),
    "terminals that are ignored": ('start: "a"\n%ignore ' + "T0 " + doubling(24).removeprefix("start: T0"), "T0"),
    "repeats of repeats": ('start: A\nA: (("a"~1000)~1000)~1000', "multiplied out"),
}


# Templates whose expansion never ends.
ENDLESS = 'start: a{b}\na{x}: a{a{x}}\nb: "x"'
