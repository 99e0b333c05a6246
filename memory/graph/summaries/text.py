"""Plain text by its first sentence; a CI log by its first real error."""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from memory.graph.summaries.line import one_line, whole, without_ansi

# What a runner puts before each line: the task's clock, a clock, a level, a job's name.
_CLOCK: Final = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
_PREFIX: Final = re.compile(
    rf"^(?:\ufeff|\[(?:task|vcs|taskcluster|fetches) {_CLOCK}\]\s?|\[?{_CLOCK}\]?\s|\[?\d\d:\d\d:\d\d(?:[.,]\d+)?\]?\s"
    r"|\s*(?:INFO|DEBUG|TRACE|NOTICE) (?:- |\s*\| )|\s+(?=##\[)|[a-z][\w.-]{0,30}\s+\|\s)+"
)
# Script text that a shell or a runner shows before it runs it, and words of lines that only count or configure.
_ECHOED: Final = re.compile(
    r"^[=_]{3,}|^\s*(?:\++ |\$ |#(?!#\[error)|//|echo\b|fail\b|if\b|\[command\]"
    r"|##\[(?:group|command|debug|warning|section|endgroup)\]|::(?:group|debug|warning|add-mask)"
    r"|[\w-]+\(\) ?\{|(?:retry|Calling|Running|Copy/paste|Using|Collecting|Downloading)\b)"
    r"|\becho [\"']|^\s*['\"][\w.-]+['\"]:"
)
_CALM: Final = re.compile(
    r"\b(?:0|no|zero|without) (?:errors?|failures?|failed|fatal|problems?)\b"
    r"|\b(?:errors?|failures?|failed)[:=] ?0\b(?!\.)"
    r"|\bTEST-(?:PASS|OK|INFO|START|KNOWN-FAIL|EXPECTED-FAIL)\b"
    r"|\bexpected(?:ly)? (?:fail|error)|\bxfail(?:ed)?\b|--[\w-]*(?:error|fail)[\w-]*"
    r"|\berrors?[-_]?(?:summary|log|handler|page|code)\b|\.\.\. ?ok$|\bPASS(?:ED)?\b"
    r"|\bok \d+ |✓|✔|\bretry(?:ing)?\b.{0,40}\battempt"
    r"|\bcontinue-on-error\b|\bfail-fast\b|\bWARN(?:ING)?\b(?!.*LEAKING)|^warning",
    re.I,
)


@dataclass(frozen=True)
class _Rule:
    """A sign of failure. Rank 1 says what went wrong, 2 that something did, 3 that the run ended badly."""

    rank: int
    # One of these stands, in lower case, in every line that fits: to look for them costs a hundredth of the pattern.
    words: tuple[str, ...]
    pattern: re.Pattern[str]
    # Where the next lines say the rest: which of them, and how far to look.
    more: re.Pattern[str] | None = None
    within: int = 0


def _rule(rank: int, words: str, pattern: str, more: str = "", within: int = 0) -> _Rule:
    return _Rule(rank, tuple(words.split("|")), re.compile(pattern), re.compile(more) if more else None, within)


# How runs end, which would also fit a rule below; then what says the fault; then what is only a word.
_RULES: Final = (
    _rule(
        3,
        "exit code",
        r"^(?:##\[error\]|Error: |::error::)?\s*(?:The )?[Pp]rocess (?:completed|.{0,300} failed) with exit code",
    ),
    _rule(
        3,
        "taskcluster:error|make|ninja",
        r"^\[taskcluster:error\]|^\s*g?(?:make|ninja)(?:\[\d+\])?: (?:\*\*\* )?.*(?:Error \d|[Ss]topped|Interrupt)",
    ),
    _rule(
        3,
        "npm err|error",
        r"^(?:npm (?:ERR!|error)|error) (?:A complete log|Exit status|errno|code ELIFECYCLE|Lifecycle|This is probably"
        r"|\S+@\S+ \S+: `|Command failed with|path |command )|^npm (?:ERR!|error)\s*$",
    ),
    _rule(
        3,
        "error: ",
        r"^collect2: error: ld returned|^error: (?:Recipe|could not compile|aborting due|test failed"
        r"|process didn't exit)",
    ),
    _rule(
        3,
        "[error]",
        r"^\[ERROR\] (?:->|To see|Re-run|For more|After correcting|\[Help|Please refer|There are test)|^\[ERROR\]\s*$",
    ),
    _rule(
        2,
        "[error]|fail",
        r"^\[ERROR\] (?:COMPILATION ERROR|Failed to execute goal|Tests run:|Failures:|Errors:|BUILD)"
        r"|^\[?BUILD FAIL|^FAILURE: Build failed",
    ),
    # Test runners.
    _rule(
        1,
        "test-unexpected|process-crash|assertion fail|leaking|sanitizer|==error",
        r"\bTEST-UNEXPECTED-|^PROCESS-CRASH\b"
        r"|\bAssertion fail(?:ed|ure)\b|\bLEAKING\b|^(?:SUMMARY|ERROR): \w+Sanitizer|==\d+==ERROR: ",
    ),
    _rule(
        1,
        "failed |error |fail: |error: ",
        r"^FAILED (?:\S+::|\S+\.py)\S*|^ERROR (?:\S+::|\S+\.py)\S* - |^(?:FAIL|ERROR): \w+ \(",
        r"^(?:[\w.]*(?:Error|Exception)\b.*)",
        25,
    ),
    _rule(1, "--- fail", r"^\s*--- FAIL: \S+", r"^\s+\S+\.\w+:\d+: ?.+|^\s+Error:\s+\S.*", 12),
    _rule(1, "fail", r"^\s*FAIL:?\s+\S+\.(?:[cm]?[jt]sx?|vue|svelte)\b", r"^\s*(?:●|×|✕|→)\s*(?!Console).+", 40),
    _rule(1, "●|✕|✗|✘|×", r"^\s*(?:●|✕|✗|✘|×) (?!Console)\S", r"^\s*(?:[\w.]*Error:|expect\(|Expected).*", 8),
    _rule(1, "not ok", r"^not ok \d+ (?!.*# (?:TODO|SKIP))", r"^\s*(?:message|error): .*", 8),
    _rule(
        1,
        "fail|rspec",
        r"^test \S+ \.\.\. FAILED$|^rspec \./|^\s*Failure/Error: |^Failed asserting that|^\s*Failed \S+ \[\d+",
    ),
    _rule(1, "panicked at", r"^thread '.*' (?:\(\d+\) )?panicked at ", r"^\S.*", 1),
    _rule(
        1,
        "[error]|<<<",
        r"^\[ERROR\]\s+\S*(?:\.(?:java|kt|scala|groovy):?\[?\d|Test\w*[.(:])|<<< (?:FAILURE|ERROR)!",
        r"^[\w.$]+(?:Error|Exception|Failure)\b.*",
        1,
    ),
    # Compilers, linters, packagers.
    _rule(1, "error", r"^error(?:\[\w+\])?: \S", r"^\s*--> \S+", 3),
    _rule(
        1,
        "error",
        r"^\S+?[:(]\d+(?:[:,]\d+)?\)?\s?[:-]\s*(?:fatal )?error\b"
        r"|: fatal error[: ]|\berror [A-Z]{1,6}\d{2,6}:|^ld\S*: error",
    ),
    _rule(
        1,
        "undefined reference|ld: |e: /|e: f",
        r"\bundefined reference to\b|^ld: (?:library not found|symbol)|^e: (?:file:)?/?\S+\.kts?:",
    ),
    _rule(
        1,
        " error |.py:|.go:",
        r"^\s+\d+:\d+\s+error\s+\S|^\S+\.py:\d+:(?:\d+:)? (?:error:|[EF]\d{3} )|^\S+\.go:\d+:\d+: \S",
    ),
    _rule(
        2, "npm err|npm error", r"^npm (?:ERR!|error) code E", r"^npm (?:ERR!|error) (?!code|errno|syscall|path).*\S", 4
    ),
    _rule(
        2,
        "npm err|npm error|err_pnpm|error ",
        r"^npm (?:ERR!|error) \S|^(?:(?:yarn|pnpm)\s*:?\s*error|ERR_PNPM_\w+) \S",
    ),
    _rule(
        1,
        "error|e: ",
        r"^ERROR: (?:failed to|process |Could not find|No matching|Cannot|Failed|ResolutionImpossible"
        r"|Job failed)|^E: \S|^ERROR \[",
    ),
    _rule(1, "went wrong", r"^\* What went wrong:", r"^\S.*", 1),
    _rule(1, "cmake error", r"^CMake Error\b", r"^\s+\S.*", 3),
    # Programs.
    _rule(
        1,
        "panic: |fatal|segmentation|core dumped|out of memory|killed|runtime error|oomkilled",
        r"^panic: |^fatal: |^FATAL(?: ERROR)?:"
        r"|^Segmentation fault|\bcore dumped\b|\b[Oo]ut of memory\b|^Killed\b"
        r"|^runtime error: |OOMKilled|heap out of memory",
    ),
    _rule(
        1,
        "error|fatal",
        r"^(?:##\[error\]|::error(?: [^:]{0,300})?::|\[error\]\s?|\[ERROR\]\s?|Error: |ERROR: |\[?FATAL\]?:? )\s*\S",
    ),
    # Pytest's own summary, further down, names the test as well.
    _rule(2, "e   ", r"^E   +(?:assert\b|.*(?:Error|Exception|Failed))"),
    _rule(
        1,
        "error|exception|interrupt|uncaught|unhandled|caused by",
        r"^(?:[a-zA-Z_][\w$]*\.)*[A-Z]\w*(?:Error|Exception|Interrupt)(?:: .+|$)"
        r"|^Uncaught |^Unhandled \w*rejection|^Exception in thread |^Caused by: ",
    ),
    _rule(
        1,
        ": line |not found|denied|no such file",
        r": line \d+: .*|: command not found\b|^sh: (?:\d+: )?\S+: (?:not found|Permission denied)"
        r"|^\S+: .*: No such file or directory$",
    ),
    # Only words.
    _rule(
        2,
        "error|fatal|critical|severe|fail|abort|crash|panic|exception",
        r"\b(?:ERROR|FATAL|CRITICAL|SEVERE|FAILED|FAILURE|FAIL|ABORTED|CRASHED|PANIC)\b"
        r"|^[Ee]rror\b|\b[Ee]xception\b.*:|\b[a-z]+ error: ",
    ),
    _rule(
        2,
        "timed out|timeout|refused|denied|cannot|could not|unable",
        r"\b(?:timed out|timeout exceeded|[Cc]onnection refused|[Pp]ermission denied"
        r"|[Aa]ccess denied|[Cc]annot find|[Cc]ould not|[Uu]nable to)\b",
    ),
    _rule(3, "exit|failed", r"\bexit(?:ed)?(?: with)?(?: code| status)? [1-9]\d*\b|\bfailed\b"),
)
_WORDS: Final = {word for rule in _RULES for word in rule.words if word not in ("make", "ninja")}
# What holds another hint need not be looked for itself.
_HINTS: Final = sorted(word for word in _WORDS if not any(other in word for other in _WORDS - {word}))
_LONGEST_LINE: Final = 2000
_LAST: Final = 20_000
_PIECE: Final = 1_000_000
_TAG: Final = re.compile(r"^(?:##\[error\]|::error(?: [^:]{0,300})?::|\[ERROR\]|(?:##)?\[error\])\s*")


@dataclass(frozen=True)
class Sign:
    """A line that says a run failed: its number from 1, and its words without clock and colours."""

    number: int
    words: str
    rank: int


def log_line(payload: bytes) -> str:
    """The first real error of a log, else its last words."""
    log = payload.decode("utf-8", "replace")
    sign = first_error(log)
    if sign is not None:
        return one_line(_TAG.sub("", sign.words))
    end = log[-_LAST:].splitlines()
    return next((one_line(bare(raw)) for raw in reversed(end) if bare(raw).strip()), "")


def first_error(log: str) -> Sign | None:
    """The first of the signs that say most: one that names the fault before one that only says there was one."""
    best: Sign | None = None
    # A progress bar's carriage returns end lines too.
    for sign in _signs(log.replace("\r\n", "\n").replace("\r", "\n")):
        if sign.rank == 1:
            return sign
        if best is None or sign.rank < best.rank:
            best = sign
    return best


def _signs(log: str) -> Iterator[Sign]:
    low = log.lower()
    # A sign that changes its length in lower case would move every place behind it.
    low = low if len(low) == len(log) else "".join(one if len(one.lower()) != 1 else one.lower() for one in log)
    most = 3
    for start in _hinted(low):
        end = start + _LONGEST_LINE
        stop = log.find("\n", start, end)
        line = bare(log[start : stop if stop >= 0 else end])
        rule = _ruled(line, low[start : stop if stop >= 0 else end], most)
        if rule is not None:
            # A second sign of the same rank would not be told: only what says more is still looked for.
            most = rule.rank - 1 or 1
            following = log[stop + 1 : stop + 1 + rule.within * 400].split("\n")[: rule.within] if stop >= 0 else []
            yield Sign(log.count("\n", 0, start) + 1, _with_more(line, rule, following), rule.rank)


def _hinted(low: str) -> Iterator[int]:
    """Where the lines begin that hold a hint: each is looked for in a megabyte at once, not in each line."""
    begin = 0
    while begin < len(low):
        end = low.find("\n", begin + _PIECE)
        end = len(low) if end < 0 else end + 1
        starts: set[int] = set()
        for hint in _HINTS:
            at = low.find(hint, begin, end)
            while at >= 0:
                starts.add(low.rfind("\n", begin, at) + 1 or begin)
                stop = low.find("\n", at, end)
                at = low.find(hint, stop, end) if stop >= 0 else -1
        yield from sorted(starts)
        begin = end


def _ruled(line: str, low: str, most: int) -> _Rule | None:
    for rule in _RULES:
        if any(word in low for word in rule.words) and rule.pattern.search(line):
            is_noise = rule.rank > most or _ECHOED.search(line) or (rule.rank > 1 and _CALM.search(line))
            return None if is_noise else rule
    return None


def _with_more(line: str, rule: _Rule, following: list[str]) -> str:
    line = line.strip()
    if rule.more is None:
        return line
    for raw in following:
        next_line = bare(raw)
        if rule.more.search(next_line):
            return f"{line.rstrip(':')}: {next_line.strip()}"
    return line


def bare(raw: str) -> str:
    """A log's line without colours, clock and level."""
    return _PREFIX.sub("", without_ansi(raw[:_LONGEST_LINE]))


def line(payload: bytes, most: int, *, is_html: bool = False) -> str:
    """The first sentence of a text; of a page its title."""
    text = payload[:most].decode("utf-8", "replace")
    if is_html or text.lstrip()[:15].lower().startswith(("<!doctype html", "<html")):
        text = _of_page(text)
    if text.startswith("---\n") and (end := text.find("\n---", 4)) > 0:
        text = text[end + 4 :]  # frontmatter says how to file it, not what it says
    return _sentence(text)


def _of_page(text: str) -> str:
    title = re.search(r"<title[^>]{0,200}>([^<]{1,400})", text, re.I)
    if title:
        return whole(html.unescape(title[1]))
    text = re.sub(r"(?is)<(script|style)\b.*?</\1\s*>", " ", text)
    return whole(html.unescape(re.sub(r"<[^<>]{0,2000}>", " ", text)))


def _sentence(text: str) -> str:
    paragraph = ""
    for raw in text.splitlines():
        flat = one_line(re.sub(r"^[#>*\-+=|\s]+", "", raw), 1000)
        if not any(character.isalnum() for character in flat):
            if paragraph:
                break
            continue
        is_heading = raw.lstrip().startswith("#")
        paragraph = f"{paragraph} {flat}".strip()
        if is_heading or len(paragraph) > 400:
            break
    end = re.search(r"(?<=[.!?。！？])(?:\s|$)|(?<=[。！？])", paragraph[20:])
    return one_line(paragraph[: 20 + end.start()] if end else paragraph or text)
