"""GitLab's deliveries: a merge request's pushes, notes, pipelines, jobs and merge land in `gitlab:group/project!N`."""

from collections.abc import Mapping
from typing import Any

from memory.graph.summaries.line import at, word
from memory.graph.webhooks.github import object_of
from memory.graph.webhooks.taken import MAX_MARK, Marks, Taken, moment, name, title_of

Body = dict[str, Any]


def take(headers: Mapping[str, str], raw: bytes) -> Taken:
    """The delivery, read. Raises Unreadable."""
    body = object_of(raw)
    kind = word(body, "object_kind") or word(body, "event_name") or _kind_of(headers)
    delivery = next(
        (
            headers[one].strip()
            for one in ("Idempotency-Key", "webhook-id", "X-Gitlab-Event-UUID")
            if headers.get(one, "").strip()
        ),
        "",
    )
    where = _Where(body)
    number = _number(kind, body)
    key = f"{where.key}{number}" if number else _own_key(kind, body, where)
    item = at(body, "object_attributes") or {}
    return Taken(
        event=name(kind, 100),
        payload=raw,
        external_id=name(delivery) or None,
        key=name(key),
        title=_title(kind, body),
        occurred_at=moment(
            *(at(item, field) for field in ("updated_at", "finished_at", "created_at")),
            *(
                at(body, field)
                for field in ("build_finished_at", "build_started_at", "status_changed_at", "updated_at")
            ),
            word(last_commit(body), "timestamp"),
        ),
        repository=where.key if where.path else "",
        is_sure=bool(number),
        marks=_marks(kind, body, number, where),
    )


class _Where:
    def __init__(self, body: Body) -> None:
        self.path = word(body, "project", "path_with_namespace") or word(body, "project", "path")
        self.key = f"gitlab:{self.path or word(body, 'group', 'full_path') or word(body, 'group_path') or 'events'}"
        self.id = word(body, "project", "id") or word(body, "project_id") or self.path.lower()
        self.mark = f"gitlab:{self.id}"


def _kind_of(headers: Mapping[str, str]) -> str:
    return headers.get("X-Gitlab-Event", "event").removesuffix(" Hook").strip().lower().replace(" ", "_")


def last_commit(body: Body) -> Any:
    """The newest commit a push brought."""
    commits = at(body, "commits")
    return commits[-1] if isinstance(commits, list) and commits else {}


def _number(kind: str, body: Body) -> str:
    item = at(body, "object_attributes") or {}
    if kind == "merge_request" and word(item, "iid"):
        return f"!{word(item, 'iid')}"
    if kind in ("issue", "work_item", "incident") and word(item, "iid"):
        return f"#{word(item, 'iid')}"
    if merge := word(body, "merge_request", "iid"):
        return f"!{merge}"
    if issue := word(body, "issue", "iid"):
        return f"#{issue}"
    return ""


def _commits(kind: str, body: Body) -> list[str]:
    shas = (
        word(body, "after") if kind in ("push", "tag_push") else "",
        word(body, "sha"),
        word(body, "object_attributes", "sha"),
        word(body, "object_attributes", "last_commit", "id"),
        word(body, "object_attributes", "merge_commit_sha"),
        word(body, "commit", "id") if kind in ("note", "deployment") else "",
        word(body, "merge_request", "last_commit", "id"),
    )
    return list(dict.fromkeys(sha for sha in shas if len(sha) >= 40 and sha.strip("0")))


def _marks(kind: str, body: Body, number: str, where: _Where) -> Marks:
    item = at(body, "object_attributes") or {}
    commits = [f"{where.mark}@{sha}" for sha in _commits(kind, body)]
    ref = word(body, "ref") or word(item, "ref")
    is_tag = ref.startswith("refs/tags/") or at(item, "tag") is True or at(body, "tag") is True
    branch = f"{where.mark}:{ref.removeprefix('refs/heads/')}" if ref and not is_tag else ""
    numbered = [f"{where.mark}{number}"] if number else []
    source = word(item, "source_branch") if kind == "merge_request" else ""
    own = f"gitlab:{word(item, 'source_project_id') or where.id}:{source}" if source else ""
    is_closed = word(item, "state") in ("closed", "merged")
    return Marks(
        seek=_fit([*numbered, *([] if number else [*commits, branch])]),
        keep=_fit([*numbered, *commits]),
        renew=_fit([own] if not is_closed else []),
        drop=_fit([own] if is_closed else []),
    )


def _fit(marks: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(mark for mark in marks if mark and len(mark) <= MAX_MARK))


def _own_key(kind: str, body: Body, where: _Where) -> str:
    if kind in ("push", "tag_push"):
        return f"{where.key}@{word(body, 'ref')}"
    commits = _commits(kind, body)
    if commits:
        return f"{where.key}@{commits[0]}"
    if tag := word(body, "tag"):
        return f"{where.key}/releases/{tag}"
    if page := word(body, "object_attributes", "slug"):
        return f"{where.key}/wiki/{page}"
    return where.key


def _title(kind: str, body: Body) -> str:
    if kind in ("merge_request", "issue", "work_item", "incident"):
        return title_of(body, "object_attributes", "title")
    return title_of(body, "merge_request", "title") or title_of(body, "issue", "title") or title_of(body, "name")
