"""Grammars of small source and large expansion."""

from __future__ import annotations


def doubling(levels: int) -> str:
    return "start: T0\n" + "".join(f"T{n}: T{n + 1} T{n + 1}\n" for n in range(levels)) + f'T{levels}: "a"'


# The time of their expansion is beyond the limit of the compiler, except for the last, whose result is too long.
LARGE = {
    "terminals that double": doubling(24),
    "optional parts": "start: " + '["a"] ' * 18,
    "stars": "start: " + '"a"* ' * 18,
    "repeated choices": 'start: ("a"|"b")~49',
    "terminals that are ignored": 'start: "a"\n%ignore ' + "T0 " + doubling(24).removeprefix("start: T0"),
    "choices of many rules": "start: "
    + "|".join(f"r{n}" for n in range(40))
    + "\n"
    + "".join(f"r{n}: " + '("a"|"b") ' * 8 + f'"{n}"\n' for n in range(40)),
}


# Templates whose expansion never ends.
ENDLESS = 'start: a{b}\na{x}: a{a{x}}\nb: "x"'
