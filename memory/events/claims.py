"""What a session works on, by rule, from what its events say. Pure: no database, no clock.

A session works on a pull request that it made, pushed to, or wrote in; on what its own branch is named after; and on
what a person's prompt gives it. What it only reads is not its work: it would rather miss a thread than claim a false
one.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from memory.graph.references import references

# A person who names more than this in one prompt shows a list.
MOST_IN_A_PROMPT: Final = 3
_PROMPT: Final = 4_000
_OUTPUT: Final = 64 * 1024
_MOST: Final = 40
# Branches of everybody, which no one task is named after.
_SHARED: Final = frozenset(
    ("main", "master", "trunk", "develop", "development", "dev", "staging", "production", "next", "gh-pages", "HEAD")
)
_NAME: Final = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/[A-Za-z0-9_.-]{1,100}"
_AT_A_FORGE: Final = re.compile(
    rf"(?:https?://(?:[^@/\s]{{1,200}}@)?|git@|ssh://git@)(?P<host>github|gitlab)\.com[/:](?P<name>{_NAME})"
)
_REPO_FLAG: Final = re.compile(rf"(?:^|\s)(?:-R|--repo)[ =]['\"]?(?:github\.com/)?(?P<name>{_NAME})")
_PULL: Final = re.compile(rf"https://github\.com/(?P<name>{_NAME})/pull/(?P<number>[1-9]\d{{0,8}})(?![\w/-]*new/)")
_ISSUE: Final = re.compile(rf"https://github\.com/(?P<name>{_NAME})/issues/(?P<number>[1-9]\d{{0,8}})\b")
_MERGE_REQUEST: Final = re.compile(
    r"https://gitlab\.[\w.-]+/(?P<name>[\w./-]{3,300})/-/merge_requests/(?P<number>\d{1,9})\b"
)
# A command of its own, not a word in a commit's message: at the start, or behind && ; | or a line's end.
_START: Final = r"(?:^|[;&|(\n]\s*)(?:[A-Z_]+=\S+\s+)*"
_GH: Final = re.compile(
    rf"{_START}gh\s+(?P<noun>pr|issue)\s+(?P<verb>[a-z-]+)(?P<rest>[^\n;&|]*)",
)
_GIT: Final = re.compile(
    rf"{_START}git\s+(?:-C\s+\S+\s+|-c\s+\S+\s+)*(?P<verb>push|commit|checkout|switch)\b(?P<rest>[^\n;&|]*)"
)
_WRITES: Final = frozenset(
    ("checkout", "co", "merge", "comment", "review", "edit", "ready", "close", "reopen", "update-branch", "develop")
)
_NUMBER: Final = re.compile(r"^\s*(?:-\S+\s+)*#?(?P<number>[1-9]\d{0,8})(?=\s|$)")
_SHOWN_NUMBER: Final = re.compile(r"^(?:number:\s*|\s*\"?number\"?:\s*)(?P<number>[1-9]\d{0,8})\b", re.M)
_PUSHED: Final = re.compile(
    r"^\s*[ +*=]?\s*(?:\[new branch\]|[0-9a-f]{7,40}\.{2,3}(?P<sha>[0-9a-f]{7,40}))\s+\S+\s+->\s+(?P<branch>\S+)", re.M
)
_SET_UP: Final = re.compile(r"branch '(?P<branch>[^']{1,200})' set up to track")
_COMMITTED: Final = re.compile(r"^\[(?P<branch>[^\s\]]{1,200})(?: \(root-commit\))? (?P<sha>[0-9a-f]{7,40})\] ", re.M)
_MADE: Final = re.compile(r"Switched to a new branch '(?P<branch>[^']{1,200})'")
_SPOKEN_PR: Final = re.compile(
    r"\b(?:PR|MR|pull request|merge request)s?\s+(?:no\.?\s*)?(?P<number>[1-9]\d{0,6})\b", re.I
)
_COMMENT: Final = re.compile(r"#(?:issuecomment-|discussion_r|pullrequestreview-)(?P<id>\d{4,20})")
# What a thing is only set beside: "do it like #12".
_BESIDE: Final = re.compile(
    r"\b(?:like|unlike|as in|see also|similar to|based on|compared? (?:to|with)|same as|than|related to|inspired by"
    r"|copied from|such as|e\.g\.|cf\.?)[\s:'\"`<]*(?:(?:the|our|my)\s+)?(?:PR|issue|pull request|MR)?\s*$",
    re.I,
)
# The tools of GitHub's own MCP server that write.
_TOOL_WRITES: Final = re.compile(
    r"(?:create_pull_request|merge_pull_request|update_pull_request|add_issue_comment|update_issue|add_\w*comment"
    r"|create_\w*review|submit_\w*review|pull_request_review_write|issue_write|update_pull_request_branch)"
)


@dataclass(frozen=True, slots=True)
class Heard:
    """One event as the rule reads it."""

    kind: str
    tool: str
    payload: Mapping[str, Any]


@dataclass(slots=True)
class Claims:
    """What a session works on, each with why; and what it named, as the marks of single triggers.

    A claim is `github:owner/name#412`, `#412` of the session's own repository, `branch:name`, or a thread's id. A mark
    is `comment:<id>`, `commit:<sha>`, or `opened:<claim>`.
    """

    home: str = ""
    works_on: dict[str, str] = field(default_factory=dict)
    named: dict[str, None] = field(default_factory=dict)

    def add(self, claim: str, why: str) -> None:
        if len(self.works_on) < _MOST:
            self.works_on.setdefault(claim, why)


def threads_of(events: Iterable[Heard], *, home: str = "") -> Claims:
    """What these events say their session works on; `home` (`github:acme/payments`) is its own repository."""
    claims = Claims(home)
    for heard in events:
        if heard.kind == "prompt":
            _prompt(claims, _words(heard.payload, "prompt", "user_prompt", "text"))
        elif heard.kind == "tool_after":
            _tool(claims, heard)
    return claims


def _prompt(claims: Claims, text: str) -> None:
    """A person's own words: what they give to do, not what they paste."""
    text = text[:_PROMPT]
    claims.home = claims.home or _home_in(text)
    given: dict[str, None] = {}
    for reference in references(text, repository=claims.home or "github:own/own"):
        # A branch's name carries a number too, but whoever speaks of a branch may mean anything by it.
        is_number = reference.kind == "number" and f"#{reference.key.rpartition('#')[2]}" in text
        if is_number or reference.kind in ("thread", "pr", "issue"):
            given[reference.key.removeprefix("github:own/own")] = None
    for spoken in _SPOKEN_PR.finditer(text):
        given[_of_home(claims, spoken["number"])] = None
    if len(given) > MOST_IN_A_PROMPT:
        return
    for claim in given:
        if not _is_beside(text, claim):
            claims.add(claim, "a prompt names it")
            claims.named[f"opened:{claim}"] = None
    for comment in _COMMENT.finditer(text):
        claims.named[f"comment:{comment['id']}"] = None


def _is_beside(text: str, claim: str) -> bool:
    """Whether every place that names it sets it beside something else."""
    number = claim.rpartition("#")[2]
    as_number = rf"(?:https?://\S*/(?:pull|issues)/{number}\b|#{number}\b|\b{number}\b)"
    sign = as_number if "#" in claim else re.escape(claim)
    places = list(re.finditer(sign, text))
    return bool(places) and all(_BESIDE.search(text[max(0, place.start() - 60) : place.start()]) for place in places)


def _of_home(claims: Claims, number: str) -> str:
    sign = "!" if claims.home.startswith("gitlab:") else "#"
    return f"{claims.home}{sign}{number}"


def _tool(claims: Claims, heard: Heard) -> None:
    given = heard.payload.get("tool_input", heard.payload.get("toolArgs"))
    told = given if isinstance(given, dict) else {}
    if _TOOL_WRITES.search(heard.tool) and "git" in heard.tool.lower():
        _forge_tool(claims, told, _said(heard.payload))
        return
    command = _command(told, heard.payload)
    if "git" in command or "gh " in command:
        _shell(claims, command, _said(heard.payload))


def _forge_tool(claims: Claims, told: Mapping[str, Any], said: str) -> None:
    """A call of a forge's own tools that writes in a pull request or an issue."""
    owner, name = _words(told, "owner"), _words(told, "repo")
    number = next((told[one] for one in ("pullNumber", "pull_number", "issue_number") if told.get(one)), None)
    if number is None and (shown := re.search(r'\\?"number\\?":\s*([1-9]\d{0,8})\b', said[:4000])):
        number = shown[1]
    if not owner or not name or not str(number).isdigit():
        return
    claims.home = claims.home or f"github:{owner}/{name}"
    claims.add(f"github:{owner}/{name}#{number}", "a tool wrote in it")
    claims.named[f"opened:github:{owner}/{name}#{number}"] = None


def _shell(claims: Claims, command: str, said: str) -> None:
    for call in _GH.finditer(command):
        if not claims.home and (flag := _REPO_FLAG.search(call["rest"])):
            claims.home = f"github:{flag['name']}"
        _gh(claims, call, command, said)
    verbs = {call["verb"] for call in _GIT.finditer(command)}
    if verbs:
        _git(claims, verbs, command, said)


def _gh(claims: Claims, call: re.Match[str], command: str, said: str) -> None:
    """`gh pr create` tells the pull request it made; the other verbs that write name theirs."""
    noun, verb, rest = call["noun"], call["verb"], call["rest"]
    flag = _REPO_FLAG.search(rest) or _REPO_FLAG.search(command)
    home = f"github:{flag['name']}" if flag else ""
    url = (_PULL if noun == "pr" else _ISSUE).search
    if noun == "pr" and verb == "create":
        if made := url(said):
            claims.home = claims.home or f"github:{made['name']}"
            claims.add(f"github:{made['name']}#{made['number']}", "gh pr create made it")
            claims.named[f"opened:github:{made['name']}#{made['number']}"] = None
        return
    named = url(rest)
    number = _NUMBER.search(rest)
    # Without a number it is the pull request of the branch that the session is on; with one, to look is not to work.
    is_own = noun == "pr" and verb == "view" and not number and not named
    if verb not in _WRITES and not is_own:
        return
    shown = url(said)
    if shown and number and shown["number"] != number["number"]:
        shown = None
    if found := named or shown:
        claims.add(f"github:{found['name']}#{found['number']}", f"gh {noun} {verb}")
    elif number or (number := _SHOWN_NUMBER.search(said)):
        claims.add(f"{home or claims.home}#{number['number']}", f"gh {noun} {verb}")


def _git(claims: Claims, verbs: set[str], command: str, said: str) -> None:
    """The branch that is pushed to, committed on or begun; what the forge answers to a push."""
    branches: dict[str, str] = {}
    if verbs & {"commit", "push"}:
        for made in _COMMITTED.finditer(said):
            branches[made["branch"]] = "the session committed on its branch"
            claims.named[f"commit:{made['sha']}"] = None
    if "push" in verbs and not re.search(r"\bpush\b[^\n;&|]*(?:--delete|\s-d\b|\s:\S)", command):
        claims.home = claims.home or _home_in(said)
        for pushed in _PUSHED.finditer(said):
            branches[pushed["branch"]] = "the session pushed its branch"
            if pushed["sha"]:
                claims.named[f"commit:{pushed['sha']}"] = None
        for tracked in _SET_UP.finditer(said):
            branches[tracked["branch"]] = "the session pushed its branch"
        for asked in _MERGE_REQUEST.finditer(said):
            claims.add(f"gitlab:{asked['name']}!{asked['number']}", "git push told it")
    if verbs & {"checkout", "switch"}:
        for begun in _MADE.finditer(said):
            branches.setdefault(begun["branch"], "the session began its branch")
    for branch, why in branches.items():
        _branch(claims, branch.removeprefix("refs/heads/").removeprefix("origin/"), why)


def _branch(claims: Claims, branch: str, why: str) -> None:
    if branch in _SHARED or len(branch) > 200:
        return
    claims.add(f"branch:{branch}", why)
    home = claims.home or "github:own/own"
    for reference in references(f"refs/heads/{branch}", repository=home):
        if reference.kind == "number":
            claims.add(reference.key.removeprefix("github:own/own"), "its branch is named after it")
        elif reference.kind == "ticket":
            claims.add(f"ticket:{reference.key}", "its branch is named after it")


def _home_in(text: str) -> str:
    found = _AT_A_FORGE.search(text)
    return f"{found['host']}:{found['name'].removesuffix('.git')}" if found else ""


def _command(told: Mapping[str, Any], payload: Mapping[str, Any]) -> str:
    for source in (told, payload):
        for name in ("command", "cmd", "script", "command_line"):
            value = source.get(name)
            if isinstance(value, list):
                value = " ".join(map(str, value))
            if isinstance(value, str) and value:
                return value[:_OUTPUT]
    return ""


def _said(payload: Mapping[str, Any]) -> str:
    """What a tool answered, as text, whatever shape its harness gives it."""
    for name in ("tool_response", "tool_result", "toolResult", "tool_output", "output", "result_json", "result"):
        if payload.get(name):
            return "\n".join(_texts(payload[name]))[:_OUTPUT]
    return ""


def _texts(value: Any, depth: int = 0) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and depth < 4:
        for inner in value.values():
            yield from _texts(inner, depth + 1)
    elif isinstance(value, list) and depth < 4:
        for inner in value[:50]:
            yield from _texts(inner, depth + 1)


def _words(payload: Mapping[str, Any], *names: str) -> str:
    return next((value for name in names if isinstance(value := payload.get(name), str) and value), "")
