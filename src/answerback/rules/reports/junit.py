"""JUnit XML, for build servers: each finding is a test, and an error is a failed test."""

from __future__ import annotations

from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO
from xml.sax.saxutils import escape, quoteattr

from ...dialects.readable import UNSAFE_IN_TEXT
from ..lint.linter import FileFinding, LintCounts, Report


class JUnitReport(Report):
    """Keeps the tests in temporary files, because the counts have to be written before them."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self._tests = TemporaryFile()  # noqa: SIM115 - closed in done
        self._test_count = 0
        self._failure_count = 0
        self._suites = TemporaryFile()  # noqa: SIM115 - closed in done

    def add(self, found: FileFinding) -> None:
        finding = found.finding
        name = _attribute(f"{finding.rule} {finding.name} (line {found.line})")
        place = f"{found.file}:{found.line} {finding.pointer}"
        text = _text(f"{place}\n{finding.message}\n{finding.hint}")
        if finding.severity == "error":
            message = _attribute(finding.message)
            inner = f"<failure type={_attribute(finding.rule)} message={message}>{text}</failure>"
        else:
            inner = f"<system-out>{text}</system-out>"
        file = _attribute(found.file)
        self._add_test(f"<testcase classname={file} name={name}>{inner}</testcase>")
        self._failure_count += finding.severity == "error"

    def file_done(self, name: str, replies: int) -> None:
        if not self._test_count:
            case = f"{replies} replies without findings" if replies else "no replies"
            inner = "" if replies else "<skipped/>"
            head = f"<testcase classname={_attribute(name)} name={_attribute(case)}>"
            self._add_test(f"{head}{inner}</testcase>")
        tests, failures = self._test_count, self._failure_count
        head = f'<testsuite name={_attribute(name)} tests="{tests}" failures="{failures}">\n'
        self._suites.write(head.encode())
        _copy(self._tests, self._suites)
        self._suites.write(b"</testsuite>\n")
        self._test_count = self._failure_count = 0

    def done(self, counts: LintCounts) -> None:
        self._out.write(b'<?xml version="1.0" encoding="utf-8"?>\n<testsuites name="answerback">\n')
        _copy(self._suites, self._out)
        self._out.write(b"</testsuites>\n")
        self._tests.close()
        self._suites.close()

    def _add_test(self, case: str) -> None:
        self._test_count += 1
        self._tests.write(f"{case}\n".encode("utf-8", "replace"))


def _copy(source: IO[bytes], target: IO[bytes]) -> None:
    source.seek(0)
    copyfileobj(source, target)
    source.seek(0)
    source.truncate()


def _attribute(text: str) -> str:
    return quoteattr(_printable(text))


def _text(text: str) -> str:
    return escape(_printable(text))


def _printable(text: str) -> str:
    """Return the text without control characters, which XML cannot express and terminals obey."""
    return UNSAFE_IN_TEXT.sub("�", text)
