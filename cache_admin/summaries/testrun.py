"""Test runs: what failed and why, from JUnit XML or from the text that pytest, go test and jest print."""

import re
from typing import Final

from junitparser import JUnitXml, TestSuite
from junitparser.junitparser import JUnitXmlError

from cache_admin.summaries.fit import rows_of

MOST: Final = 100
MESSAGE_LINES: Final = 25
CLIP: Final = 400
# The patterns backtrack: of a line of a megabyte they see the beginning.
LOOKED_AT: Final = 1_000
_JUNIT: Final = re.compile(r"\s*(?:<\?xml[^>]*>\s*)?<testsuites?\b")
# No blank here crosses a line: over a run of empty lines the time would grow with its square.
_RUN: Final = re.compile(
    r"^=+ (?:test session starts|FAILURES|short test summary info|\d+ (?:passed|failed).*) ?=*|^--- (?:FAIL|PASS): |"
    r"^(?:ok|FAIL)[^\S\n]+\S+[^\S\n]+(?:\(cached\)|[\d.]+s)|^[^\S\n]*+Tests?:[^\S\n]+.*\b(?:passed|failed)\b|"
    r"^Ran \d+ tests? in|^[^\S\n]++[✓✗×✕] ",
    re.MULTILINE,
)
_FAILURE: Final = re.compile(
    r"^\s*+(?:FAILED |ERROR |--- FAIL: |FAIL\b|E   |✕ |✗ |× |● |not ok |FAIL: |ERROR: |AssertionError|panic:|"
    r"thread '.*' panicked|Error Trace:|Error:|Expected\b|Received\b|expected\b|actual\b|.*_test\.go:\d+: |>   )"
)
_TOTAL: Final = re.compile(
    r"^=+ .*(?:passed|failed|error).* =+$|^\s*(?:Tests?|Test Suites|Test Files):\s|^Ran \d+ tests?|^FAILED \(|^OK\b|"
    r"^(?:ok|FAIL)\s+\S+\s+(?:\(cached\)|[\d.]+s)|^test result: |^# (?:pass|fail|tests) |^FAIL$|^coverage: "
)


def _says(row: str) -> bool:
    return bool(_FAILURE.match(row) or _TOTAL.match(row))


def is_test_run(text: str) -> bool:
    """Whether this is what a test runner prints."""
    return bool(_JUNIT.match(text)) or bool(_RUN.search(text[:200_000])) or bool(_RUN.search(text[-20_000:]))


def summary(text: str) -> str:
    """The totals, and each failure with its message; empty where this is no test run."""
    if _JUNIT.match(text):
        return _junit(text)
    return _text(text) if is_test_run(text) else ""


def _junit(text: str) -> str:
    # An entity can grow without bound; no test runner writes one.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        return ""
    try:
        parsed = JUnitXml.fromstring(text.encode())
    except (JUnitXmlError, ValueError, SyntaxError):
        return ""
    suites = [parsed] if isinstance(parsed, TestSuite) else list(parsed)
    count = 0
    failed: list[str] = []
    for suite in suites:
        for case in suite:
            count += 1
            for outcome in case.result:
                if type(outcome).__name__ in ("Failure", "Error"):
                    failed += _failure(f"{case.classname or ''}.{case.name}".lstrip("."), outcome.message, outcome.text)
    return "\n".join([f"[{count} test cases]", *failed]) if count else ""


def _failure(name: str, message: str | None, text: str | None) -> list[str]:
    detail = [row for row in (text or "").splitlines() if row.strip()]
    hidden = [f"    [{len(detail) - MESSAGE_LINES} more lines]"] if len(detail) > MESSAGE_LINES else []
    first = f"FAILED {name}: {(message or '').strip()[:CLIP]}"
    return [first, *(f"    {row[:CLIP]}" for row in detail[-MESSAGE_LINES:]), *hidden]


def _text(text: str) -> str:
    rows = rows_of(text)
    kept = [number for number, row in enumerate(rows) if _says(row[:LOOKED_AT])]
    shown = kept[: MOST * 5]
    lines = [f"{number + 1}: {rows[number][:CLIP]}" for number in shown]
    if len(kept) > len(shown):
        lines.append(f"[{len(kept) - len(shown)} more lines about failures]")
    last = [row[:CLIP] for row in rows[-5:]]
    return "\n".join([f"[{len(rows)} lines; failures and totals, with line numbers:]", *lines, "[last lines:]", *last])
