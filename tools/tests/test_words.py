# SPDX-License-Identifier: GPL-2.0
"""The language of comments, docstrings, pages and patches: no sentence begins with "What"."""

import re
import subprocess

from sctpkernel.paths import ROOT

_BEGINS = re.compile(r'(?:^|[.?!:]["\')]*\s+|/\*+ |""")What\b')
_MARK = re.compile(r"^[+]?\s*(?:/?\*+|#+|-|\+)?\s*")


def sentences_with_what(text: str, patch: bool = False) -> list[int]:
    """Numbers of the lines where a sentence begins so. PATCH: its message, and the lines that it adds."""
    found, before, diff = [], "", False
    for number, line in enumerate(text.splitlines(), 1):
        diff |= patch and line.startswith("diff ")
        if diff and not line.startswith("+"):
            before = ""
            continue
        words = _MARK.sub("", line)
        begins = not before or before[-1] in ".?!:>"
        if any(begins or place.start() for place in _BEGINS.finditer(words)):
            found.append(number)
        before = words.strip()
    return found


def test_sentences() -> None:
    assert sentences_with_what("It is.\nWhat is lost\nWhat: not\n\nWhat now") == [2, 5]
    assert sentences_with_what('    """What it is. Whatever."""\n/* So. What */') == [1, 2]
    assert sentences_with_what("a\ndiff --git\n What\n+/* What */\n-/* What */", patch=True) == [4]


def test_no_sentence_of_the_project_begins_with_what() -> None:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    wrong = []
    for name in names.stdout.splitlines():
        path = ROOT / name
        if path == ROOT / "LICENSE" or path.suffix in (".csv", ".svg", ".pcap", ".gz") or not path.is_file():
            continue
        if path.samefile(__file__):
            continue
        text = path.read_text(encoding="utf-8", errors="replace")
        wrong += [f"{name}:{number}" for number in sentences_with_what(text, name.endswith(".patch"))]
    assert not wrong
