"""The outcomes as a table, as JSON and as JUnit's XML."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from memory.management.contracts.run import Outcome

KINDS: Final = ("cli", "json", "junit")
FILES: Final = {"json": "contracts.json", "junit": "contracts.xml"}
_SHOWN: Final = 20
# What XML 1.0 can't hold, not even as a reference.
_NO_XML: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass
class Report:
    """One run: where, what came of it, and what else is to be said."""

    address: str
    outcomes: list[Outcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    interrupted: bool = False

    @property
    def broken(self) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.broken]

    @property
    def seconds(self) -> float:
        return sum(outcome.seconds for outcome in self.outcomes)


def table(report: Report) -> list[str]:
    """Lines for a terminal: each contract with its time, the broken ones with the hop that broke."""
    width = max((len(outcome.name) for outcome in report.outcomes), default=0)
    lines = [f"{'':<8}{'contract':<{width}}  requests   median  slowest     whole"]
    for outcome in report.outcomes:
        state = "BROKEN" if outcome.broken else outcome.state
        lines.append(
            f"{state:<8}{outcome.name:<{width}}  {len(outcome.spent):>8}  {outcome.median_ms:>4.0f} ms"
            f"  {outcome.slowest_ms:>4.0f} ms  {outcome.seconds:>6.2f} s"
            + (f"  {outcome.skipped}" if outcome.skipped else "")
        )
        lines += _complaints(outcome)
    lines += report.notes
    return [*lines, summary(report)]


def _complaints(outcome: Outcome) -> list[str]:
    lines = []
    for broken in outcome.broken[:_SHOWN]:
        lines += [
            f"        {broken.request}",
            f"          expected {broken.expected}",
            f"          got      {broken.got}",
        ]
    if len(outcome.broken) > _SHOWN:
        lines.append(f"        and {len(outcome.broken) - _SHOWN} more; the JSON report has all")
    return lines


def summary(report: Report) -> str:
    """The whole in one line."""
    states = [outcome.state for outcome in report.outcomes]
    skipped = f", {states.count('skipped')} skipped" if "skipped" in states else ""
    stopped = " Stopped before the end." if report.interrupted else ""
    counts = f"{states.count('ok')} hold, {states.count('broken')} broken{skipped}"
    return f"{counts}, in {report.seconds:.1f} s at {report.address}.{stopped}"


def as_json(report: Report) -> str:
    """The whole as one JSON object."""
    said = {
        "base_url": report.address,
        "at": report.at.isoformat(),
        "seconds": round(report.seconds, 3),
        "holds": not report.broken and not report.interrupted,
        "interrupted": report.interrupted,
        "contracts": [_row(outcome) for outcome in report.outcomes],
        "notes": report.notes,
    }
    return json.dumps(said, indent=2, ensure_ascii=False) + "\n"


def _row(outcome: Outcome) -> dict[str, object]:
    return {
        "name": outcome.name,
        "sentence": outcome.sentence,
        "state": outcome.state,
        "skipped": outcome.skipped or None,
        "seconds": round(outcome.seconds, 3),
        "requests": len(outcome.spent),
        "median_ms": round(outcome.median_ms, 2),
        "slowest_ms": round(outcome.slowest_ms, 2),
        "broken": [{"request": one.request, "expected": one.expected, "got": one.got} for one in outcome.broken],
    }


def as_junit(report: Report) -> str:
    """JUnit's XML: one test case for each contract."""
    numbers: dict[str, str] = {
        "tests": str(len(report.outcomes)),
        "failures": str(len(report.broken)),
        "errors": "0",
        "skipped": str(sum(outcome.state == "skipped" for outcome in report.outcomes)),
        "time": f"{report.seconds:.3f}",
    }
    suites = ElementTree.Element("testsuites", {"name": "contracts", **numbers})
    begun = report.at.replace(tzinfo=None).isoformat(timespec="seconds")
    suite = ElementTree.SubElement(suites, "testsuite", {"name": "contracts", "timestamp": begun, **numbers})
    for outcome in report.outcomes:
        case = ElementTree.SubElement(
            suite, "testcase", classname="contracts", name=outcome.name, time=f"{outcome.seconds:.3f}"
        )
        if outcome.broken:
            failure = ElementTree.SubElement(case, "failure", type="Broken", message=clean(str(outcome.broken[0])))
            failure.text = clean("\n".join([outcome.sentence, *map(str, outcome.broken)]))
        elif outcome.skipped:
            ElementTree.SubElement(case, "skipped", message=clean(outcome.skipped))
    if report.notes:
        ElementTree.SubElement(suite, "system-out").text = clean("\n".join(report.notes))
    ElementTree.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suites, encoding="unicode") + "\n"


def clean(text: str) -> str:
    """The text without what XML can't hold."""
    return _NO_XML.sub("\ufffd", text)


def write(report: Report, kinds: Sequence[str], folder: Path) -> list[Path]:
    """Write the reports that are files; their paths."""
    made = []
    for kind, text in (("json", as_json), ("junit", as_junit)):
        if kind in kinds:
            path = folder / FILES[kind]
            path.write_text(text(report), encoding="utf-8", errors="backslashreplace")
            made.append(path)
    return made
