"""What a text names: ids, issues and pull requests, tickets, commits, runs, messages, deploys. Pure and linear.

It would rather miss a mention than make one up: a false link leads an agent astray.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Final
from urllib.parse import unquote

from memory import ids

# A longer text names what it names in its beginning, or it is a log, and then its own thread is the link.
_MOST_CHARACTERS: Final = 2_000_000
_MOST_FOUND: Final = 500


@dataclass(frozen=True, slots=True)
class Reference:
    """One thing a text names. `key` is an id, or a thread's key, or what such a key ends with (a ticket, a commit)."""

    kind: str
    key: str


_OWNER: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})"
_NAME: Final = r"[A-Za-z0-9_.-]{1,100}"
_HOST: Final = r"https?://(?:www\.)?"

# Each pattern begins with a sign that few words hold, and what stands before the sign is looked at only there: one
# pattern for all, with looks behind at every character, takes four times as long.
_URL: Final = re.compile(r"https?://[^\s<>\"'`|\\^{}]{4,600}")
_PREFIX: Final = r"(?:trg|thr|wkr|ses|evt|nte|prp|drm|res|ana)_[a-z0-9]"
_ID: Final = re.compile(_PREFIX + r"[a-z0-9_.-]{1,95}")
_NUMBER: Final = re.compile(r"#([1-9]\d{0,8})(?![\w%#-]|[.,:]\d)")
_MERGE: Final = re.compile(r"!([1-9]\d{0,8})(?![\w-])")
_DASHED: Final = re.compile(r"-([1-9]\d{0,8})(?![\w-]|\.\d)")
_SHA: Final = re.compile(r"\b[0-9a-f]{7,40}\b(?![=+/-]|[.:]\w)")
_SLASH: Final = re.compile(r"/[A-Za-z0-9][A-Za-z0-9._/-]++")
# What stands before the sign, read backwards as far as a name can go, must be such a name as a whole.
_BACK: Final = re.compile(r"[A-Za-z0-9_./@#&=:-]*+")
_REPO: Final = re.compile(rf"{_OWNER}/{_NAME}")
_GROUP: Final = re.compile(rf"{_OWNER}(?:/{_NAME}){{1,6}}")
_WORD: Final = re.compile(r"[A-Z][A-Z0-9]{1,9}|[Gg][Hh]")
_HEAD: Final = re.compile(r"refs/heads|[A-Za-z][A-Za-z0-9._-]{1,30}")
_NO_SHA_AFTER: Final = re.compile(r"[#&%/.:=+-]$")
# Where none of this stands, nothing is named: most short texts end here.
_SIGNS: Final = re.compile(rf"[#!/]|-[1-9]|[0-9a-f]{{7}}|{_PREFIX}")
# A text with more of one sign than this is a dump, and its beginning says what there is.
_MOST_SIGNS: Final = 5_000

# Names with a number behind a dash that are no tickets: encodings, standards, hashes, protocols, licences, models.
_NO_TICKET: Final = frozenset(
    (
        "UTF", "ISO", "RFC", "SHA", "HTTP", "HTTPS", "TLS", "SSL", "CVE", "CWE", "GHSA", "PEP", "IEEE", "ANSI",
        "ASCII", "AES", "RSA", "MD", "UCS", "UTC", "GMT", "EST", "PST", "CET", "IPV", "USB", "HDMI", "COVID", "GPT",
        "PR", "MR", "GH", "ID", "NO", "VOL", "PART", "STEP", "DAY", "WEEK", "PHASE", "ES", "ECMA", "HTML", "CSS",
        "XML", "JSON", "SQL", "MP", "CP", "WINDOWS", "KOI", "BIG", "EUC", "CRC", "HMAC", "ED", "EC", "PS", "BASE",
        "BASE64", "DES", "RC", "ARM", "X", "AMD", "AVX", "SSE", "LGPL", "GPL", "AGPL", "MPL", "BSD", "MIT", "CC",
        "EPL", "EUPL", "APACHE", "PY", "PYTHON", "NODE", "JDK", "JAVA", "GCC", "CXX", "STD", "VT", "XTERM", "SOCKS",
        "OAUTH", "SAML", "SOC", "FIPS", "NIST", "OWASP", "ADR", "QWEN", "LLAMA", "CLAUDE", "GEMINI", "BLAKE",
        "SHAKE", "TOP", "LINE", "PORT", "CHAPTER", "SECTION", "FIGURE", "TABLE", "ITEM", "LEVEL", "RANK", "AT", "P",
        "H", "V", "S", "T", "A", "B", "C", "D", "E", "F", "G", "I", "J", "K", "L", "M", "N", "O", "Q", "R", "U", "W",
        "Y", "Z", "F1", "F2",
    )
)  # fmt: skip
# What stands before a number that is a place in a list, a line or a rank.
_RANKED: Final = re.compile(
    r"(?:\b(?:line|page|step|item|row|column|part|rule|case|test|player|number|option|attempt|section|chapter|figure|question|version|day|week|task|job|build|node|worker|thread|slide|lesson|level|top|rank(?:ed)?)s?|[cC]hannel)\s{0,2}$",
    re.I,
)
# `#1 priority` ranks, it names nothing.
_RANKS: Final = re.compile(
    r"\s+(?:priority|reason|choice|cause|goal|rule|thing|issue is|most|best|worst|fan|in the|on the list|source of)\b",
    re.I,
)
# Before a commit's short name, where it has letters or digits only, something must say that it is one.
_COMMIT_WORDS: Final = re.compile(
    r"(?:commit|sha|rev(?:ision)?|hash|head|cherry.?pick(?:ed)?(?: from)?|revert(?:s|ed)?|merge[ds]?"
    r"|fix(?:e[ds])?(?: in| by)?|bisect|parent|from|to|at|in|by|of|on)"
    r"[\s:=`'\"(\[]{1,3}$|[\[(`@]$|\.{2,3}$|(?:^|\n)[*|\\/ _-]{0,8}$",
    re.I,
)
_BRANCH_HEADS: Final = frozenset(
    (
        "fix", "feature", "feat", "bugfix", "hotfix", "chore", "docs", "refactor", "test", "tests", "release",
        "issue", "issues", "ticket", "pr", "pull", "dependabot", "renovate", "claude", "codex", "cursor", "copilot",
        "task", "story", "spike", "support", "perf", "ci", "build", "style", "users", "user", "dev", "wip",
    )
)  # fmt: skip
_BRANCH_TICKET: Final = re.compile(r"(?:^|[/_-])([A-Za-z]{2,10}-[1-9]\d{0,6})(?![A-Za-z0-9])")
_BRANCH_NUMBER: Final = re.compile(
    r"^(?:refs/heads/)?[\w.-]{1,31}/(?:issues?|pr|pull|gh|fix|bug|ticket|task)?[-_/]?#?([1-9]\d{0,6})(?:[-_/][A-Za-z]|$)|(?:^|[/_-])(?:issue|pr|gh|bug)[-_/]?([1-9]\d{0,6})(?![A-Za-z0-9])",
    re.I,
)


def references(text: str, *, repository: str | None = None) -> list[Reference]:
    """What the text names, each once, in the order of first mention; `repository` is what a bare `#412` belongs to.

    A key that names a repository begins with its host's name, as threads of webhooks do: `github:acme/payments#412`.
    """
    if not _SIGNS.search(text):
        return []
    host, _, home = repository.rpartition(":") if repository and ":" in repository else ("github", "", repository or "")
    return list(_first(_Text(text[:_MOST_CHARACTERS], host, home)))


def _first(text: "_Text") -> dict[Reference, None]:
    found: dict[Reference, None] = {}
    for _, reference in sorted(text.found(), key=lambda placed: placed[0]):
        found.setdefault(reference)
        if len(found) == _MOST_FOUND:
            break
    return found


class _Text:
    """One text, and each kind of thing it names with its place."""

    def __init__(self, text: str, host: str, home: str) -> None:
        self.text, self.host, self.home = text, host, home
        self.urls = [(url.start(), url.end()) for url in _URL.finditer(text)] if "://" in text else []
        self.starts = [start for start, _ in self.urls]

    def found(self) -> Iterator[tuple[int, Reference]]:
        for start, end in self.urls[:_MOST_SIGNS]:
            for reference in _of_url(self.text[start:end].rstrip(".,;:!?)]}*_~'\"…")):
                yield start, reference
        for sign, pattern, read in (
            ("_", _ID, self._id), ("#", _NUMBER, self._number), ("!", _MERGE, self._merge),
            ("-", _DASHED, self._dashed), ("", _SHA, self._sha), ("/", _SLASH, self._branch),
        ):  # fmt: skip
            # Most short texts hold few of the signs.
            if sign not in self.text:
                continue
            for match in islice(pattern.finditer(self.text), _MOST_SIGNS):
                if not self._in_url(match.start()):
                    for reference in read(match):
                        yield match.start(), reference

    def _in_url(self, place: int) -> bool:
        at = bisect_right(self.starts, place) - 1
        return at >= 0 and place < self.urls[at][1]

    def _before(self, match: re.Match[str], most: int) -> str:
        return self.text[max(0, match.start() - most) : match.start()]

    def _name_before(self, match: re.Match[str], most: int = 200) -> str:
        back = _BACK.match(self._before(match, most)[::-1])
        return back[0][::-1] if back else ""

    def _id(self, match: re.Match[str]) -> Iterator[Reference]:
        if not re.search(r"[A-Za-z0-9_/.@-]$", self._before(match, 1)):
            yield from _of_id(match[0])

    def _number(self, match: re.Match[str]) -> Iterator[Reference]:
        name = self._name_before(match)
        if _REPO.fullmatch(name):
            yield Reference("number", f"{self.host}:{name}#{match[1]}")
        elif self.home and name in ("", ":", "_") and _is_number(self.text, match, self.fences):
            yield Reference("number", f"{self.host}:{self.home}#{match[1]}")

    @cached_property
    def fences(self) -> "_Fences":
        return _Fences(self.text)

    def _merge(self, match: re.Match[str]) -> Iterator[Reference]:
        name = self._name_before(match)
        if _GROUP.fullmatch(name):
            yield Reference("pr", f"gitlab:{name}!{match[1]}")
        elif self.host == "gitlab" and self.home and not name:
            yield Reference("pr", f"gitlab:{self.home}!{match[1]}")

    def _dashed(self, match: re.Match[str]) -> Iterator[Reference]:
        word = self._name_before(match, 13).lstrip(":=")
        if not _WORD.fullmatch(word):
            return
        if word.upper() == "GH":
            if self.home:
                yield Reference("number", f"github:{self.home}#{match[1]}")
        elif word not in _NO_TICKET and len(match[1]) <= 7:
            yield Reference("ticket", word + match[0])

    def _sha(self, match: re.Match[str]) -> Iterator[Reference]:
        is_sized = len(match[0]) == 40 or len(match[0]) <= 12
        if is_sized and not _NO_SHA_AFTER.search(self._before(match, 1)) and _is_commit(self.text, match):
            yield Reference("commit", match[0])

    def _branch(self, match: re.Match[str]) -> Iterator[Reference]:
        head = self._name_before(match, 40).lstrip(":=")
        path = match[0].rstrip("._-/")
        if len(path) <= 120 and _HEAD.fullmatch(head):
            yield from _of_branch(head + path, self.host, self.home)


class _Fences:
    """Where fenced code stands: `# 412` and `#1` in it are comments and addresses of the code."""

    def __init__(self, text: str) -> None:
        self.marks = (
            [found.start() for found in re.finditer(r"^ {0,3}(?:```|~~~)", text, re.M)]
            if "\n```" in f"\n{text}" or "~~~" in text
            else []
        )
        self.at = 0

    def holds(self, place: int) -> bool:
        """Asked in rising order of place, so that all questions together cost one walk."""
        while self.at < len(self.marks) and self.marks[self.at] <= place:
            self.at += 1
        return self.at % 2 == 1


def _of_id(found: str) -> Iterator[Reference]:
    found = found.rstrip("._-")
    kind = ids.kind_of(found)
    prefix, _, rest = found.partition("_")
    # Only a caller's own id of a thread, trigger or worker is free in form; of the rest only minted ones exist.
    if kind and len(rest) > 1 and (prefix in ("thr", "trg", "wkr") or ids.is_typeid(found)):
        yield Reference(kind, found)


def _is_number(text: str, match: re.Match[str], fences: _Fences) -> bool:
    """Whether `#412` names an issue: no colour, no rank, no place in a list, not in code."""
    digits = match[1]
    before = text[max(0, match.start() - 32) : match.start()]
    after = text[match.end() : match.end() + 24]
    if fences.holds(match.start()):
        return False
    line_before = before.rpartition("\n")[2]
    if re.search(
        r"(?:color|colour|background|border|fill|stroke|shadow|rgb|hex)\b[\w\s-]{0,12}:?[^\n]{0,12}$|['\"]$|url\($|href=.?$|\bC$|\]\($",
        line_before,
        re.I,
    ):
        return False
    if len(digits) in (3, 6, 8) and re.match(r"\s*[;}]", after) and re.search(r":\s*$", line_before):
        return False
    return not (_RANKED.search(line_before) or (len(digits) < 2 and _RANKS.match(after)))


def _is_commit(text: str, match: re.Match[str]) -> bool:
    """Whether hex digits are a commit: 40 of them are; a few need letters and digits both, and a word that says so."""
    sha = match[0]
    if len(sha) == 40:
        return sha.strip("0") != ""
    has_both = any(sign.isdigit() for sign in sha) and any(sign.isalpha() for sign in sha)
    if not has_both or re.fullmatch(r"\d+e\d+", sha):
        return False
    before = text[max(0, match.start() - 24) : match.start()]
    if re.search(
        r"(?:color|colour|uuid|guid|\bid|token|digest|etag|md5|checksum|address|mac|0x|nonce|session)[\s:=\"'`(]{0,3}$",
        before,
        re.I,
    ):
        return False
    is_word = sum(sign.isdigit() for sign in sha) < 2
    return text[match.end() : match.end() + 1] != "@" and not is_word and bool(_COMMIT_WORDS.search(before))


def _of_branch(found: str, host: str, home: str) -> Iterator[Reference]:
    """The ticket or the number a branch's name carries, where the first part says that it is a branch."""
    bare = found.removeprefix("refs/heads/").rstrip("._-/")
    is_named = found.startswith("refs/heads/") or bare.split("/")[0].lower() in _BRANCH_HEADS
    ticket = _BRANCH_TICKET.search(bare)
    if ticket:
        project = ticket[1].split("-")[0]
        if (is_named or project.isupper()) and project.upper() not in _NO_TICKET | _WORDS_IN_BRANCHES:
            yield Reference("ticket", ticket[1].upper())
            return
    number = _BRANCH_NUMBER.search(bare) if is_named else None
    if number and home:
        yield Reference("number", f"{host}:{home}#{number[1] or number[2]}")


_WORDS_IN_BRANCHES: Final = frozenset(
    (
        "ISSUE", "ISSUES", "BUG", "FIX", "PR", "PULL", "GH", "TASK", "TICKET", "PATCH", "VERSION", "STAGE", "BUMP",
        "UPDATE", "NODE", "PHASE", "STEP", "PART", "TRY", "TAKE",
    )
)  # fmt: skip

_GITHUB: Final = re.compile(
    rf"^(?:{_HOST}github\.com|{_HOST}api\.github\.com/repos)/(?P<repo>{_OWNER}/{_NAME})/(?P<what>pull|pulls|issues|discussions|commit|commits|actions/runs"
    r"|deployments|releases/tag|tree)/(?P<key>[^/?#\s]+)(?:/job/(?P<job>\d+))?"
)
_GITLAB: Final = re.compile(
    r"^https?://(?P<host>gitlab\.[\w.-]{2,60}|[\w-]{1,40}\.gitlab\.[\w.-]{2,40})/(?P<repo>[\w.-]{1,100}(?:/[\w.-]{1,100}){1,8}?)/-/(?P<what>merge_requests|issues|work_items|commit|pipelines|jobs|releases)/(?P<key>[\w.-]{1,100})"
)
_SLACK: Final = re.compile(
    r"^https?://(?P<team>[\w-]{1,60})\.slack\.com/archives/(?P<channel>[A-Z0-9]{6,14})/p(?P<ts>\d{10})(?P<micro>\d{6})(?:\?(?:[^\s#]{0,200}&)?thread_ts=(?P<thread>\d{10}\.\d{6}))?"
)
_TICKETS: Final = re.compile(
    r"^https?://(?:linear\.app/[\w-]{1,60}/issue|[\w-]{1,60}\.atlassian\.net/(?:browse|jira/[\w/-]{1,100}/issues)|[\w.-]{1,60}/browse|[\w-]{1,60}\.youtrack\.cloud/issue)/(?P<ticket>[A-Z][A-Z0-9]{1,9}-[1-9]\d{0,6})(?![\w-])"
)
_DEPLOY: Final = re.compile(
    r"^https?://(?P<where>[\w-]{1,80}\.(?:vercel\.app|netlify\.app|onrender\.com|fly\.dev|pages\.dev|herokuapp\.com|up\.railway\.app|web\.app))(?:[/?#]|$)"
    r"|^https?://(?P<console>(?:vercel\.com|app\.netlify\.com|dashboard\.render\.com|railway\.app|fly\.io)/[^\s?#]{3,200})"
)


def _of_url(url: str) -> Iterator[Reference]:
    url = url.partition("&gt;")[0]
    if found := _GITHUB.match(url):
        yield from _of_github(found)
    elif found := _GITLAB.match(url):
        yield from _of_gitlab(found)
    elif found := _SLACK.match(url):
        ts = found["thread"] or f"{found['ts']}.{found['micro']}"
        yield Reference("message", f"slack:{found['channel']}:{ts}")
    elif found := _TICKETS.match(url):
        yield Reference("ticket", found["ticket"])
    elif found := _DEPLOY.match(url):
        yield Reference("deploy", (found["where"] or found["console"]).rstrip("/").lower())


def _of_github(found: re.Match[str]) -> Iterator[Reference]:
    repo, what, key = found["repo"].removesuffix(".git"), found["what"], unquote(found["key"])
    if what in ("pull", "pulls", "issues", "discussions"):
        if key.isascii() and key.isdigit() and key[0] != "0" and len(key) < 10:
            kind = {"pull": "pr", "pulls": "pr", "issues": "issue"}.get(what, "number")
            yield Reference(kind, f"github:{repo}#{key}")
    elif what in ("commit", "commits"):
        if re.fullmatch(r"[0-9a-f]{7,40}", key):
            yield Reference("commit", key)
    elif what == "actions/runs":
        if key.isascii() and key.isdigit():
            yield Reference("run", f"github:{repo}/runs/{key}")
    elif what == "deployments":
        if key.isascii() and key.isdigit():
            yield Reference("deploy", f"github:{repo}/deployments/{key}")
    elif what == "releases/tag":
        yield Reference("release", f"github:{repo}/releases/{key}")
    elif what == "tree":
        yield from _of_branch(f"refs/heads/{key}", "github", repo)


def _of_gitlab(found: re.Match[str]) -> Iterator[Reference]:
    repo, what, key = found["repo"], found["what"], found["key"]
    if what == "commit":
        if re.fullmatch(r"[0-9a-f]{7,40}", key):
            yield Reference("commit", key)
    elif what == "releases":
        yield Reference("release", f"gitlab:{repo}/releases/{key}")
    elif key.isascii() and key.isdigit():
        kind, sign = {
            "merge_requests": ("pr", "!"),
            "issues": ("issue", "#"),
            "work_items": ("issue", "#"),
            "pipelines": ("run", "/pipelines/"),
            "jobs": ("run", "/jobs/"),
        }[what]
        yield Reference(kind, f"gitlab:{repo}{sign}{key}")
