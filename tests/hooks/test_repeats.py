"""What the repeat of a hook call is answered: to its own member the same bytes, to another nothing."""

from typing import Any

import pytest

from memory.events.models import Event
from memory.notes import review
from memory.tenants.access import member_actor
from tests.conftest import Agent, new_agent
from tests.hooks.test_hooks import post

START = {
    "session_id": "s1",
    "hook_event_name": "SessionStart",
    "source": "startup",
    "cwd": "/home/dev/shop",
    "prompt_id": "p1",
}
PRIVATE = "---\ntitle: Mine\n---\n- The purple elephant\n"
SECRET = "ghp_" + "A1b2C3d4E5" * 4


@pytest.fixture
def bob_s(bob: Any, acme: Any, bound: Any) -> Agent:
    with bound(acme):
        review.write(acme, path="profile/me.md", text=PRIVATE, by=member_actor(bob), member=bob, base=None)
    return new_agent(bob)


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "start-1"}])
def test_a_repeat_tells_private_notes_to_their_member_only(
    agent: Agent, bob_s: Agent, acme: Any, bound: Any, headers: dict[str, str]
) -> None:
    first = post(bob_s, "claude-code", START, **headers)
    assert "purple elephant" in first.content.decode()
    theirs = post(agent, "claude-code", START, **headers)
    assert (theirs["X-Team-Memory-Outcome"], theirs.json()) == ("repeat", {})
    for key in (bob_s, new_agent(bob_s.member)):
        again = post(key, "claude-code", START, **headers)
        assert (again["X-Team-Memory-Outcome"], again.content) == ("repeat", first.content)


def test_a_repeat_of_another_s_call_is_not_told_later_either(agent: Agent, bob_s: Agent) -> None:
    post(agent, "claude-code", START)
    assert post(bob_s, "claude-code", START).json() == {}


def test_a_secret_in_a_key_stays_a_key_by_its_digest(agent: Agent, acme: Any, bound: Any) -> None:
    calls = [("s1", f"k-{SECRET}"), ("s1", f"k-{SECRET}"), ("s1", f"k-{SECRET[:-1]}Z")]
    said = [
        post(agent, "codex", {"session_id": session, "a": 1}, **{"Idempotency-Key": key})["X-Team-Memory-Outcome"]
        for session, key in calls
    ]
    assert said == ["new", "repeat", "new"]
    with bound(acme):
        keys = list(Event.objects.values_list("key", flat=True))
    assert all(key.startswith("g:") and len(key) == 66 for key in keys)


def test_a_secret_glued_to_a_key_is_seen_too(agent: Agent, acme: Any, bound: Any) -> None:
    post(agent, "codex", {"session_id": "s1"}, **{"Idempotency-Key": "k-AKIAZFKFZNFF4XFKQ2LM"})
    post(agent, "codex", {"session_id": "s1"}, **{"Idempotency-Key": "0191f3a2-7c1d-7b4e-9a53-3f0c2d1e4b5a:s1:12"})
    with bound(acme):
        keys = list(Event.objects.order_by("seq").values_list("key", flat=True))
    assert keys[0].startswith("g:") and keys[1] == "0191f3a2-7c1d-7b4e-9a53-3f0c2d1e4b5a:s1:12"


def test_a_remote_without_its_codes_holds_no_nul_and_no_secret(agent: Agent, acme: Any, bound: Any) -> None:
    hidden = "".join(f"%{ord(letter):02x}" for letter in SECRET)
    for number, path in enumerate(["a%00b", "%ff%fe", f"x/{hidden}"]):
        remote = {"X-Team-Memory-Remote": f"https://h.test/{path}"}
        assert post(agent, "codex", {"session_id": f"s{number}", "hook_event_name": "X"}, **remote).status_code == 200
    with bound(acme):
        places = [root.place for project in acme.projects.all() for root in project.roots.all()]
    assert len(places) == 3 and not any("\0" in place or SECRET.lower() in place for place in places)
