# SPDX-License-Identifier: GPL-2.0
"""A started program: its output so far, and whether it has said that it is ready. Standard library only."""

import os
import subprocess
from typing import IO, Any, cast

from commands import inside
from counters import read


class Program:
    """PROCESS is {"where", "argv", "ready"}; NAME is unique in the run."""

    def __init__(self, name: str, process: dict[str, Any]) -> None:
        self.argv: list[str] = process["argv"]
        self.mark = process["ready"].encode()
        self.ready = not self.mark
        self.text = bytearray()  # grows in place: a log may have many megabytes
        self.errors = os.path.join(os.environ["TMPDIR"], f"{name}.err")
        with inside(process["where"]), open(self.errors, "wb") as err:
            self.process = subprocess.Popen(
                self.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=err
            )
        self.output = cast(IO[bytes], self.process.stdout)

    def fileno(self) -> int:
        return self.output.fileno()

    def feed(self) -> bool:
        """Take the output that is there; False at its end, when the process is collected too."""
        data = os.read(self.fileno(), 1 << 16)
        if not data:
            self.process.wait()
            self.output.close()
            return False
        self.text += data
        self.ready = self.ready or self.mark in self.text
        return True

    def end(self) -> None:
        """Ask it to end and take the rest of its output."""
        self.process.terminate()
        while self.feed():
            pass

    def complaint(self) -> str:
        """Its last line on stderr, or its exit code in words."""
        lines = read(self.errors).strip().splitlines()
        return lines[-1] if lines else f"exit {self.process.returncode}"

    def outcome(self) -> dict[str, Any]:
        return {"exit": self.process.returncode, "output": self.text.decode(errors="replace")}
