"""JUnit's XML, which build servers read. A finding is a test; one that is an error fails."""

from __future__ import annotations

from tempfile import TemporaryFile
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from ..lint.linter import Hit, Tally

_CHUNK = 1024 * 1024


class JUnit:
    """The counts stand before the tests, which are kept on disk until all are known."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._tests = TemporaryFile()  # noqa: SIM115 - closed in done
        self._suite: list[int] = [0, 0]
        self._suites = TemporaryFile()  # noqa: SIM115 - closed in done

    def hit(self, hit: Hit) -> None:
        told = hit.finding
        name = _attribute(f"{told.rule} {told.name} (line {hit.line})")
        text = _text(f"{hit.file}:{hit.line} {told.pointer}\n{told.message}\n{told.hint}")
        if told.severity == "error":
            inner = f"<failure type={_attribute(told.rule)} message={_attribute(told.message)}>"
            inner += f"{text}</failure>"
        else:
            inner = f"<system-out>{text}</system-out>"
        self._test(f"<testcase classname={_attribute(hit.file)} name={name}>{inner}</testcase>")
        self._suite[1] += told.severity == "error"

    def file_done(self, name: str, replies: int) -> None:
        if not self._suite[0]:
            case = f"{replies} replies without findings" if replies else "no replies"
            inner = "" if replies else "<skipped/>"
            head = f"<testcase classname={_attribute(name)} name={_attribute(case)}>"
            self._test(f"{head}{inner}</testcase>")
        tests, failures = self._suite
        head = f'<testsuite name={_attribute(name)} tests="{tests}" failures="{failures}">\n'
        self._suites.write(head.encode())
        _copy(self._tests, self._suites)
        self._suites.write(b"</testsuite>\n")
        self._suite = [0, 0]

    def done(self, tally: Tally) -> None:
        self._out.write(b'<?xml version="1.0" encoding="utf-8"?>\n<testsuites name="answerback">\n')
        _copy(self._suites, self._out)
        self._out.write(b"</testsuites>\n")
        self._tests.close()
        self._suites.close()

    def _test(self, case: str) -> None:
        self._suite[0] += 1
        self._tests.write(f"{case}\n".encode("utf-8", "replace"))


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    source.seek(0)
    while chunk := source.read(_CHUNK):
        target.write(chunk)
    source.seek(0)
    source.truncate()


def _attribute(text: str) -> str:
    return quoteattr(_printable(text))


def _text(text: str) -> str:
    return escape(_printable(text))


def _printable(text: str) -> str:
    """XML has no way to say most control characters."""
    return "".join(char if char >= " " or char in "\t\n" else "�" for char in text)
