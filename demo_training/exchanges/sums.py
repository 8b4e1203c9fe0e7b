"""Small sums, asked in many ways, with the working done digit by digit in the thought."""

# Lists of phrases read better in long lines than one phrase per line.
from __future__ import annotations

import itertools
from random import Random

from demo_training.exchanges import words
from demo_training.forms import Turns, ask, fill

_ADD = [
    "What is {a} + {b}?",
    "{a} + {b}",
    "{a}+{b}",
    "{a} + {b} = ?",
    "{a}+{b}=?",
    "What is {a} plus {b}?",
    "How much is {a} plus {b}?",
    "Add {a} and {b}.",
    "Compute {a} + {b}.",
    "Calculate {a} + {b}.",
    "What do you get when you add {a} and {b}?",
    "What is the sum of {a} and {b}?",
    "Can you add {a} to {b}?",
    "Sum {a} and {b}",
    "Tell me the total of {a} and {b}.",
    "{a} plus {b}?",
    "{a} and {b} makes what?",
    "Please work out {a} plus {b}.",
    "I need {a} + {b}.",
    "Solve {a} + {b}",
    "what's {a} + {b}",
    "If I add {b} to {a}, what do I get?",
    "How much is {a} + {b}",
    "What does {a} + {b} equal?",
    "Do the sum {a} + {b} for me.",
    "what's {a} plus {b}?",
]
_SUB = [
    "What is {a} - {b}?",
    "{a} - {b}",
    "{a}-{b}",
    "{a} - {b} = ?",
    "What is {a} minus {b}?",
    "How much is {a} minus {b}?",
    "Subtract {b} from {a}.",
    "Compute {a} - {b}.",
    "Calculate {a} - {b}.",
    "What is the difference between {a} and {b}?",
    "Take {b} away from {a}.",
    "{a} minus {b}?",
    "Take {b} from {a}",
    "what's {a} - {b}",
    "Please work out {a} minus {b}.",
    "If I subtract {b} from {a}, what is left?",
    "What is {a} less {b}?",
    "What does {a} - {b} equal?",
    "Solve {a} - {b}",
    "what's {a} minus {b}?",
]
_MUL = [
    "What is {a} * {b}?",
    "{a} * {b}",
    "{a}*{b}",
    "What is {a} x {b}?",
    "{a} x {b}",
    "What is {a} times {b}?",
    "How much is {a} times {b}?",
    "Compute {a} times {b}.",
    "Compute {a} * {b}.",
    "Calculate {a} * {b}.",
    "Multiply {a} by {b}.",
    "Multiply {a} and {b}.",
    "What is the product of {a} and {b}?",
    "{a} times {b}?",
    "What is {a} multiplied by {b}?",
    "Please work out {a} times {b}.",
    "what's {a} times {b}?",
    "Solve {a} * {b}",
    "What does {a} x {b} equal?",
    "{a} × {b} = ?",
]
_DIV = [
    "What is {a} / {b}?",
    "{a} / {b}",
    "What is {a} divided by {b}?",
    "Divide {a} by {b}.",
    "How much is {a} divided by {b}?",
    "Compute {a} / {b}.",
    "Calculate {a} divided by {b}.",
    "How many times does {b} go into {a}?",
]
_ADD_STORY = [
    "{n} has {a} {os} and buys {b} more. How many {os} does {n} have now?",
    "I have {a} {os} and you give me {b} more. How many do I have?",
    "There are {a} {os} on the table and {b} in the box. How many {os} are there in total?",
    "{n} found {a} {os} in the morning and {b} in the evening. How many altogether?",
    "{n} has {a} {os}. {m} gives {n} {b} more. How many {os} does {n} have?",
    "If I have {a} {os} and I get {b} more, how many {os} do I have?",
    "{n} has {a} {os} and {m} has {b} {os}. How many do they have together?",
    "A shop sold {a} {os} on {d} and {b} on the next day. How many in all?",
]
_SUB_STORY = [
    "{n} has {a} {os} and gives away {b}. How many {os} are left?",
    "I have {a} {os} and eat {b} of them. How many do I have left?",
    "There were {a} {os} in the box and {n} took {b}. How many remain?",
    "{n} had {a} {os} and lost {b}. How many {os} does {n} have now?",
    "If I have {a} {os} and I give {b} to {n}, how many are left?",
    "{n} has {a} {os}. {n} sells {b} of them. How many {os} does {n} still have?",
    "{a} {os} are on a tree and {b} fall down. How many stay on the tree?",
    "{n} had {a} {os} but used {b}. How many {os} remain?",
]
_MUL_STORY = [
    "There are {a} boxes with {b} {os} each. How many {os} are there?",
    "{n} buys {a} bags of {b} {os}. How many {os} is that?",
    "Each of {a} children has {b} {os}. How many {os} do they have in total?",
    "One {o} costs {b} dollars. How much do {a} {os} cost?",
    "If a box holds {b} {os}, how many {os} are in {a} boxes?",
    "{n} reads {b} pages a day for {a} days. How many pages?",
]


def _digits(n: int) -> list[int]:
    return [int(c) for c in reversed(str(n))]


_PLACES = ["ones", "tens", "hundreds", "thousands"]


def _columns(a: int, b: int) -> list[tuple[int, int]]:
    return list(itertools.zip_longest(_digits(a), _digits(b), fillvalue=0))


def add_working(a: int, b: int) -> str:
    """Every step looks the same, also where nothing is carried: what is learnt once holds everywhere."""
    steps, carry = [], 0
    columns = _columns(a, b)
    for place in range(len(str(a + b))):
        x, y = columns[place] if place < len(columns) else (0, 0)
        total = x + y + carry
        steps.append(f"{_PLACES[place]} {x} + {y} + {carry} = {total}, write {total % 10}, carry {total // 10}")
        carry = total // 10
    return "; ".join(steps)


def subtract_working(a: int, b: int) -> str:
    steps, borrow = [], 0
    for place, (x, y) in enumerate(_columns(a, b)):
        rest = x - y - borrow
        steps.append(f"{_PLACES[place]} {x} - {y} - {borrow}, borrow {int(rest < 0)}, write {rest % 10}")
        borrow = int(rest < 0)
    return "; ".join(steps)


def work(a: int, sign: str, b: int) -> tuple[str, int]:
    """The thought that solves a sum, with its result."""
    if sign == "+":
        return f"{a} + {b}: {add_working(a, b)}. The result is {a + b}.", a + b
    if sign == "-" and a >= b:
        return f"{a} - {b}: {subtract_working(a, b)}. The result is {a - b}.", a - b
    if sign == "-":
        return f"{a} - {b}: below zero, {b} - {a}: {subtract_working(b, a)}. The result is -{b - a}.", a - b
    if sign == "*":
        return f"{a} * {b}: from the table {a} * {b} = {a * b}. The result is {a * b}.", a * b
    return f"{a} / {b}: from the table {b} * {a // b} = {a}. The result is {a // b}.", a // b


def drill(r: Random) -> list[tuple[str, str]]:
    """Two dozen single steps, each as what is given and what follows from it: facts need to be seen more often than dialogues show them."""
    return [_step(r, r.choice("+-*")) for _ in range(24)]


def _step(r: Random, sign: str) -> tuple[str, str]:
    x, y, carried, place = r.randint(0, 9), r.randint(0, 9), r.randint(0, 1), r.choice(_PLACES[:2])
    if sign == "+":
        total = x + y + carried
        return f" {place} {x} + {y} + {carried} = ", f"{total}, write {total % 10}, carry {total // 10};"
    if sign == "-":
        rest = x - y - carried
        return f" {place} {x} - {y} - {carried},", f" borrow {int(rest < 0)}, write {rest % 10};"
    a, b = numbers(r, "*")
    return f" from the table {a} * {b} = ", f"{a * b}."


def numbers(r: Random, sign: str) -> tuple[int, int]:
    if sign == "*":
        return r.randint(1, 10), r.randint(1, 10)
    if sign == "/":
        b, q = r.randint(2, 10), r.randint(1, 10)
        return b * q, b
    top = r.choices([10, 20, 99, 299], [2, 2, 8, 1])[0]
    a, b = r.randint(0, top), r.randint(0, top)
    return (max(a, b), min(a, b)) if sign == "-" and r.random() < 0.93 else (a, b)


def sum_question(r: Random) -> Turns:
    sign = r.choices("+-*/", [5, 4, 4, 1])[0]
    a, b = numbers(r, sign)
    think, result = work(a, sign, b)
    text = fill(r, {"+": _ADD, "-": _SUB, "*": _MUL, "/": _DIV}[sign], a=a, b=b)
    return ask(text, think, f"{a} {sign} {b} is {result}.")


def word_problem(r: Random) -> Turns:
    sign = r.choice("++--*")
    a, b = numbers(r, sign)
    a, b = (max(a, b), min(a, b)) if sign == "-" else (a, b)
    o = r.choice(words.OBJECTS)
    slots = {
        "a": a,
        "b": b,
        "n": words.name(r),
        "m": r.choice(words.NAMES),
        "o": o,
        "os": words.plural(o),
        "d": r.choice(words.DAYS),
    }
    think, result = work(a, sign, b)
    return ask(
        fill(r, {"+": _ADD_STORY, "-": _SUB_STORY, "*": _MUL_STORY}[sign], **slots), think, f"{a} {sign} {b} is {result}."
    )


def number_fact(r: Random) -> Turns:
    """Neighbours, comparisons, evenness."""
    n, m = r.sample(range(1, 100), 2)
    kind = r.randrange(6)
    if kind == 0:
        return ask(
            fill(r, ["What number comes after {n}?", "Which number follows {n}?", "What comes after {n}?"], n=n),
            f"{n} + 1 = {n + 1}.",
            f"After {n} comes {n + 1}.",
        )
    if kind == 1:
        return ask(
            fill(r, ["What number comes before {n}?", "What comes before {n}?"], n=n),
            f"{n} - 1 = {n - 1}.",
            f"Before {n} comes {n - 1}.",
        )
    if kind == 2:
        return ask(
            fill(r, ["Which is bigger, {n} or {m}?", "What is larger, {n} or {m}?", "Is {n} bigger than {m}?"], n=n, m=m),
            f"The bigger one is {max(n, m)}.",
            f"{max(n, m)} is bigger than {min(n, m)}.",
        )
    if kind == 3:
        word = "even" if n % 2 == 0 else "odd"
        return ask(
            fill(r, ["Is {n} even or odd?", "Is {n} an even number?", "Is {n} an odd number?"], n=n),
            f"The last digit is {n % 10}, so {n} is {word}.",
            f"{n} is {word}.",
        )
    if kind == 4:
        return ask(
            fill(r, ["What is half of {n}?", "What is one half of {n}?"], n=2 * n),
            f"Half of {2 * n}: {n} + {n} = {2 * n}.",
            f"Half of {2 * n} is {n}.",
        )
    think, result = work(n, "+", n)
    return ask(fill(r, ["What is double {n}?", "Double {n}.", "What is twice {n}?"], n=n), think, f"{n} + {n} is {result}.")
