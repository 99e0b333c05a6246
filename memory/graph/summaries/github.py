"""GitHub's webhook bodies: one line for each kind, and for a kind not yet known what its fields say."""

from collections.abc import Callable
from typing import Any, Final

from memory.graph.summaries.line import at, branch_of, one_line, quoted, short, word

Body = dict[str, Any]

# The field that only bodies of this kind have, the telling ones first: the kind itself is in a header, not in the body.
_SHAPES: Final[tuple[tuple[str, str], ...]] = (
    ("deployment_status", "deployment_status"),
    ("deployment workflow_job", "workflow_job"),
    ("workflow_job_run", "deployment_review"),
    ("deployment", "deployment"),
    ("check_run", "check_run"),
    ("check_suite", "check_suite"),
    ("workflow_job", "workflow_job"),
    ("workflow_run", "workflow_run"),
    ("review", "pull_request_review"),
    ("comment pull_request", "pull_request_review_comment"),
    ("thread pull_request", "pull_request_review_thread"),
    ("pull_request", "pull_request"),
    ("comment issue", "issue_comment"),
    ("issue", "issues"),
    ("comment discussion", "discussion_comment"),
    ("discussion", "discussion"),
    ("comment", "commit_comment"),
    ("merge_group", "merge_group"),
    ("release", "release"),
    ("commits", "push"),
    ("sha state context", "status"),
    ("ref_type description", "create"),
    ("ref_type", "delete"),
    ("forkee", "fork"),
    ("pages", "gollum"),
    ("milestone", "milestone"),
    ("label", "label"),
    ("rule", "branch_protection_rule"),
    ("key", "deploy_key"),
    ("blocked_user", "org_block"),
    ("repositories_added", "installation_repositories"),
    ("marketplace_purchase", "marketplace_purchase"),
    ("sponsorship", "sponsorship"),
    ("security_advisory", "security_advisory"),
    ("alert", "alert"),
    ("build", "page_build"),
    ("package", "package"),
    ("registry_package", "registry_package"),
    ("project_card", "project_card"),
    ("project_column", "project_column"),
    ("projects_v2_item", "projects_v2_item"),
    ("project", "project"),
    ("client_payload", "repository_dispatch"),
    ("inputs workflow", "workflow_dispatch"),
    ("hook zen", "ping"),
    ("hook", "meta"),
    ("scope team", "membership"),
    ("member", "member"),
    ("team", "team"),
    ("membership", "organization"),
    ("invitation", "organization"),
    ("starred_at", "star"),
    ("status repository", "repository_import"),
)


_ACTIONS: Final = {"started": "watch", "revoked": "github_app_authorization", "member_added": "organization"}


def kind_of(body: Body) -> str:
    """The kind of event a body is, by its fields."""
    fields = set(body)
    shaped = next((kind for needed, kind in _SHAPES if fields.issuperset(needed.split())), "")
    action = word(body, "action")
    if shaped or action in _ACTIONS:
        return shaped or _ACTIONS[action]
    if "repository" in body:
        return "repository" if action else "public"
    return "installation" if "installation" in body and "organization" not in body else "organization"


def line(kind: str, body: Body) -> str:
    """`acme/payments#412 review approved by alice: “Nice”`."""
    known = kind if kind in _LINES else kind_of(body)
    said = _LINES[known](body) if known in _LINES else _any(known, body)
    return one_line(said)


def repository(body: Body) -> str:
    """`owner/name` of the repository, else the organisation or account."""
    return (
        word(body, "repository", "full_name")
        or word(body, "organization", "login")
        or word(body, "installation", "account", "login")
    )


def _by(body: Body) -> str:
    who = word(body, "sender", "login") or word(body, "pusher", "name")
    return f" by {who}" if who else ""


def _action(body: Body) -> str:
    return word(body, "action").replace("_", " ")


def _place(body: Body, number: str) -> str:
    return f"{repository(body)}#{number}" if number else repository(body)


def _subject(body: Body, name: str, noun: str) -> str:
    item = at(body, name) or {}
    return (
        f"{_place(body, word(item, 'number'))} {noun} {_happened(body, item)}{_by(body)}{quoted(word(item, 'title'))}"
    )


def _happened(body: Body, item: Any) -> str:
    action = _action(body)
    if action == "closed" and at(item, "merged") is True:
        return "merged"
    detail = (
        word(body, "label", "name")
        or word(body, "assignee", "login")
        or word(body, "requested_reviewer", "login")
        or word(body, "milestone", "title")
    )
    if action == "synchronize":
        after = word(body, "after")
        return f"pushed to ({short(after)})" if after else "pushed to"
    return f"{action} ({detail})" if detail else action


def _pull_request(body: Body) -> str:
    return _subject(body, "pull_request", "PR")


def _issues(body: Body) -> str:
    return _subject(body, "issue", "PR" if at(body, "issue", "pull_request") else "issue")


def _discussion(body: Body) -> str:
    return _subject(body, "discussion", "discussion")


def _comment(of: str, noun: str) -> Callable[[Body], str]:
    def said(body: Body) -> str:
        place = _place(body, word(body, of, "number"))
        where = word(body, "comment", "path")
        changed = "" if _action(body) == "created" else f" {_action(body)}"
        on = f" on {where}" if where else ""
        return f"{place} {noun}{changed}{_by(body)}{on}{quoted(word(body, 'comment', 'body'))}"

    return said


def _review(body: Body) -> str:
    state = word(body, "review", "state").replace("_", " ").lower()
    verdict = {"commented": "review", "changes requested": "changes requested"}.get(state, f"review {state}")
    place = _place(body, word(body, "pull_request", "number"))
    who = word(body, "review", "user", "login")
    edited = f" ({_action(body)})" if _action(body) == "edited" else ""
    return f"{place} {verdict}{edited}{' by ' + who if who else ''}{quoted(word(body, 'review', 'body'))}"


def _review_thread(body: Body) -> str:
    comments = at(body, "thread", "comments")
    first = comments[0] if isinstance(comments, list) and comments else {}
    where = word(first, "path")
    place = _place(body, word(body, "pull_request", "number"))
    on = f" on {where}" if where else ""
    return f"{place} review thread {_action(body)}{_by(body)}{on}{quoted(word(first, 'body'))}"


def _check(name: str, noun: str) -> Callable[[Body], str]:
    def said(body: Body) -> str:
        item = at(body, name) or {}
        title = word(item, "name") or word(item, "app", "name") or word(item, "check_suite", "app", "name")
        result = (word(item, "conclusion") or word(item, "status") or _action(body)).replace("_", " ")
        pulls = at(item, "pull_requests")
        number = word(pulls[0], "number") if isinstance(pulls, list) and pulls else ""
        branch = word(item, "head_branch") or word(item, "check_suite", "head_branch")
        sha = short(word(item, "head_sha"))
        asked = f" ({_action(body)})" if _action(body).startswith("re") and _action(body) != result else ""
        told = quoted(word(item, "output", "title"), 90)
        on = " ".join(filter(None, (branch, f"({sha})" if sha else "")))
        return f"{_place(body, number)} {noun} {title} {result}{asked}{' on ' + on if on else ''}{told}"

    return said


def _job(body: Body) -> str:
    item = at(body, "workflow_job") or {}
    steps = at(item, "steps")
    failed = [word(step, "name") for step in steps or [] if word(step, "conclusion") == "failure"]
    said = _check("workflow_job", "job")(body)
    return f"{said}, failed step: {failed[0]}" if failed else said


def _status(body: Body) -> str:
    said = quoted(word(body, "description"))
    branches = at(body, "branches")
    branch = word(branches[0], "name") if isinstance(branches, list) and branches else ""
    sha = short(word(body, "sha"))
    where = " ".join(filter(None, (branch, f"({sha})" if sha else "")))
    return f"{repository(body)} status {word(body, 'context')} {word(body, 'state')} on {where}{said}"


def _push(body: Body) -> str:
    ref = branch_of(word(body, "ref"))
    kind = "tag " if word(body, "ref").startswith("refs/tags/") else ""
    if at(body, "deleted") is True:
        return f"{repository(body)} {kind}{ref} deleted{_by(body)}"
    commits = at(body, "commits")
    count = len(commits) if isinstance(commits, list) else 0
    many = f"{count} commit{'s' if count != 1 else ''} " if count else ""
    verb = "force-pushed" if at(body, "forced") is True else "pushed"
    head = at(body, "head_commit") or {}
    sha = short(word(head, "id") or word(body, "after"))
    number = word(body, "number")
    return (
        f"{_place(body, number)} {many}{verb} to {kind}{ref or 'it'}{f' ({sha})' if sha else ''}{_by(body)}"
        f"{quoted(word(head, 'message'))}"
    )


def _ref(verb: str) -> Callable[[Body], str]:
    return lambda body: f"{repository(body)} {word(body, 'ref_type')} {branch_of(word(body, 'ref'))} {verb}{_by(body)}"


def _release(body: Body) -> str:
    name = word(body, "release", "name")
    tag = word(body, "release", "tag_name")
    return f"{repository(body)} release {tag} {_action(body)}{_by(body)}{quoted(name) if name != tag else ''}"


def _deployed(item: Any) -> str:
    return f"{branch_of(word(item, 'ref'))} ({short(word(item, 'sha'))})"


def _deployment(body: Body) -> str:
    item = at(body, "deployment") or {}
    return f"{repository(body)} deployment of {_deployed(item)} to {word(item, 'environment')}{_by(body)}"


def _deployment_status(body: Body) -> str:
    item = at(body, "deployment") or {}
    state = word(body, "deployment_status", "state").replace("_", " ")
    said = quoted(word(body, "deployment_status", "description"))
    return f"{repository(body)} deployment to {word(item, 'environment')} {state}: {_deployed(item)}{said}"


def _deployment_review(body: Body) -> str:
    pulls = at(body, "workflow_run", "pull_requests")
    number = word(pulls[0], "number") if isinstance(pulls, list) and pulls else ""
    asked = f"deployment review {_action(body)} for {word(body, 'environment')}"
    return f"{_place(body, number)} {asked}{_by(body)}{quoted(word(body, 'workflow_run', 'name'))}"


def _alert(body: Body) -> str:
    alert = at(body, "alert") or {}
    what = (
        word(alert, "security_advisory", "summary")
        or word(alert, "rule", "description")
        or word(alert, "secret_type_display_name")
        or word(alert, "secret_type").replace("_", " ")
        or word(alert, "affected_package_name")
    )
    package = word(alert, "dependency", "package", "name")
    severity = (
        word(alert, "security_vulnerability", "severity") or word(alert, "rule", "severity") or word(alert, "severity")
    )
    about = " ".join(filter(None, (severity, "alert", word(alert, "number"))))
    return f"{repository(body)} security {about} {_action(body)}{' in ' + package if package else ''}{quoted(what)}"


def _advisory(body: Body) -> str:
    item = at(body, "security_advisory") or {}
    said = quoted(word(item, "summary"))
    return f"Security advisory {word(item, 'ghsa_id')} {_action(body)} ({word(item, 'severity')}){said}"


def _named(noun: str, *path: str, detail: tuple[str, ...] = ()) -> Callable[[Body], str]:
    def said(body: Body) -> str:
        name = word(body, *path)
        more = quoted(word(body, *detail)) if detail else ""
        return f"{repository(body)} {noun} {name} {_action(body)}{_by(body)}{more}".replace("  ", " ")

    return said


def _gollum(body: Body) -> str:
    pages = at(body, "pages") or []
    names = ", ".join(f"{word(page, 'title')} {word(page, 'action')}" for page in pages[:4])
    return f"{repository(body)} wiki: {names}{_by(body)}"


def _merge_group(body: Body) -> str:
    item = at(body, "merge_group") or {}
    said = quoted(word(item, "head_commit", "message"))
    return f"{repository(body)} merge queue {_action(body)} for {branch_of(word(item, 'base_ref'))}{said}"


def _page_build(body: Body) -> str:
    said = quoted(word(body, "build", "error", "message"))
    return f"{repository(body)} pages {word(body, 'build', 'status')}{_by(body)}{said}"


def _package(body: Body) -> str:
    item = at(body, "package") or at(body, "registry_package") or {}
    version = word(item, "package_version", "version")
    return f"{repository(body)} package {word(item, 'name')} {version} {_action(body)}{_by(body)}".replace("  ", " ")


def _installation_repositories(body: Body) -> str:
    changed = at(body, "repositories_added") or at(body, "repositories_removed") or []
    names = ", ".join(word(one, "full_name") for one in changed[:3])
    return f"{repository(body)} app repositories {_action(body)}{_by(body)}: {names}"


def _people(noun: str, *path: str) -> Callable[[Body], str]:
    def said(body: Body) -> str:
        team = word(body, "team", "name") or word(body, "team", "id")
        to = f" ({team})" if team else ""
        return f"{repository(body)} {noun} {word(body, *path)} {_action(body)}{to}{_by(body)}".replace("  ", " ")

    return said


def _organization(body: Body) -> str:
    who = word(body, "membership", "user", "login") or word(body, "user", "login") or word(body, "invitation", "login")
    return f"{repository(body)} organization {_action(body)} {who}{_by(body)}".replace("  ", " ")


def _purchase(body: Body) -> str:
    item = at(body, "marketplace_purchase") or {}
    plan, account = word(item, "plan", "name"), word(item, "account", "login")
    return f"Marketplace purchase {_action(body)}: {plan} for {account}{_by(body)}"


def _sponsorship(body: Body) -> str:
    item = at(body, "sponsorship") or {}
    tier = quoted(word(item, "tier", "name"))
    return f"Sponsorship of {word(item, 'sponsorable', 'login')} {_action(body)}{_by(body)}{tier}"


def _ping(body: Body) -> str:
    events = at(body, "hook", "events")
    names = ", ".join(str(name) for name in events[:6]) if isinstance(events, list) else ""
    return f"{repository(body) or 'GitHub'} webhook ping{': ' + names if names else ''}"


def _dispatch(body: Body) -> str:
    workflow = word(body, "workflow").rpartition("/")[2]
    what = f"workflow {workflow} dispatched" if workflow else f"dispatch {_action(body)}"
    return f"{repository(body)} {what} on {branch_of(word(body, 'ref') or word(body, 'branch'))}{_by(body)}"


def _repository(body: Body) -> str:
    action = _action(body) or "event"
    before = word(body, "changes", "repository", "name", "from") or word(
        body, "changes", "owner", "from", "user", "login"
    )
    return f"{repository(body)} repository {action}{f' (was {before})' if before else ''}{_by(body)}"


def _any(kind: str, body: Body) -> str:
    noun = kind.replace("_", " ")
    said = " ".join(filter(None, (repository(body), noun, _action(body))))
    return f"{said}{_by(body)}" if said else ""


_LINES: Final[dict[str, Callable[[Body], str]]] = {
    "pull_request": _pull_request,
    "issues": _issues,
    "discussion": _discussion,
    "issue_comment": _comment("issue", "comment"),
    "discussion_comment": _comment("discussion", "comment"),
    "pull_request_review": _review,
    "pull_request_review_comment": _comment("pull_request", "review comment"),
    "pull_request_review_thread": _review_thread,
    "commit_comment": lambda body: _comment("", "comment on " + short(word(body, "comment", "commit_id")))(body),
    "check_run": _check("check_run", "check"),
    "check_suite": _check("check_suite", "check suite"),
    "workflow_run": _check("workflow_run", "workflow"),
    "workflow_job": _job,
    "status": _status,
    "push": _push,
    "create": _ref("created"),
    "delete": _ref("deleted"),
    "release": _release,
    "deployment": _deployment,
    "deployment_status": _deployment_status,
    "deployment_review": _deployment_review,
    "merge_group": _merge_group,
    "alert": _alert,
    "code_scanning_alert": _alert,
    "dependabot_alert": _alert,
    "secret_scanning_alert": _alert,
    "repository_vulnerability_alert": _alert,
    "security_advisory": _advisory,
    "fork": lambda body: f"{repository(body)} forked to {word(body, 'forkee', 'full_name')}{_by(body)}",
    "gollum": _gollum,
    "milestone": _named("milestone", "milestone", "title", detail=("milestone", "description")),
    "label": _named("label", "label", "name"),
    "branch_protection_rule": _named("branch protection rule", "rule", "name"),
    "deploy_key": _named("deploy key", "key", "title"),
    "project": _named("project", "project", "name"),
    "project_card": _named("project card", "project_card", "id", detail=("project_card", "note")),
    "project_column": _named("project column", "project_column", "name"),
    "projects_v2_item": _named("project item", "projects_v2_item", "content_type"),
    "page_build": _page_build,
    "package": _package,
    "registry_package": _package,
    "installation": _named("app installation", "installation", "app_slug"),
    "installation_repositories": _installation_repositories,
    "member": _people("member", "member", "login"),
    "membership": _people("member", "member", "login"),
    "team": _people("team", "team", "name"),
    "team_add": _people("team", "team", "name"),
    "org_block": _people("user", "blocked_user", "login"),
    "organization": _organization,
    "marketplace_purchase": _purchase,
    "sponsorship": _sponsorship,
    "repository": _repository,
    "repository_dispatch": _dispatch,
    "workflow_dispatch": _dispatch,
    "ping": _ping,
    "meta": lambda body: f"{repository(body)} webhook {word(body, 'hook', 'id')} {_action(body)}{_by(body)}",
    "star": lambda body: (
        f"{repository(body)} {'star taken back' if _action(body) == 'deleted' else 'starred'}{_by(body)}"
    ),
    "watch": lambda body: f"{repository(body)} starred{_by(body)}",
    "public": lambda body: f"{repository(body)} made public{_by(body)}",
    "repository_import": lambda body: f"{repository(body)} import {word(body, 'status')}{_by(body)}",
    "github_app_authorization": lambda body: f"GitHub app authorization {_action(body)}{_by(body)}",
}
