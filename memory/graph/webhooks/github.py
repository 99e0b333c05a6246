"""GitHub's deliveries: which thread each belongs to.

A PR's pushes, reviews, comments, checks, statuses, deployments and its merge all land in `github:owner/repo#N`: by the
number where the body has it, else by a commit or branch that a PR was seen with. What belongs to no PR has a key of
its own: `github:owner/repo@<commit>` for checks, `github:owner/repo@refs/heads/main` for pushes.
"""

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qs

import orjson

from memory.graph.references import references
from memory.graph.summaries import github as lines
from memory.graph.summaries.github import kind_of
from memory.graph.summaries.line import at, word
from memory.graph.webhooks.taken import MAX_MARK, Marks, Taken, Unreadable, moment, name, title_of
from memory.problems import Problem
from memory.sentences import sentence
from memory.tenants.rest import fast_json, refuse_too_many_values

Body = dict[str, Any]

_KIND: Final = re.compile(r"[a-z][a-z0-9_]{1,60}")
# What a merge queue and a PR's own refs call the PR.
_QUEUED: Final = re.compile(
    r"(?:gh-readonly-queue/.{1,200}/pr-|refs/pull/)([1-9]\d{0,8})(?:-[0-9a-f]{40}|/(?:merge|head))$"
)
_ABOUT: Final = ("check_run", "check_suite", "workflow_run", "workflow_job")
_MOST_VALUES: Final = 2_000_000
_CLOSED: Final = ("closed", "deleted", "transferred")


def take(headers: Mapping[str, str], raw: bytes) -> Taken:
    """The delivery, read. Raises Unreadable."""
    payload = json_of(headers.get("Content-Type", ""), raw)
    body = object_of(payload)
    given = headers.get("X-GitHub-Event", "").strip().lower()
    kind = given if _KIND.fullmatch(given) else kind_of(body)
    delivery = name(headers.get("X-GitHub-Delivery", "").strip())
    return placed(kind, body, payload, external_id=delivery or None)


def json_of(content_type: str, raw: bytes) -> bytes:
    """The JSON of a body, which may be the `payload` field of a form: both are what GitHub can be set to send."""
    if not content_type.lower().startswith("application/x-www-form-urlencoded") or raw.lstrip()[:1] == b"{":
        return raw
    fields = parse_qs(raw.decode("utf-8", "replace"), max_num_fields=100)
    if "payload" not in fields:
        raise Unreadable(sentence("The form has no field payload. Set the webhook's content type to application/json."))
    return fields["payload"][0].encode("utf-8", "surrogatepass")


def object_of(payload: bytes) -> Body:
    """The JSON object of a body. Raises Unreadable."""
    try:
        body = _large(payload) if is_large(payload) else fast_json(payload)[0]
    except Problem as problem:
        raise Unreadable(problem.detail) from None
    if not isinstance(body, dict) or not body:
        raise Unreadable(sentence("The body is a JSON object, as the sender's documentation shows it."))
    return body


def is_large(payload: bytes) -> bool:
    """Whether a body may hold more values than the API takes: a push of thousands of commits does."""
    return len(payload) > 2_000_000


def _large(payload: bytes) -> Any:
    """A proven sender's body may hold more values than anybody's; what it says is still bounded."""
    refuse_too_many_values(payload, _MOST_VALUES)
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError:
        return fast_json(payload)[0]


def placed(kind: str, body: Body, payload: bytes, *, external_id: str | None) -> Taken:
    """The delivery with its thread and marks."""
    where = _Where(body)
    number = _number(kind, body, where)
    key = f"{where.key}#{number}" if number else _own_key(kind, body, where)
    return Taken(
        event=kind,
        payload=payload,
        external_id=external_id,
        key=name(key),
        title=_title(kind, body, number, where),
        # Read once: summaries of what anybody sends stop at fewer values.
        summary=lines.line(kind, body) if is_large(payload) else "",
        occurred_at=_at(body),
        repository=where.key if where.full_name else "",
        names=where.names,
        is_sure=bool(number),
        marks=_marks(kind, body, number, where),
        also=_continued(kind, body, where) if number else (),
    )


def _continued(kind: str, body: Body, where: "_Where") -> tuple[str, ...]:
    """Threads that this one goes on from: checks from before the PR, the issue before it was moved here."""
    commits = [f"{where.key}@{sha}" for sha in _head_commits(kind, body)]
    old, home = word(body, "changes", "old_issue", "number"), word(body, "changes", "old_repository", "full_name")
    return tuple(name(key) for key in (*commits, *([f"github:{home}#{old}"] if old and home else [])))


class _Where:
    """The repository, by its number, which survives renames and transfers; by its name where there is no number."""

    def __init__(self, body: Body) -> None:
        self.full_name = word(body, "repository", "full_name")
        self.account = word(body, "organization", "login") or word(body, "installation", "account", "login")
        self.key = f"github:{self.full_name or self.account or 'events'}"
        self.id = word(body, "repository", "id")
        self.mark = f"github:{self.id or self.full_name.lower()}"
        # Texts name a repository in any case; by its mark its threads are found after a rename too.
        is_named = bool(self.full_name) and len(self.full_name) < 300
        self.names = {f"github name {self.full_name.lower()}": f"{self.mark} {self.full_name}"} if is_named else {}

    def commit(self, sha: str) -> str:
        return f"{self.mark}@{sha}"


def _number(kind: str, body: Body, where: _Where) -> str:
    """The number of the issue, PR or discussion a body is about, if it says so."""
    for path in (("pull_request", "number"), ("issue", "number"), ("discussion", "number")):
        if found := word(body, *path):
            return found
    if kind in ("pull_request", "push") and word(body, "number").isdigit():
        return word(body, "number")
    for item in (*(at(body, about) for about in _ABOUT), at(body, "check_run", "check_suite")):
        for pull in at(item, "pull_requests") or ():
            # A commit may be in PRs of forks as well; theirs are not this repository's.
            base = word(pull, "base", "repo", "id")
            if word(pull, "number") and (not base or not where.id or base == where.id):
                return word(pull, "number")
    for ref in (
        word(body, "ref"),
        word(body, "merge_group", "head_ref"),
        *(_branch(at(body, about)) for about in _ABOUT),
    ):
        if queued := _QUEUED.search(ref):
            return queued[1]
    return ""


def _branch(item: Any) -> str:
    return word(item, "head_branch") or word(item, "check_suite", "head_branch")


def _commits(kind: str, body: Body) -> list[str]:
    """The commits a body is about, the one that tells most first."""
    shas = [
        word(body, "sha"),
        *(word(body, about, "head_sha") for about in _ABOUT),
        word(body, "after") if kind == "push" else "",
        word(body, "head_commit", "id"),
        word(body, "deployment", "sha"),
        word(body, "comment", "commit_id") if kind == "commit_comment" else "",
        word(body, "commit_oid"),
        word(body, "merge_group", "head_sha"),
        *_head_commits(kind, body),
    ]
    return list(dict.fromkeys(sha for sha in shas if sha.strip("0")))


def _head_commits(kind: str, body: Body) -> list[str]:
    """The head of a PR, and what it was merged as."""
    pull = at(body, "pull_request") or {}
    merged = word(pull, "merge_commit_sha") if at(pull, "merged") is True or word(pull, "merged_at") else ""
    after = word(body, "after") if kind == "pull_request" else ""
    return [sha for sha in dict.fromkeys((word(pull, "head", "sha"), after, merged)) if sha.strip("0")]


def _own_commits(kind: str, body: Body, number: str) -> list[str]:
    """The commits that are the PR's own beyond doubt: a body may speak of others beside them."""
    if kind == "push" and word(body, "after").strip("0"):
        return [word(body, "after")]
    checked = [word(body, about, "head_sha") for about in _ABOUT if at(body, about, "pull_requests")]
    return list(dict.fromkeys([*_head_commits(kind, body), *(sha for sha in checked if sha)])) if number else []


def _branches(kind: str, body: Body, where: _Where) -> list[str]:
    """Marks of the branches a body is about: with the repository they are in, which for a fork is another one."""
    if kind in ("push", "create", "delete") and where.full_name:
        ref = word(body, "ref")
        full = ref if ref.startswith("refs/") else f"refs/heads/{ref}"
        return [f"{where.mark}:{full}"] if word(body, "ref_type") != "tag" and full.startswith("refs/heads/") else []
    found = []
    for about in _ABOUT:
        item = at(body, about)
        home = word(item, "head_repository", "id")
        if branch := _branch(item):
            found.append(f"{f'github:{home}' if home else where.mark}:refs/heads/{branch}")
    if kind == "status":
        # Every branch that holds the commit is listed; only where it is the newest one does the branch say whose it is.
        tips = [one for one in (at(body, "branches") or ())[:10] if word(one, "commit", "sha") == word(body, "sha")]
        found += [f"{where.mark}:refs/heads/{word(one, 'name')}" for one in tips]
    return found


def _marks(kind: str, body: Body, number: str, where: _Where) -> Marks:
    commits = [where.commit(sha) for sha in _commits(kind, body)]
    branches = _branches(kind, body, where)
    numbered = [f"{where.mark}#{number}"] if number else []
    pull = at(body, "pull_request") or {}
    head = word(pull, "head", "ref")
    home = word(pull, "head", "repo", "id")
    own = f"{f'github:{home}' if home else where.mark}:refs/heads/{head}" if head and kind == "pull_request" else ""
    is_closed = word(body, "action") in _CLOSED
    return Marks(
        seek=_fit((*numbered, *(() if number else (*commits, *branches)))),
        keep=_fit((*numbered, *(where.commit(sha) for sha in _own_commits(kind, body, number)))),
        renew=_fit((*_seen_with(body, where), *([own] if own and not is_closed else []))),
        drop=_fit([own] if own and is_closed else []),
    )


def _seen_with(body: Body, where: _Where) -> list[str]:
    """Runs and deploys have no thread of their own: whoever names one means the thread it was seen in."""
    runs = (word(body, "workflow_run", "id"), word(body, "workflow_job", "run_id"))
    deployed = word(body, "deployment_status", "environment_url")
    found = [f"{where.mark}/runs/{run}" for run in runs if run]
    found += [f"{where.mark}/deployments/{word(body, 'deployment', 'id')}"] if word(body, "deployment", "id") else []
    return found + [f"deploy:{one.key}" for one in references(deployed) if one.kind == "deploy"]


def _fit(marks: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(mark for mark in marks if len(mark) <= MAX_MARK))


def _own_key(kind: str, body: Body, where: _Where) -> str:
    """The thread of what no issue and no PR is named in."""
    commits = _about_commits(body)
    if kind in ("push", "create", "delete"):
        ref = word(body, "ref")
        kind_of_ref = "tags" if word(body, "ref_type") == "tag" else "heads"
        return f"{where.key}@{ref if ref.startswith('refs/') else f'refs/{kind_of_ref}/{ref}'}"
    if commits:
        return f"{where.key}@{commits[0]}"
    if tag := word(body, "release", "tag_name"):
        return f"{where.key}/releases/{tag}"
    for about in ("alert", "milestone", "project", "project_card", "project_column", "projects_v2_item", "deployment"):
        if item := word(body, about, "number") or word(body, about, "id"):
            return f"{where.key}/{kind if about == 'alert' else about}/{item}"
    if advisory := word(body, "security_advisory", "ghsa_id"):
        return f"github:advisories/{advisory}"
    return where.key


def _about_commits(body: Body) -> list[str]:
    shas = (
        word(body, "check_run", "head_sha"),
        word(body, "check_suite", "head_sha"),
        word(body, "workflow_run", "head_sha"),
        word(body, "workflow_job", "head_sha"),
        word(body, "merge_group", "head_sha"),
        word(body, "sha"),
        word(body, "deployment", "sha"),
        word(body, "comment", "commit_id"),
    )
    return [sha for sha in shas if sha]


def _title(kind: str, body: Body, number: str, where: _Where) -> str:
    for path in (("pull_request", "title"), ("issue", "title"), ("discussion", "title")):
        if found := title_of(body, *path):
            return found
    if number:
        return ""
    if kind == "push":
        return f"{where.full_name} {word(body, 'ref').removeprefix('refs/heads/').removeprefix('refs/tags/')}"
    return title_of(body, "release", "name") or title_of(body, "head_commit", "message")


def _at(body: Body) -> Any:
    """When it happened: the time of the most particular thing in the body."""
    times = []
    for about, fields in (
        ("review", ("submitted_at",)),
        ("comment", ("updated_at", "created_at")),
        ("check_run", ("completed_at", "started_at")),
        ("workflow_job", ("completed_at", "started_at", "created_at")),
        ("check_suite", ("updated_at", "created_at")),
        ("workflow_run", ("updated_at", "created_at")),
        ("deployment_status", ("updated_at",)),
        ("deployment", ("updated_at",)),
        ("release", ("published_at", "created_at")),
        ("head_commit", ("timestamp",)),
        ("pull_request", ("updated_at", "created_at")),
        ("issue", ("updated_at", "created_at")),
        ("discussion", ("updated_at", "created_at")),
        ("milestone", ("updated_at",)),
        ("alert", ("updated_at", "created_at")),
        ("merge_group", ("head_commit",)),
    ):
        times += [at(body, about, field) for field in fields]
    return moment(*times, at(body, "updated_at"), at(body, "starred_at"), at(body, "repository", "pushed_at"))
