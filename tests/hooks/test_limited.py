"""Hook calls in a project that is closed to the key: refused aloud, told nothing, nothing stored, nothing lost."""

import json
import uuid
from typing import Any

import pytest

from memory.events.models import Event, Project, Session
from memory.recall.models import Telling
from tests import limited
from tests.conftest import new_agent
from tests.hooks.test_hooks import post
from tests.pages import made

NOTE = "---\ntitle: How to deploy\ndescription: The zanzibar cluster\n---\nDeploy to zanzibar by make ship.\n"


def call(name: str = "SessionStart", *, cwd: str = "/src/secret", session: str = "s1", **more: Any) -> dict[str, Any]:
    return {"session_id": session, "cwd": cwd, "hook_event_name": name, "source": "startup", **more}


@pytest.fixture
def secret(acme: Any, mia: Any) -> Project:
    project = limited.project_at(acme, "secret")
    limited.limit(project, mia)
    return project


@pytest.fixture
def other(acme: Any) -> Project:
    return limited.project_at(acme, "other")


def stored(bound: Any, acme: Any) -> tuple[int, int, int]:
    with bound(acme):
        return Session.objects.count(), Event.objects.count(), Project.objects.count()


@pytest.mark.parametrize("remote", ["", "git@github.com:acme/secret.git"])
def test_a_key_that_may_not_see_the_project_is_refused(
    acme: Any, secret: Project, bob: Any, bound: Any, remote: str
) -> None:
    before = stored(bound, acme)
    headers = {"X-Team-Memory-Remote": remote} if remote else {}
    answer = post(
        new_agent(bob), "claude-code", call(cwd="/elsewhere/clone" if remote else "/src/secret/api"), **headers
    )
    assert (answer.status_code, answer.json()["code"]) == (403, "project_closed")
    assert "secret" not in answer.content.decode()
    assert stored(bound, acme) == before


def test_a_batch_refuses_only_its_lines(acme: Any, secret: Project, bob: Any, api: Any, bound: Any) -> None:
    lines = [
        {"client": "claude-code", "payload": call("Stop", cwd=cwd, session=cwd), "workspace_root": cwd}
        for cwd in ("/src/open", "/src/secret", "/src/open", "/src/secret/deep")
    ]
    raw = "\n".join(json.dumps({**line, "key": f"k{n}"}) for n, line in enumerate(lines))
    told = api(new_agent(bob)).post("events/batch", raw, content_type="application/x-ndjson").json()
    assert (told["accepted"], told["repeated"]) == (2, 0)
    assert [(one["line"], one["code"]) for one in told["refused"]] == [(2, "project_closed"), (4, "project_closed")]
    with bound(acme):
        assert {one.cwd for one in Session.objects.all()} == {"/src/open"}


def test_a_session_that_was_open_to_it_takes_nothing_more(acme: Any, mia: Any, bob: Any, bound: Any) -> None:
    project = limited.project_at(acme, "secret")
    agent = new_agent(bob)
    first = post(agent, "claude-code", call(), **{"Idempotency-Key": "first"})
    assert first.status_code == 200
    limited.limit(project, mia)
    # Sent again it would say the ids of what is stored: a repeat is refused like the rest.
    for key in ("first", "second"):
        answer = post(agent, "claude-code", call("Stop"), **{"Idempotency-Key": key})
        assert answer.json()["code"] == "project_closed"
        assert "X-Team-Memory-Event" not in answer
    assert post(agent, "claude-code", call("Stop", session="elsewhere", cwd="/src/open"),
                **{"Idempotency-Key": "first"}).json()["code"] == "project_closed"  # fmt: skip
    with bound(acme):
        assert Event.objects.count() == 1


def test_a_key_with_projects_of_its_own_records_in_these_alone(
    acme: Any, secret: Project, other: Project, alice: Any, bound: Any
) -> None:
    agent = new_agent(alice, only_projects=[other.pk])
    before = stored(bound, acme)
    for cwd in ("/src/secret", "/src/brand-new", "/tmp"):
        assert post(agent, "claude-code", call(cwd=cwd, session=cwd)).json()["code"] == "project_closed", cwd
    assert stored(bound, acme) == before
    assert post(agent, "claude-code", call(cwd="/src/other")).status_code == 200
    assert post(agent, "claude-code", call("Stop", cwd="/src/other/api")).status_code == 200
    with bound(acme):
        assert str(Session.objects.get().project_id) == str(other.pk) and Event.objects.count() == 2


def test_a_limited_key_gives_a_new_remote_to_its_project(acme: Any, alice: Any, bound: Any, secret: Project) -> None:
    plain = made.project(acme, "plain", place="/src/plain")
    agent = new_agent(alice, only_projects=[plain.pk])
    headers = {"X-Team-Memory-Remote": "https://github.com/acme/plain"}
    assert post(agent, "claude-code", call(cwd="/src/plain"), **headers).status_code == 200
    stranger = {"X-Team-Memory-Remote": "https://github.com/acme/vendored"}
    assert post(agent, "claude-code", call("Stop", cwd="/src/plain"), **stranger).json()["code"] == "project_closed"
    with bound(acme):
        assert str(Session.objects.get().project_id) == str(plain.pk)


def test_who_may_see_it_is_told_its_notes_and_others_are_not(
    acme: Any, secret: Project, alice: Any, mia: Any, bob: Any, bound: Any
) -> None:
    made.note(acme, alice, path="project/secret/deploy.md", text=NOTE)
    made.note(acme, alice, path="general/style.md", text="---\ntitle: Style\n---\nWe write plain words.\n")
    mine, his = new_agent(mia), new_agent(bob)
    assert "zanzibar" in post(mine, "claude-code", call()).content.decode()
    for cwd in ("/src/secret", "/src/open"):
        said = post(his, "claude-code", call(cwd=cwd, session=f"b{cwd}")).content.decode()
        assert "zanzibar" not in said and "secret" not in said, cwd
        prompt = call(
            "UserPromptSubmit", cwd=cwd, session=f"b{cwd}", prompt="How do I deploy to zanzibar by make ship?"
        )
        assert "zanzibar cluster" not in post(his, "claude-code", prompt).content.decode(), cwd
    prompt = call("UserPromptSubmit", session="m2", prompt="How do I deploy to zanzibar by make ship?")
    assert "make ship" in post(mine, "claude-code", prompt).content.decode()
    with bound(acme):
        assert {one.member_id for one in Telling.objects.filter(text__contains="zanzibar")} == {uuid.UUID(str(mia.pk))}


def test_asked_only_for_the_telling_it_tells_nothing(
    acme: Any, secret: Project, mia: Any, bob: Any, alice: Any
) -> None:
    made.note(acme, alice, path="project/secret/deploy.md", text=NOTE)
    only = {"X-Team-Memory-Tell": "only"}
    assert post(new_agent(bob), "claude-code", call(), **only).json() == {}
    assert "zanzibar" in post(new_agent(mia), "claude-code", call(session="m"), **only).content.decode()


def test_named_keys_alone_see_it(acme: Any, mia: Any, alice: Any) -> None:
    ci, laptop = new_agent(mia), new_agent(mia)
    project = limited.project_at(acme, "secret")
    made.note(acme, alice, path="project/secret/deploy.md", text=NOTE)
    limited.limit(project, mia, keys=(ci.key,))
    assert post(laptop, "claude-code", call()).json()["code"] == "project_closed"
    assert "zanzibar" in post(ci, "claude-code", call()).content.decode()
