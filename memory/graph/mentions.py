"""Links between threads, made by rule from what a trigger or a report says: the same text, the same links, once."""

import email
from collections.abc import Iterable, Iterator
from email.message import Message
from email.policy import compat32
from typing import Any, Final

from memory.graph import bodies, links, steps
from memory.graph.links import Target
from memory.graph.models import Link, Part, Step, Thread, Trigger, Worker
from memory.graph.references import Reference, references
from memory.graph.summaries.mail import readable
from memory.graph.webhooks import marks
from memory.graph.webhooks.models import Endpoint, Mark
from memory.problems import Problem
from memory.tenants.models import Tenant
from memory.tenants.rest import fast_json

KIND: Final = "mentions"
RULE: Final = f"{links.RULE}mention"
# A text names what matters near its beginning; a log's end says how it went.
_HEAD: Final = 256 * 1024
_TAIL: Final = 32 * 1024
# More links from one text would be a table of contents, not a cause.
_MOST: Final = 50
# In the JSON of others: fields in which people and tools write, and objects that only say who and where.
_SAYING: Final = frozenset(
    (
        "title", "body", "message", "text", "description", "summary", "name", "ref", "head_ref", "head_branch", "note",
        "source_branch", "branch", "comment", "content", "subject", "target_url", "details_url", "environment_url",
        "log_url", "permalink", "fallback", "title_link", "link", "links", "detail", "reason", "error", "value",
    )
)  # fmt: skip
_SILENT: Final = frozenset(
    (
        "repository", "sender", "organization", "installation", "user", "author", "committer", "pusher", "owner",
        "repo", "project", "base", "_links", "reactions", "labels", "label", "app", "creator", "assignees", "team",
        "enterprise", "user_profile", "authorizations", "workflow", "head_repository",
    )
)  # fmt: skip
_NESTED: Final = (dict, list)
_TRACKERS: Final = ("jira", "linear", "youtrack", "ticket")


def link_trigger(trigger: Trigger, *, repository: str = "") -> list[Link]:
    """Link a trigger's thread to the threads its summary and payload name. Safe to run again.

    Runs in a transaction bound to the tenant. `repository` (`github:acme/payments`) is whose #412 a bare one is.
    """
    part = Part.objects.filter(trigger=trigger, name="payload").first()
    said = [trigger.thread.title, trigger.summary]
    if part is not None:
        raw = _content(str(trigger.tenant_id), part.content, part.sha256)
        said += words_of(raw, part.media_type)
    home = repository or repository_of(trigger.thread.key or "")
    return link_text(trigger.thread, "\n".join(said), repository=home, because_of=trigger.public_id)


def link_report(worker: Worker) -> list[Link]:
    """Link a worker's thread to the threads its report names. Safe to run again."""
    if worker.thread is None:
        return []
    text = worker.report
    if not text and worker.report_sha256:
        text = _content(str(worker.tenant_id), None, worker.report_sha256).decode("utf-8", "replace")
    home = repository_of(worker.thread.key or "")
    return link_text(worker.thread, f"{worker.task}\n{text}", repository=home, because_of=worker.public_id)


def link_text(thread: Thread, text: str, *, repository: str, because_of: str) -> list[Link]:
    """Link a thread to what a text names: to live threads, and to keys of pull requests and tickets that may come."""
    tenant = Tenant(pk=thread.tenant_id)
    named = references(text, repository=repository or None)[:_MOST]
    found: dict[str, Target] = {}
    for to in _targets(tenant, named, repository):
        if to.shown != thread.public_id and to.key != thread.key:
            found.setdefault(to.shown, to)
    steps.lock([thread, *(to.thread for to in found.values() if to.thread)] if found else [])
    return [
        links.add(thread, to, kind=KIND, made_by=RULE, because_of=because_of)[0]
        for to in sorted(found.values(), key=lambda to: (str(to.thread.pk) if to.thread else "", to.key))
    ]


def repository_of(key: str) -> str:
    """`github:acme/payments` out of the key of one of its threads."""
    host, _, rest = key.partition(":")
    if host not in ("github", "gitlab") or "/" not in rest:
        return ""
    for sign in "#!@":
        rest = rest.partition(sign)[0]
    return f"{host}:{'/'.join(rest.split('/')[:2]) if host == 'github' else rest}"


def thread_with(tenant: Tenant, key: str) -> Thread | None:
    """The live thread that a key means, in whatever case its repository is written; `ticket:PAY-7` in any tracker."""
    if key.startswith("ticket:"):
        return _ticket(tenant, key.removeprefix("ticket:")).thread
    return links.target(tenant, _known_key(tenant, key)).thread


def branch_mark(tenant: Tenant, repository: str, branch: str) -> str:
    """The mark by which deliveries find the pull request of a branch."""
    name = f"github name {repository.removeprefix('github:').lower()}"
    number = marks.named(tenant, [name]).get(name, "").partition(" ")[0]
    return f"{number or repository.lower()}:refs/heads/{branch}"


def thread_of_branch(tenant: Tenant, repository: str, branch: str) -> Thread | None:
    """The live thread of the pull request that a branch was seen with last."""
    mark = branch_mark(tenant, repository, branch)
    key = marks.named(tenant, [mark]).get(mark, "")
    return links.target(tenant, key).thread if key else None


def _targets(tenant: Tenant, named: Iterable[Reference], repository: str) -> Iterator[Target]:
    for reference in named:
        match reference.kind:
            case "thread" | "trigger" | "worker" | "session" | "event":
                yield from _of_id(tenant, reference)
            case "pr" | "issue" | "number" | "message":
                yield links.target(tenant, _known_key(tenant, reference.key))
            case "ticket":
                yield _ticket(tenant, reference.key)
            case "commit":
                yield from _of_commit(tenant, reference.key, repository)
            case "run" | "deploy" | "release":
                yield from _only_live(tenant, _known_key(tenant, reference.key, kind=reference.kind))


def _of_id(tenant: Tenant, reference: Reference) -> Iterator[Target]:
    thread: Thread | None = None
    match reference.kind:
        case "thread":
            thread = tenant.threads.filter(public_id=reference.key, deleted_at__isnull=True).first()
        case "trigger":
            trigger = tenant.triggers.select_related("thread").filter(public_id=reference.key, deleted_at__isnull=True)
            thread = next((one.thread for one in trigger), None)
        case "event":
            step = Step.objects.select_related("thread").filter(public_id=reference.key, tenant=tenant)
            thread = next((one.thread for one in step), None)
        case _:
            by = {"public_id": reference.key} if reference.kind == "worker" else {"session_public_id": reference.key}
            worker = tenant.workers.select_related("thread").filter(**by, deleted_at__isnull=True).first()
            thread = worker.thread if worker else None
    if thread is not None and thread.deleted_at is None:
        yield Target(thread, thread.key or "")


def _only_live(tenant: Tenant, key: str) -> Iterator[Target]:
    """Runs and deploys have no thread of their own: only one that was seen with them is a target."""
    to = links.target(tenant, key)
    if to.thread is not None:
        yield to


def _known_key(tenant: Tenant, key: str, *, kind: str = "") -> str:
    """The key as its thread has it: names of repositories differ in case and change, their numbers do not."""
    if kind == "deploy" and not key.startswith("github:"):
        return marks.named(tenant, [f"deploy:{key}"]).get(f"deploy:{key}", key)
    if not key.startswith("github:"):
        return key
    home = repository_of(key.replace("/runs/", "#", 1) if kind == "run" else key)
    rest = key[len(home) :]
    name = f"github name {home.removeprefix('github:').lower()}"
    number, _, full_name = marks.named(tenant, [name]).get(name, "").partition(" ")
    if not full_name:
        return key
    return marks.named(tenant, [f"{number}{rest}"]).get(f"{number}{rest}", f"github:{full_name}{rest}")


def _ticket(tenant: Tenant, key: str) -> Target:
    """The thread of a ticket in whichever tracker sends here; where none has it yet, the key it will have."""
    own = Endpoint.objects.filter(tenant=tenant, kind=Endpoint.Kind.GENERIC).order_by("created_at", "pk")
    sources = list(dict.fromkeys([*own.values_list("source", flat=True)[:50], *_TRACKERS]))
    keys = [f"{source}:{key}" for source in sources] + [key]
    live = {thread.key: thread for thread in tenant.threads.filter(key__in=keys, deleted_at__isnull=True)}
    known = next((one for one in keys if one in live), None)
    if known is not None:
        return Target(live[known], known)
    tracker = next((source for source in sources if source in _TRACKERS), _TRACKERS[0])
    return Target(None, f"{tracker}:{key}")


def _of_commit(tenant: Tenant, sha: str, repository: str) -> Iterator[Target]:
    """The thread that a commit was seen in, in the repository of the thread that names it."""
    if not repository.startswith("github:"):
        return
    name = f"github name {repository.removeprefix('github:').lower()}"
    number = marks.named(tenant, [name]).get(name, "").partition(" ")[0]
    if number:
        seen = Mark.objects.filter(tenant=tenant, **_beginning("mark", f"{number}@{sha}"))
        keys = list(dict.fromkeys(seen.order_by("mark").values_list("key", flat=True)[:2]))
        if len(keys) == 1:
            yield from _only_live(tenant, keys[0])
            return
    threads = list(tenant.threads.filter(deleted_at__isnull=True, **_beginning("key", f"{repository}@{sha}"))[:2])
    if len(threads) == 1:
        yield Target(threads[0], threads[0].key or "")


def _beginning(field: str, text: str) -> dict[str, str]:
    """A lookup of what begins with a text, by bounds: the database's order is C.UTF-8, so the index serves it."""
    return {f"{field}__gte": text, f"{field}__lt": f"{text}g"}


def _content(tenant_pk: str, content: Any, sha256: Any) -> bytes:
    raw = bytes(content) if content is not None else bodies.fetch(tenant_pk, bytes(sha256)) or b""
    return raw if len(raw) <= _HEAD + _TAIL or raw[:1] in b"{[" else raw[:_HEAD] + b"\n" + raw[-_TAIL:]


def words_of(raw: bytes, media_type: str) -> list[str]:
    """What people and tools wrote in a payload, without the addresses and names that every body of a kind carries."""
    bare = media_type.partition(";")[0].strip().lower()
    if bare == "message/rfc822":
        return _of_mail(raw)
    if "json" in bare or raw[:1] in (b"{", b"["):
        try:
            return words_in(fast_json(raw)[0])
        except Problem:
            return []
    return (
        [raw.decode("utf-8", "replace")] if bare.startswith("text/") or not bare.startswith("application/oct") else []
    )


def words_in(value: Any) -> list[str]:
    """As `words_of`, of a JSON value."""
    return list(_leaves(value))


def _leaves(value: Any) -> Iterator[str]:
    left = _HEAD
    layer: list[tuple[str, Any]] = [("", value)]
    while layer and left > 0:
        below: list[tuple[str, Any]] = []
        for field, node in layer:
            if type(node) is str:
                if field in _SAYING and left > 0:
                    left -= len(node)
                    yield node[:_HEAD]
            elif type(node) is dict:
                for key, inner in node.items():
                    # Most leaves say nothing: numbers, and texts under other names.
                    name = key.lower()
                    if name not in _SILENT and (type(inner) in _NESTED or (type(inner) is str and name in _SAYING)):
                        below.append((name, inner))
            elif type(node) is list:
                below += [(field, inner) for inner in node]
        layer = below


def _of_mail(raw: bytes) -> list[str]:
    message = email.message_from_bytes(raw, policy=compat32)
    found = []
    for part in list(message.walk())[:100]:
        if part.get_content_type() == "text/plain" or (not message.is_multipart() and part is message):
            found.append(_text_of(part)[:_HEAD])
    return found


def _text_of(part: "Message[str, str]") -> str:
    payload = part.get_payload(decode=True)
    return readable(payload, _charset_of(part)) if isinstance(payload, bytes) else ""


def _charset_of(part: "Message[str, str]") -> str:
    try:
        return str(part.get_content_charset() or "utf-8")
    except (TypeError, ValueError, LookupError):  # parameters that the standard library can't put together
        return "utf-8"
