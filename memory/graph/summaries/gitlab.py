"""GitLab's webhook bodies, by their `object_kind`."""

from typing import Any

from memory.graph.summaries.line import at, branch_of, one_line, quoted, short, word

Body = dict[str, Any]


def line(kind: str, body: Body) -> str:
    """`acme/payments!12 merge request merged by alice: “Retry thrice”`."""
    kind = word(body, "object_kind") or word(body, "event_name") or kind
    project = word(body, "project", "path_with_namespace") or word(body, "project_name")
    who = (
        word(body, "user", "username")
        or word(body, "user_username")
        or word(body, "user_name")
        or word(body, "user", "name")
    )
    by = f" by {who}" if who else ""
    item = at(body, "object_attributes") or {}
    if kind in ("push", "tag_push"):
        return one_line(_push(body, project, by))
    if kind in ("note", "emoji"):
        return one_line(_note(body, project, by, item))
    if kind == "merge_request":
        action = _past(word(item, "action") or word(item, "state"))
        return one_line(f"{project}!{word(item, 'iid')} merge request {action}{by}{quoted(word(item, 'title'))}")
    if kind in ("issue", "work_item", "incident"):
        action = _past(word(item, "action") or word(item, "state"))
        return one_line(
            f"{project}#{word(item, 'iid')} {kind.replace('_', ' ')} {action}{by}{quoted(word(item, 'title'))}"
        )
    if kind == "pipeline":
        return one_line(_pipeline(body, project, by, item))
    if kind == "build":
        failed = word(body, "build_failure_reason").replace("_", " ")
        why = f" ({failed})" if word(body, "build_status") == "failed" and failed else ""
        return one_line(
            f"{project} job {word(body, 'build_name')} {word(body, 'build_status')}{why} on {word(body, 'ref')} "
            f"({short(word(body, 'sha'))}){by}"
        )
    if kind == "deployment":
        return one_line(
            f"{project} deployment to {word(body, 'environment')} {word(body, 'status')}: {word(body, 'ref')} "
            f"({short(word(body, 'short_sha'))}){by}"
        )
    if kind == "release":
        return one_line(
            f"{project} release {word(body, 'tag')} {_past(word(body, 'action'))}{quoted(word(body, 'name'))}"
        )
    if kind == "wiki_page":
        return one_line(f"{project} wiki page {word(item, 'title')} {_past(word(item, 'action'))}{by}")
    said = " ".join(filter(None, (project, kind.replace("_", " "), word(item, "action"))))
    return one_line(f"{said}{by}{quoted(word(item, 'title') or word(item, 'note'))}") if said else ""


def _push(body: Body, project: str, by: str) -> str:
    ref = branch_of(word(body, "ref"))
    noun = "tag " if word(body, "ref").startswith("refs/tags/") else ""
    if not word(body, "after").strip("0"):
        return f"{project} {noun}{ref} deleted{by}"
    commits = at(body, "commits")
    count = word(body, "total_commits_count") or str(len(commits) if isinstance(commits, list) else 0)
    last = commits[-1] if isinstance(commits, list) and commits else {}
    said = quoted(word(last, "title") or word(last, "message"))
    many = f"{count} commit{'' if count == '1' else 's'} " if count != "0" else ""
    return f"{project} {many}pushed to {noun}{ref} ({short(word(body, 'after'))}){by}{said}"


def _note(body: Body, project: str, by: str, item: Any) -> str:
    on = word(body, "merge_request", "iid")
    issue = word(body, "issue", "iid")
    commit = short(word(body, "commit", "id"))
    place = f"{project}!{on}" if on else f"{project}#{issue}" if issue else f"{project} {commit}".strip()
    return f"{place} comment{by}{quoted(word(item, 'note'))}"


def _pipeline(body: Body, project: str, by: str, item: Any) -> str:
    builds = at(body, "builds")
    failed = (
        [word(job, "name") for job in builds if word(job, "status") == "failed"] if isinstance(builds, list) else []
    )
    on = word(body, "merge_request", "iid")
    place = f"{project}!{on}" if on else project
    of = f"{word(item, 'ref')} ({short(word(item, 'sha'))})"
    said = f"{place} pipeline {word(item, 'id')} {word(item, 'status')} on {of}{by}"
    return f"{said}, failed: {', '.join(failed[:3])}" if failed else said


def _past(action: str) -> str:
    return {
        "open": "opened", "close": "closed", "reopen": "reopened", "update": "updated", "merge": "merged",
        "approve": "approved", "approved": "approved", "unapproved": "approval taken back", "create": "created",
        "delete": "deleted", "approval": "approval added", "unapproval": "approval taken back",
    }.get(action, action)  # fmt: skip
