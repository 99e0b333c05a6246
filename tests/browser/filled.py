"""A team with a real history, and the address of every page with the richest thing of its kind.

Both the pictures (screens.py) and the checks of every page (test_axe.py) walk these.
"""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests import database

SESSIONS = database.ROOT / "tests" / "data" / "sessions"
# Two sessions instead of sixty: every page has something to show, in a tenth of the time.
EXCERPT = SESSIONS / "attio-excerpt.jsonl.gz"


def fill(sessions: Path = SESSIONS) -> dict[str, Any]:
    """A team with its history, a dream's proposals, some of them decided, and a session that was told."""
    from django.core.management import call_command

    from tests.conftest import new_agent, new_team

    acme, people = new_team("acme", alice="owner", bob="reviewer")
    call_command("import_sessions", str(sessions), tenant="acme", handle="alice")
    call_command("dream", tenant="acme")
    agent = new_agent(people["alice"])
    decide(acme, people["bob"])
    tell(acme, agent)
    chain(acme, people["alice"])
    caches(acme, agent)
    filters(acme, people["alice"], people["bob"])
    return {"acme": acme, **people}


def decide(acme: Any, bob: Any) -> None:
    """Approve some, reject one, write one anew."""
    from memory.notes import reading, review
    from memory.tenants import rls
    from memory.tenants.access import member_actor
    from tests.pages import made

    actor = member_actor(bob)
    with rls.tenant_scope(str(acme.pk)):
        waiting = list(reading.queue(actor))
        for proposal in waiting[: len(waiting) // 2]:
            revision = review.approve(proposal, by=actor, shown=made.shown(proposal))
        if len(waiting) > 2:
            review.reject(waiting[-1], by=actor, reason="This was only true for one branch.")
    made.rewritten(revision.note, bob, revision.text.rstrip() + "\n\nAsk Bob before you change this.\n")
    changed = revision.text.replace("test", "check").replace("\n- ", "\n- Its check of types takes a minute.\n- ", 1)
    made.proposal(acme, path=revision.note.path, text=changed, reason="The script was renamed")


def tell(acme: Any, agent: Any) -> None:
    """A session that starts now, in the project of the history."""
    from django.test import Client

    from memory.tenants import rls

    with rls.tenant_scope(str(acme.pk)):
        root = acme.sessions.exclude(cwd="").exclude(project=None).order_by("-last_seq").first().cwd
    payload = {"session_id": "now", "hook_event_name": "SessionStart", "source": "startup", "cwd": root}
    for more in ({}, {"hook_event_name": "UserPromptSubmit", "prompt": "Run the tests and mend what fails"}):
        answer = Client(headers=agent.headers).post(
            "/api/v1/hooks/claude-code", {**payload, **more}, content_type="application/json"
        )
        assert answer.status_code == 200, answer.content


def chain(acme: Any, alice: Any) -> None:
    """A pull request with a failed build that a worker looked into, and an endpoint."""
    import lzma

    from tests.pages import chains

    made = chains.answered(acme)
    log = database.ROOT / "tests" / "data" / "ci-logs" / "mochitest-fail.log.xz"
    chains.part(made["run"], "full_log", lzma.decompress(log.read_bytes()))
    chains.worker(acme, made["thread"], task="Watch the deploy")
    chains.trigger(acme, "ci:alone", summary="Nightly build passed", source="ci")
    chains.endpoint(acme, alice)


def caches(acme: Any, agent: Any) -> None:
    """Two weeks of lookups of real file names, with all that the caches' pages show."""
    from datetime import timedelta

    from cache_admin.models import Lookup
    from memory.tenants import rls
    from tests.cache import filled
    from tests.cache.asked import call
    from tests.conftest import Api

    api = Api(agent)
    filled.used(acme, api)
    filled.labels(acme)
    code = Path(filled.__file__).read_text()
    for number in range(12):
        body = call(arguments={"path": f"src/checkout/service_{number}.py"}, content_hash=f"sha256:{number:064x}")
        body["context"]["session"] = "s1"
        filled.store(api, body, code, duration_ms=240)
        for _ in range(number % 5):
            api.post("cache/tools/lookup", body)
        watched = api.post("cache/tools/lookup", call("search_web", arguments={"query": f"Query {number % 3}"})).json()
        api.put(f"cache/tools/{watched['key']}", {"lease": watched["lease"], "result": f"Found {number % 3}"})
    with rls.tenant_scope(str(acme.pk)):
        for place, row in enumerate(Lookup.objects.order_by("pk")):
            back = timedelta(days=place * 7 % 13)
            Lookup.objects.filter(pk=row.pk).update(at=row.at - back)


def filters(acme: Any, alice: Any, bob: Any) -> None:
    """Alice's own filter of the threads, one of Bob's for everybody, and one that she removed just now."""
    from memory.tenants import filters as saved
    from memory.tenants import rls
    from memory.tenants.access import member_actor
    from tests.pages import made

    made.saved_filter(acme, alice, query="q=build&state=any", name="Builds")
    made.saved_filter(acme, bob, query="owned=no", name="Nobody looks after these", is_shared=True)
    gone = made.saved_filter(acme, alice, query="state=closed", name="Closed ones")
    with rls.tenant_scope(str(acme.pk)):
        saved.remove(gone, by=member_actor(alice))


def addresses(team: dict[str, Any]) -> dict[str, str]:
    """Every page that a member opens, by a name, with the richest thing of each kind. Alice, the owner, may see all."""
    from django.db.models import Count

    from memory.tenants import rls

    acme = team["acme"]
    with rls.tenant_scope(str(acme.pk)):
        note = acme.notes.live().annotate(n=Count("revisions")).order_by("-n", "pk").first()
        waiting = list(acme.proposals.open().annotate(n=Count("sources")).order_by("-n", "pk"))
        changed = next((proposal for proposal in waiting if proposal.base_id), waiting[0])
        told = acme.tellings.order_by("-at", "pk").first().session
        longest = acme.sessions.order_by("-last_seq", "pk").first()
        event = longest.events.exclude(tool="").order_by("-size", "pk").first()
        decided = acme.proposals.exclude(state="open").order_by("-decided_at", "pk").first()
        dream = acme.dreams.order_by("-created_at", "pk").first()
        answered = acme.threads.filter(worker_count__gt=0).order_by("created_at").first()
        opened = answered.triggers.order_by("seq").first()
        worker = answered.workers.exclude(report="").first()
        run = acme.triggers.get(summary__startswith="build failed")
        endpoint = acme.endpoints.first()
        entry = acme.cache_entries.filter(tool="read_file").order_by("-pk").first()
        incident = acme.cache_incidents.exclude(detail="").order_by("-pk").first()
        analysis = acme.analyses.first()
        project = acme.projects.order_by("slug").first()
    log = f"triggers/{run.public_id}/payload/?part=full_log"
    pages = {
        "find": "find/?q=retr",
        "threads": "threads/",
        "threads-filtered": "threads/?q=build&state=open",
        "thread": f"threads/{answered.public_id}/",
        "thread-edit": f"threads/{answered.public_id}/edit/",
        "hop-map": f"threads/{answered.public_id}/map/?to={run.public_id}",
        "unlinked": "threads/unlinked/",
        "trigger": f"triggers/{opened.public_id}/",
        "payload": f"{log}&errors=1",
        "payload-search": f"{log}&q=TEST-UNEXPECTED",
        "worker": f"workers/{worker.public_id}/",
        "webhooks": "webhooks/",
        "webhook": f"webhooks/{endpoint.public_id}/",
        "guide-threads": "guide/threads/",
        "caches": "caches/",
        "cache-tools": "caches/tools/",
        "cache-policy": "caches/policy/?tool=read_file",
        "cache-policy-new": "caches/policy/?tool=mcp__shop__get_price",
        "cache-entries": "caches/entries/",
        "cache-entry": f"caches/entries/{bytes(entry.key).hex()}/",
        "cache-purge": "caches/purge/?tool=read_file",
        "cache-similar": "caches/similar/",
        "cache-analyses": "caches/analyses/",
        "cache-analysis": f"caches/analyses/{analysis.public_id}/",
        "cache-incidents": "caches/incidents/",
        "cache-incident": f"caches/incidents/{incident.public_id}/",
        "cache-repeats": "caches/repeats/?count=yes&days=90",
        "cache-prompts": "caches/prompts/",
        "cache-settings": "caches/settings/",
        "inbox": "",
        "proposal-new": f"proposals/{waiting[0].public_id}/",
        "proposal-change": f"proposals/{changed.public_id}/",
        "proposal-decided": f"proposals/{decided.public_id}/",
        "proposal-edit": f"proposals/{waiting[0].public_id}/edit/",
        "proposal-told": f"proposals/{waiting[0].public_id}/told/",
        "notes": "notes/",
        "notes-folder": "notes/?folder=project",
        "notes-none": "notes/?q=nothinglikethis",
        "note": f"notes/{note.public_id}/",
        "note-edit": f"notes/{note.public_id}/edit/",
        "note-raw": f"notes/{note.public_id}/edit/?mode=raw",
        "note-told": f"notes/{note.public_id}/told/",
        "note-lines": f"notes/{note.public_id}/lines/",
        "own-space": f"spaces/{team['alice'].public_id}/",
        "rules": "rules/",
        "note-new": "notes/new/",
        "note-files": "notes/files/",
        "notes-deleted": "notes/deleted/",
        "purge": "purge/",
        "note-history": f"notes/{note.public_id}/history/",
        "note-diff": f"notes/{note.public_id}/diff/?from=1&to=2",
        "sessions": "sessions/",
        "session-long": f"sessions/{longest.public_id}/",
        "session-told": f"sessions/{told.public_id}/",
        "event": f"events/{event.public_id}/",
        "projects": "projects/",
        "project-limit": f"projects/{project.public_id}/limit/",
        "dreams": "dreams/",
        "dream": f"dreams/{dream.public_id}/",
        "dream-decide": f"dreams/{dream.public_id}/decide/",
        "connect": "connect/",
        "news": "account/news/",
        "garden": "garden/",
        "guide-start": "guide/start/",
        "guide-review": "guide/review/",
        "guide-api": "guide/api/",
        "guide-operate": "guide/operate/",
        "guide-scale": "guide/scale/",
        "members": "members/",
        "roles": "roles/",
        "keys": "keys/",
        "audit": "audit/",
        "sign-on": "sign-on/",
        "sign-on-saml": "sign-on/saml/",
        "settings": "settings/",
        "server": "settings/server/",
        "messages": "messages/",
        "not-found": "notes/nte_none/",
    }
    own = {"account": "/account/", "codes": "/account/codes/", "prove": "/prove/", "password": "/password/"}
    return {name: f"/t/acme/{address}" for name, address in pages.items()} | own


def operated(team: dict[str, Any]) -> dict[str, str]:
    """Every page of whoever runs the server, by a name. Alice becomes an operator."""
    from memory.tenants.models import User

    User.objects.filter(pk=team["alice"].user_id).update(is_operator=True)
    pages = {"teams": "", "team-new": "new/", "log": "log/", "team": "teams/acme/"}
    return {f"operator-{name}": f"/operator/{address}" for name, address in pages.items()}


def outside(team: dict[str, Any]) -> dict[str, str]:
    """Every page that is opened before one is logged in, by a name."""
    from memory.tenants import invitations, keys, rls
    from memory.tenants.access import member_actor

    acme, actor = team["acme"], member_actor(team["alice"])
    with rls.tenant_scope(str(acme.pk)):
        link = keys.make_login_link(team["bob"], by=actor)
        _, invited = invitations.invite(acme, "dana@acme.test", role="member", by=actor)
    pages = {"login": "/login/", "link": urlsplit(link).path, "link-used": "/login/link/none/"}
    return pages | {"sso": "/sso/", "invitation": urlsplit(invited).path}
