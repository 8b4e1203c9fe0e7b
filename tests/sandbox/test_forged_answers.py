"""Code that answers in place of the interpreter, and code that leaves odd files."""

from __future__ import annotations

import pytest

from tests.support.sandbox.runner import Runner

# The connection to the runner is the only Unix socket of the interpreter.
FORGE = """
import os, stat, struct
def is_socket(number):
    try: return stat.S_ISSOCK(os.fstat(number).st_mode)
    except OSError: return False
control = next(number for number in range(3, 256) if is_socket(number))
def answer(payload, kind=b'R'):
    os.write(control, struct.pack('>cI', kind, len(payload)) + payload)
def declare(length):
    os.write(control, struct.pack('>cI', b'R', length))
"""
FORGED = """b'{"value": "forged", "error": null}'"""
# Finds the token of the run.
FRAMES = "import sys\nframe = sys._getframe()\nwhile 'token' not in frame.f_locals: frame = frame.f_back\n"


def test_second_answer_is_not_the_answer_of_the_next_run(sandbox: Runner) -> None:
    steal = f"{FORGE}{FRAMES}answer(frame.f_locals['token'] + {FORGED})\n'first'"
    first, second, third = sandbox.run("forged", steal, "'second'", "'third'")
    assert (first.value, second.value, third.value) == ("forged", "'second'", "'third'")


@pytest.mark.parametrize("result", ["b'['", "b'{\"value\":' * 100_000", "b'[' * 900_000"])
def test_result_that_is_no_json_ends_the_interpreter(sandbox: Runner, result: str) -> None:
    first, second = sandbox.run("nested", f"{FORGE}{FRAMES}answer(frame.f_locals['token'] + {result})", "1")
    assert "disturbed the interpreter" in str(first.error)
    assert second.value == "1"


def test_result_over_the_limit_ends_the_interpreter(sandbox: Runner) -> None:
    (result,) = sandbox.run("huge", f"{FORGE}declare(1_000_001)\nimport signal\nwhile True: signal.pause()")
    assert "disturbed the interpreter" in str(result.error)


def test_long_results_of_any_characters_are_within_the_limit(sandbox: Runner) -> None:
    (result,) = sandbox.run("long", "class Long:\n    def __repr__(self): return chr(0x1f600) * 100_000\nLong()")
    assert result.error is None
    assert "characters left out" in str(result.value)


def test_figures_are_png_images(sandbox: Runner) -> None:
    png = "bytes.fromhex('89504e470d0a1a0a0000000d49484452') + bytes(17)"
    code = f"import pictures\nfor data in (b'garbage', b'<svg/>', {png}): pictures.add(data)"
    (result,) = sandbox.run("figures", code)
    assert [figure[:4] for figure in result.figures] == [b"\x89PNG"]


def test_container_with_deep_folders_goes_on(sandbox: Runner) -> None:
    deep = (
        "import os\nfor n in range(5000):\n    os.mkdir('d'); os.chdir('d')\nos.chdir('/mnt/data'); open('x', 'w').write('x')"
    )
    first, second = sandbox.run("deep", deep, "open('y', 'w').write('y')")
    assert [file.path for file in first.files] == ["/mnt/data/x"]
    assert ([file.path for file in second.files], second.value) == (["/mnt/data/y"], "1")


def test_files_whose_names_are_not_utf8_are_named_once(sandbox: Runner) -> None:
    code = """
import os
os.mkdir(b'/mnt/data/\\xff')
for name in (b'caf\\xe9.txt', b'\\xff/a', 'café.txt'.encode()): open(b'/mnt/data/' + name, 'w').close()
"""
    first, second = sandbox.run("encoded", code, "1")
    assert [file.path for file in first.files] == ["/mnt/data/café.txt"]
    names = "/mnt/data/caf\\xe9.txt, /mnt/data/\\xff/a"
    assert first.notices == (f"Not offered for download, as the names are not UTF-8: {names}.",)
    assert second.notices == ()


def test_files_with_long_paths_and_very_many_files_are_left_out(sandbox: Runner) -> None:
    """Report as much as the server stores: a few thousand paths of 16 kB would occupy the server for seconds."""
    many = """
import os
for number in range(300): open(f'many{number:03}', 'w').close()
for depth in range(5):
    os.mkdir('d' * 250); os.chdir('d' * 250); open('x', 'w').close()
os.chdir('/mnt/data')
"""
    first, second = sandbox.run("many", many, "open('many000', 'w').write('x')")
    folders = [f"/mnt/data/{'/'.join(['d' * 250] * depth)}/x" for depth in (4, 3, 2, 1)]
    assert [file.path for file in first.files] == [*folders, *(f"/mnt/data/many{number:03}" for number in range(252))]
    assert [file.path for file in second.files] == ["/mnt/data/many000"]
