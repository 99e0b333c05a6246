"""Every way by which words come into the memory, and every place where they may have stayed."""

import io
import json
import logging
import random
import re
import subprocess
import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from django.core.management import call_command
from django.test import Client

from cache_admin import policies
from memory.logs import Masked
from memory.management.dump import _tool, connection
from memory.tenants.access import command_actor
from memory.tenants.rls import tenant_scope
from tests import database
from tests.conftest import Agent, Api
from tests.dream.test_model import mind
from tests.dream.told import ROOT
from tests.graph.webhook_calls import Sender, new_sender
from tests.llm_server import Reply, provider
from tests.mcp.asked import Mcp
from tests.pages import made

HOOK = {"cwd": ROOT}
NOISE = random.Random(3).randbytes(400)  # noqa: S311 - noise, the same in each run


@dataclass
class World:
    """A team, who speaks to it, and how many things were said."""

    acme: Any
    alice: Any
    bob: Any
    agent: Agent
    folder: Path
    count: int = 0
    senders: dict[str, Sender] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.api = Api(self.agent)
        self.person = Client()
        self.person.force_login(self.bob.user)
        with tenant_scope(str(self.acme.pk)):
            by = command_actor(self.acme, "tests")
            policies.save(self.acme, "ask", by=by, mode="serve", ttl_s=86_400, worst_outcome="nothing", scope="project")
        self.note = made.note(self.acme, self.bob, path="general/known.md", text="- known\n")

    def next(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def sender(self, kind: str) -> Sender:
        if kind not in self.senders:
            self.senders[kind] = new_sender(self.acme, kind)
        return self.senders[kind]

    # --- Hooks

    def hook_prompt(self, text: str) -> Any:
        return self.hook("UserPromptSubmit", prompt=text)

    def hook_output(self, text: str) -> Any:
        used = {"tool_name": "Bash", "tool_use_id": self.next(), "tool_input": {"command": "env"}}
        return self.hook("PostToolUse", **used, tool_response={"stdout": text, "stderr": "", "interrupted": False})

    def hook_input(self, text: str) -> Any:
        used = {"tool_name": "Write", "tool_use_id": self.next()}
        return self.hook("PreToolUse", **used, tool_input={"file_path": "/a/b.env", "content": text})

    def hook_unknown(self, text: str) -> Any:
        return self.hook("SomethingNew", deep={"list": [1, {"said": [text]}]}, last_assistant_message=text)

    def hook(self, name: str, **more: Any) -> Any:
        body = {**HOOK, "session_id": f"s{self.count % 7}", "hook_event_name": name, **more}
        return self.api.post("hooks/claude-code", body)

    def batch(self, text: str) -> Any:
        payload = {**HOOK, "session_id": "b", "hook_event_name": "Stop", "last_assistant_message": text}
        lines = [
            {"client": "claude-code", "key": self.next(), "payload": one} for one in (payload, {**payload, "n": 2})
        ]
        return self.api.post("events/batch", "\n".join(map(json.dumps, lines)), content_type="application/x-ndjson")

    # --- The chain

    def trigger(self, text: str) -> Any:
        return self.api.post(
            "triggers", {"source": "test", "summary": text, "payload": {"body": text}, "thread": {"title": text}}
        )

    def trigger_text(self, text: str) -> Any:
        return self.api.post("triggers", {"source": "test", "payload": text, "media_type": "text/plain"})

    def triggers_batch(self, text: str) -> Any:
        line = {"source": "test", "external_id": self.next(), "summary": text, "payload": {"log": text}}
        return self.api.post("triggers/batch", json.dumps(line), content_type="application/x-ndjson")

    def part(self, raw: bytes, kind: str) -> Any:
        made = self.api.post("triggers", {"source": "test", "summary": self.next(), "payload": {}}).json()
        return self.api.put(f"triggers/{made['trigger_id']}/payload?part=full_log", raw, content_type=kind)

    def part_log(self, text: str) -> Any:
        return self.part(b"line\n" * 5_000 + text.encode() + b"\nline" * 900, "text/plain")

    def part_wide(self, text: str) -> Any:
        return self.part(f"line\r\n{text}\r\n".encode("utf-16"), "text/plain")

    def part_binary(self, text: str) -> Any:
        return self.part(NOISE + b"\0" + text.encode() + b"\0" + NOISE, "application/octet-stream")

    def worker(self, text: str) -> Any:
        made = self.api.post("workers", {"task": text}).json()
        where = f"/api/v1/workers/{made['worker_id']}"
        return self.api.client.patch(where, {"state": "done", "report": f"# Done\n\n{text}"}, "application/json")

    def thread(self, text: str) -> Any:
        return self.api.post("threads", {"title": text, "summary": text})

    # --- Webhooks

    def github(self, text: str) -> Any:
        body = {
            "action": "created",
            "issue": {"number": 7, "title": text},
            "comment": {"id": self.count + 10_000, "body": text},
            "repository": {"full_name": "acme/shop"},
        }
        return self.sender("github").github("issue_comment", body, delivery=self.next())

    def generic(self, text: str) -> Any:
        return self.sender("generic").bearer(json.dumps({"id": self.next(), "message": text}).encode())

    def slack(self, text: str) -> Any:
        event = {"type": "message", "channel": "C1", "user": "U1", "text": text, "ts": f"17000{self.count:05}.1"}
        return self.sender("slack").slack({"type": "event_callback", "event_id": self.next(), "event": event})

    def mail(self, text: str) -> Any:
        message = EmailMessage()
        message["Subject"], message["From"], message["Message-ID"] = "News", "a@b.test", f"<{self.next()}@b.test>"
        message.set_content(text.replace("\0", ""))
        return self.sender("mail").mail(message.as_bytes())

    # --- Notes

    def note_put(self, text: str) -> Any:
        where = f"notes/by-path/team/general/{self.next()}.md"
        return self.api.put(where, f"# Note\n\n{text}\n".encode(), content_type="text/markdown")

    def note_new(self, text: str) -> Any:
        form = {"path": f"general/{self.next()}.md", "text": f"# Note\n\n{text}\n"}
        return self.person.post("/t/acme/notes/new/", form)

    def note_draft(self, text: str) -> Any:
        form = {"path": f"general/{self.next()}.md", "text": text, "message": text}
        return self.person.post("/t/acme/notes/drafts/", form)

    def note_rejected(self, text: str) -> Any:
        waiting = made.proposal(self.acme, path=f"general/{self.next()}.md", text="- a fact\n")
        return self.person.post(f"/t/acme/proposals/{waiting.public_id}/reject/", {"reason": text})

    def note_reported(self, text: str) -> Any:
        self.api.post(f"notes/{self.note.public_id}/reports", {"reason": text})
        return self.person.post(f"/t/acme/notes/{self.note.public_id}/move/", {"path": f"general/{text}.md"})

    def note_comment(self, text: str) -> Any:
        waiting = made.proposal(self.acme, path=f"general/{self.next()}.md", text="- a fact\n")
        return self.person.post(f"/t/acme/proposals/{waiting.public_id}/comment/", {"text": text})

    def note_mcp(self, text: str) -> Any:
        Mcp(self.agent).post(
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": text, "arguments": {"q": text}}}
        )
        said = f"---\ntitle: {json.dumps(text)}\n---\n# Note\n\n{text}\n"
        return Mcp(self.agent).told(
            "tools/call", name="propose_note", arguments={"path": f"general/{self.next()}.md", "text": said}
        )

    # --- Imports

    def import_hooks(self, text: str) -> Any:
        file = self.folder / f"{self.next()}.jsonl"
        line = {**HOOK, "session_id": file.stem, "hook_event_name": "UserPromptSubmit", "prompt": text}
        file.write_text(json.dumps(line) + "\n")
        call_command("import_sessions", str(file), tenant="acme", handle="alice", stdout=io.StringIO())

    def import_transcript(self, text: str) -> Any:
        file = self.folder / f"{self.next()}.jsonl"
        head = {"sessionId": file.stem, "cwd": ROOT, "timestamp": "2026-01-01T10:00:00Z", "uuid": self.next()}
        line = {**head, "type": "user", "message": {"role": "user", "content": text}}
        file.write_text(json.dumps(line) + "\n")
        call_command("import_sessions", str(file), tenant="acme", handle="alice", stdout=io.StringIO())

    def import_memories(self, text: str) -> Any:
        folder = self.folder / self.next()
        folder.mkdir()
        (folder / "CLAUDE.md").write_text(f"# Rules\n\n- {text.replace(chr(0), '')}\n")
        call_command("import_memories", str(folder), tenant="acme", stdout=io.StringIO())

    def import_zip(self, text: str) -> Any:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr(f"general/{self.next()}.md", f"# Note\n\n{text}\n")
        return self.api.post("notes/import?space=team", packed.getvalue(), content_type="application/zip")

    def import_threads(self, text: str) -> Any:
        file = self.folder / f"{self.next()}.jsonl"
        issue = {"number": self.count, "title": text, "body": text}
        payload = {"action": "opened", "issue": issue, "repository": {"full_name": "acme/shop"}}
        file.write_text(json.dumps({"ts": "2026-01-01T10:00:00Z", "event": "issues", "payload": payload}) + "\n")
        call_command("import_threads", str(file), tenant="acme", stdout=io.StringIO())

    # --- Caches

    def cache_tool(self, text: str) -> Any:
        return self.cached({"path": f"{self.next()}.md"}, text)

    def cache_arguments(self, text: str) -> Any:
        return self.cached({"path": text, "number": self.next()}, "fine")

    def cached(self, arguments: dict[str, Any], result: str) -> Any:
        where = {"project": "shop", "root": ROOT}
        body = {"tool": "read_file", "arguments": arguments, "context": where, "content_hash": f"sha256:{self.count}"}
        missed = self.api.post("cache/tools/lookup", body).json()
        if "lease" in missed:
            return self.api.put(f"cache/tools/{missed['key']}", {"lease": missed["lease"], "result": result})
        return None

    def cache_question(self, text: str) -> Any:
        asked = {"tool": "ask", "query": f"What is {text}", "context": {"project": "shop"}}
        missed = self.api.post("cache/semantic/lookup", asked).json()
        if "lease" in missed:
            self.api.put(f"cache/tools/{missed['key']}", {"lease": missed["lease"], "result": f"It is {text}"})

    def cache_result(self, text: str) -> Any:
        return self.api.post("results", {"tool": "Bash", "result": f"{'line ' * 900}\n{text}\n"})

    def cache_analysis(self, text: str) -> Any:
        body = {"version": "1", "analysis": {"found": text}, "path": "src/pay.py"}
        return self.api.put(f"cache/analyses/sha256:{self.next()}/review", body)

    def cache_incident(self, text: str) -> Any:
        return self.api.post("cache/incidents", {"result_id": "res_none", "kind": "stale", "detail": text})

    # --- What a model answers

    def model_note(self, text: str) -> Any:
        def writes(event: str) -> str:
            note = {"op": "create", "path": f"general/{self.next()}.md", "title": text, "description": text}
            note |= {"body": f"- {text} [{event}]", "reason": text, "events": [event]}
            told = {"session": self.session, "lines": [f"{text} [{event}]"]}
            return json.dumps({"operations": [note, {**note, "path": text}], "sessions": [told]})

        self.dream(writes)

    def model_error(self, text: str) -> Any:
        self.dream(lambda event: Reply(f"Incorrect API key provided: {text}", status=401))

    def model_chatter(self, text: str) -> Any:
        self.dream(lambda event: f"I can't do that. {text}")

    def dream(self, script: Callable[[str], Any]) -> None:
        """A session of its own is dreamed, and the model says something of it."""
        from dream.models import Run
        from dream.run import perform, start_and_claim
        from memory.events.models import Event
        from memory.tenants.models import Due

        key = self.next()
        for name, more in (("UserPromptSubmit", {"prompt": "Go on"}), ("Stop", {})):
            body = {"session_id": key, "cwd": f"/p/{key}", "hook_event_name": name, **more}
            assert self.api.post("hooks/claude-code", body).status_code == 200
        with tenant_scope(str(self.acme.pk)):
            event = Event.objects.filter(session__key=key).select_related("session").order_by("seq").first()
            assert event is not None
            self.session = event.session.public_id
            Due.objects.filter(task="dream").delete()
            Run.objects.unfinished().delete()
        with provider(lambda prompt: script(event.public_id) if event.public_id in prompt else "{}") as served:
            perform(start_and_claim(self.acme, by=command_actor(self.acme, "tests")), mind=mind(served))

    # --- What is only asked

    def asked(self, text: str) -> Any:
        self.api.get("search", q=text)
        self.person.get("/t/acme/notes/", {"q": text})
        self.person.get(f"/t/acme/notes/{text}/")
        return self.api.get(f"triggers/{text}")

    def headers(self, text: str) -> Any:
        clean = re.sub(r"\0|[\r\n]+ *", "", text)
        body = {**HOOK, "session_id": self.next(), "hook_event_name": "SessionStart", "cwd": f"/home/{clean}"}
        headers = {"Idempotency-Key": clean, "X-Team-Memory-Remote": clean, "X-Team-Memory-Root": clean}
        if not clean.isascii():
            headers = {}
        return self.api.post("hooks/claude-code", body, headers=headers)


WAYS = (
    *("hook_prompt", "hook_output", "hook_input", "hook_unknown", "batch", "trigger", "trigger_text", "triggers_batch"),
    *("part_log", "part_wide", "part_binary", "worker", "thread", "github", "generic", "slack", "mail", "note_put"),
    *("note_new", "note_draft", "note_rejected", "note_reported", "note_comment", "note_mcp", "import_hooks"),
    "import_transcript",
    *("import_memories", "import_zip", "import_threads", "cache_tool", "cache_arguments", "cache_question"),
    *("cache_result", "cache_analysis", "cache_incident", "model_note", "model_error", "model_chatter", "asked"),
    "headers",
)


def everything() -> Iterator[str]:
    """Every column of every row of the database as text; bytes as they are, unpacked, and read as UTF-16."""
    with database.migrator() as owner:
        tables = owner.execute(
            "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition"
            " AND relnamespace = 'public'::regnamespace ORDER BY relname"
        ).fetchall()
        for (table,) in tables:
            for row in owner.execute(f'SELECT * FROM "{table}"'.encode()):
                for value in row:
                    yield from _read(value, str(table))


def _read(value: Any, table: str) -> Iterator[str]:
    if isinstance(value, bytes | memoryview):
        raw = bytes(value)
        for content in (raw, _unpacked(raw)):
            yield content.decode("latin-1")
            if b"\0" in content:
                yield content.replace(b"\0", b"").decode("latin-1")
    elif isinstance(value, dict | list):
        yield json.dumps(value, ensure_ascii=False)
    elif value is not None:
        yield str(value)


def _unpacked(raw: bytes) -> bytes:
    try:
        return zlib.decompress(raw)
    except zlib.error:
        return b""


def dumped() -> str:
    """The whole database as `pg_dump` writes it, by the role that makes backups."""
    parameters = connection("backup")
    given = {name: str(value) for name, value in parameters.items() if name in ("host", "user", "dbname", "port")}
    options = [f"--{name}={value}" for name, value in given.items()]
    environment = {"PGPASSWORD": str(parameters.get("password", ""))}
    tool = _tool("pg_dump", parameters)
    return subprocess.run(
        [tool, "--data-only", "--exclude-schema=pgmq", *options], env=environment, check=True, capture_output=True
    ).stdout.decode("utf-8", "replace")


class LogFile:
    """All that is logged, in the form and behind the filter of the settings."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._handler = logging.FileHandler(file)
        self._handler.addFilter(Masked())
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))

    def __enter__(self) -> "LogFile":
        logging.getLogger().addHandler(self._handler)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self._handler)
        self._handler.close()

    @property
    def text(self) -> str:
        return self.file.read_text(errors="replace")
