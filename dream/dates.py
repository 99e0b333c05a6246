"""Words such as "yesterday" as dates. Pure: a line and the time of the event it rests on.

A note is read months later: what was relative to a conversation means nothing then.
"""

import re
from datetime import date, datetime, timedelta
from typing import Final

_DAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS: Final = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_UNITS: Final = {"day": 1, "week": 7}
# What is quoted or is code are the words themselves: `date -d yesterday` stays a command.
_LEFT_ALONE: Final = re.compile(r"(`[^`]*`|“[^”]*”|\"[^\"]*\")")
_SHIFTS: Final[tuple[tuple[re.Pattern[str], int], ...]] = (
    (re.compile(r"\bthe day before yesterday\b|\bhôm kia\b|前天", re.I), -2),
    (re.compile(r"\bthe day after tomorrow\b|\bngày kia\b|后天", re.I), 2),
    (re.compile(r"\byesterday\b|\blast night\b|\bhôm qua\b|昨天", re.I), -1),
    (re.compile(r"\btomorrow\b|\bngày mai\b|明天", re.I), 1),
    (re.compile(r"\btoday\b|\btonight\b|\bthis (?:morning|afternoon|evening)\b|\bhôm nay\b|今天", re.I), 0),
)
_AGO: Final = re.compile(rf"\b(\d{{1,3}}|{'|'.join(_NUMBERS)}) (day|week)s? ago\b", re.I)
_IN: Final = re.compile(rf"\bin (\d{{1,3}}|{'|'.join(_NUMBERS)}) (day|week)s?\b(?! of)", re.I)
_WEEKDAY: Final = re.compile(rf"\b(?:on )?(last|next|this) ({'|'.join(_DAYS)})\b", re.I)
_SPAN: Final = re.compile(r"\b(last|next|this) (week|month|year)\b", re.I)
_NOW: Final = re.compile(r"\bfrom now on\b|\b(?:right|just) now\b|\bas of now\b", re.I)


def absolute(line: str, at: datetime | None) -> str:
    """The line with relative dates turned into those of `at`; as it is where no time is known."""
    if at is None:
        return line
    parts = _LEFT_ALONE.split(line)
    return "".join(part if place % 2 else _resolved(part, at.date()) for place, part in enumerate(parts))


def _resolved(text: str, day: date) -> str:
    for pattern, shift in _SHIFTS:
        text = pattern.sub((day + timedelta(days=shift)).isoformat(), text)
    text = _AGO.sub(lambda found: _moved(day, found, -1), text)
    text = _IN.sub(lambda found: f"on {_moved(day, found, 1)}", text)
    text = _WEEKDAY.sub(lambda found: _weekday(day, found[1].lower(), found[2].lower()), text)
    text = _SPAN.sub(lambda found: _span(day, found[1].lower(), found[2].lower()), text)
    return _NOW.sub(lambda found: f"{'since' if 'on' in found[0] else 'on'} {day.isoformat()}", text)


def _moved(day: date, found: "re.Match[str]", sign: int) -> str:
    count = int(found[1]) if found[1].isdigit() else _NUMBERS[found[1].lower()]
    return (day + sign * timedelta(days=count * _UNITS[found[2].lower()])).isoformat()


def _weekday(day: date, which: str, name: str) -> str:
    wanted = _DAYS.index(name)
    if which == "last":
        return (day - timedelta(days=(day.weekday() - wanted - 1) % 7 + 1)).isoformat()
    if which == "next":
        return (day + timedelta(days=(wanted - day.weekday() - 1) % 7 + 1)).isoformat()
    return (day + timedelta(days=wanted - day.weekday())).isoformat()


def _span(day: date, which: str, unit: str) -> str:
    step = {"last": -1, "this": 0, "next": 1}[which]
    if unit == "year":
        return str(day.year + step)
    if unit == "month":
        year, month = divmod(day.year * 12 + day.month - 1 + step, 12)
        return f"{year}-{month + 1:02d}"
    monday = day + timedelta(days=7 * step - day.weekday())
    return f"the week of {monday.isoformat()}"
