"""Sessions for the tests of dreams, told as Claude Code tells them."""

from typing import Any

from memory.events.models import Event, Session
from memory.events.record import store
from memory.hooks.payloads import Told
from memory.hooks.receive import Call, arrivals
from memory.tenants.models import Member
from memory.tenants.rls import tenant_scope

ROOT = "/home/dev/shop"


def prompt(text: str) -> dict[str, Any]:
    return {"hook_event_name": "UserPromptSubmit", "prompt": text}


def ran(command: str, *, output: str = "ok") -> list[dict[str, Any]]:
    call = {"tool_name": "Bash", "tool_input": {"command": command}}
    answer = {"stdout": output, "stderr": "", "interrupted": False}
    return [
        {"hook_event_name": "PreToolUse", **call},
        {"hook_event_name": "PostToolUse", **call, "tool_response": answer},
    ]


def stop() -> dict[str, Any]:
    return {"hook_event_name": "Stop"}


def tell(member: Member, session: str, *payloads: dict[str, Any], root: str = ROOT, internal: bool = False) -> None:
    """Record the payloads as events of one session, in this order."""
    pk = str(member.tenant_id)
    beside = Told(is_internal=internal)
    with tenant_scope(pk):
        before = Event.objects.count()
        common = {"session_id": session, "cwd": root}
        calls = [
            Call("claude_code", common | payload, None, beside, key=f"{session}-{before + n}")
            for n, payload in enumerate(payloads)
        ]
        store(pk, str(member.pk), arrivals(calls))


def session_of(key: str) -> Session:
    return Session.objects.get(key=key)


def events_of(key: str) -> list[str]:
    return list(Event.objects.filter(session__key=key).order_by("seq").values_list("public_id", flat=True))
