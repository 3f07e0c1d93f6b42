# SPDX-License-Identifier: GPL-2.0
"""A question of the series takes const."""

from __future__ import annotations

from pathlib import Path

import pytest
from sctpkernel import questions
from sctpkernel.series import Patch

HEADER = """\
bool sctp_mp_asks(const struct sctp_chunk *chunk,
\t\t  const struct sctp_transport *t);
/* bool sctp_mp_said(struct sctp_chunk *chunk); */
int sctp_mp_does(struct sctp_chunk *chunk);
static inline bool sctp_mp_is(%sstruct sctp_transport *t)
{
\treturn t;
}
"""


def patch(name: str, diff: str) -> Patch:
    return Patch(Path(name), f"Subject: sctp: ask\n\n---\n{diff}")


def added(header: str, path: str) -> str:
    lines = header.splitlines(keepends=True)
    return (
        f"diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n"
        f"@@ -0,0 +1,{len(lines)} @@\n{''.join(f'+{line}' for line in lines)}"
    )


@pytest.mark.parametrize(("word", "count"), [("const ", 0), ("", 1)])
def test_a_question_that_may_write_is_a_fault(word: str, count: int) -> None:
    one = patch("0010-a.patch", added(HEADER % word, "net/sctp/multipath/internal.h"))
    found = questions.faults([one])
    assert len(found) == count
    assert all("sctp_mp_is: returns bool" in fault for fault in found)


def test_the_last_patch_counts() -> None:
    path = "include/net/sctp/multipath.h"
    change = (
        f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -5,1 +5,1 @@\n"
        "-static inline bool sctp_mp_is(struct sctp_transport *t)\n"
        "+static inline bool sctp_mp_is(const struct sctp_transport *t)\n"
    )
    series = [patch("0010-a.patch", added(HEADER % "", path)), patch("0020-b.patch", change)]
    assert len(questions.faults(series[:1])) == 1
    assert not questions.faults(series)


def test_headers_of_others_are_not_looked_at() -> None:
    for path in ("include/net/sctp/sm.h", "net/sctp/multipath/test/test.h"):
        assert not questions.faults([patch("0010-a.patch", added(HEADER % "", path))])
