"""Slack, GitLab, mail and senders of one's own: proof, repeats, threads."""

import json
from email.message import EmailMessage
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.graph.models import Thread
from memory.graph.webhooks import generic, mail
from memory.graph.webhooks.models import Mark
from memory.graph.webhooks.proofs import STANDARD, Proof
from memory.graph.webhooks.taken import Unreadable, moment
from memory.tenants import rls
from memory.tenants.models import Tenant
from tests.graph.webhook_calls import Sender, new_sender, threads, triggers


def keys(tenant: Tenant) -> list[str | None]:
    return [trigger.thread.key for trigger in triggers(tenant)]


# --- Slack


@pytest.fixture
def slack(acme: Tenant) -> Sender:
    return new_sender(acme, "slack")


def message(event_id: str, ts: str, text: str = "The retry test is red", **more: Any) -> dict[str, Any]:
    event = {"type": "message", "user": "U1", "channel": "C1", "text": text, "ts": ts, **more}
    return {"type": "event_callback", "team_id": "T1", "event_id": event_id, "event_time": 1767225600, "event": event}


def test_slack_reads_its_challenge_back(slack: Sender, acme: Tenant) -> None:
    body = {"type": "url_verification", "challenge": "3eZbrw1aB", "token": "x"}
    answer = slack.slack(body)
    assert (answer.status_code, answer.json()) == (200, {"challenge": "3eZbrw1aB"})
    assert triggers(acme) == []
    assert slack.post(json.dumps(body).encode()).status_code == 401


def test_a_slack_thread_is_a_thread_and_a_retry_is_no_second_event(slack: Sender, acme: Tenant) -> None:
    first = slack.slack(message("Ev1", "1767225600.000100"))
    retry = slack.slack(message("Ev1", "1767225600.000100"), X_Slack_Retry_Num="1", X_Slack_Retry_Reason="http_timeout")
    assert (first.status_code, retry.status_code) == (200, 200)
    assert first.json()["trigger_id"] == retry.json()["trigger_id"]
    slack.slack(message("Ev2", "1767225700.000200", "On it", thread_ts="1767225600.000100"))
    edited = {
        "type": "message",
        "text": "On it!",
        "ts": "1767225700.000200",
        "thread_ts": "1767225600.000100",
        "user": "U1",
    }
    slack.slack(message("Ev3", "1767225800.000300", subtype="message_changed", message=edited))
    slack.slack({**message("Ev4", "1"), "event": {"type": "reaction_added", "user": "U2", "reaction": "eyes",
                                                   "item": {"channel": "C1", "ts": "1767225600.000100"}}})  # fmt: skip
    slack.slack(message("Ev5", "1767226000.000400", "Another thing"))
    assert keys(acme) == ["slack:C1:1767225600.000100"] * 4 + ["slack:C1:1767226000.000400"]
    assert threads(acme)["slack:C1:1767225600.000100"].title == "The retry test is red"
    assert "http_timeout" in [one.detail for one in slack.deliveries()][-2]


@pytest.mark.parametrize("late", [-400, 400])
def test_an_old_slack_call_is_refused(slack: Sender, late: int) -> None:
    import time

    answer = slack.slack(message("Ev1", "1.1"), at=time.time() + late)
    assert (answer.status_code, answer.json()["code"]) == (401, "stale")


def test_a_slash_command_and_a_button_are_taken(slack: Sender, acme: Tenant) -> None:
    form = "application/x-www-form-urlencoded"
    command = urlencode(
        {"command": "/deploy", "text": "pay", "user_name": "eve", "channel_id": "C7", "trigger_id": "1.2"}
    )
    assert slack.slack(None, raw=command.encode(), kind=form).status_code == 200
    pressed = {"type": "block_actions", "trigger_id": "1.3", "user": {"username": "eve"}, "channel": {"id": "C7"}}
    assert slack.slack(None, raw=urlencode({"payload": json.dumps(pressed)}).encode(), kind=form).status_code == 200
    assert keys(acme) == ["slack:C7", "slack:C7"]
    assert triggers(acme)[0].summary == "eve in a channel: /deploy pay"


# --- GitLab


@pytest.fixture
def lab(acme: Tenant) -> Sender:
    return new_sender(acme, "gitlab")


PROJECT = {"id": 5, "path_with_namespace": "acme/pay"}


def merge_request(action: str, state: str = "opened", **more: Any) -> dict[str, Any]:
    item = {"iid": 7, "title": "Retry", "action": action, "state": state, "source_branch": "fix",
            "source_project_id": 5, "last_commit": {"id": "a" * 40}, **more}  # fmt: skip
    return {"object_kind": "merge_request", "project": PROJECT, "user": {"username": "eve"}, "object_attributes": item}


def test_all_of_a_merge_request_lands_in_one_thread(lab: Sender, acme: Tenant) -> None:
    pipeline = {"id": 9, "status": "failed", "ref": "fix", "sha": "b" * 40, "tag": False}
    for body in (
        merge_request("open"),
        {"object_kind": "push", "project": PROJECT, "ref": "refs/heads/fix", "after": "b" * 40, "commits": []},
        {"object_kind": "pipeline", "project": PROJECT, "object_attributes": pipeline},
        {
            "object_kind": "build",
            "project_id": 5,
            "project": PROJECT,
            "sha": "b" * 40,
            "ref": "fix",
            "build_name": "lint",
        },
        {"object_kind": "note", "project": PROJECT, "merge_request": {"iid": 7}, "object_attributes": {"note": "Why?"}},
        merge_request("merge", "merged", merge_commit_sha="c" * 40),
        {"object_kind": "push", "project": PROJECT, "ref": "refs/heads/main", "after": "c" * 40, "commits": []},
    ):
        assert lab.gitlab(body).status_code == 201
    assert set(keys(acme)) == {"gitlab:acme/pay!7"}
    lab.gitlab({"object_kind": "push", "project": PROJECT, "ref": "refs/heads/fix", "after": "d" * 40, "commits": []})
    lab.gitlab({"object_kind": "issue", "project": PROJECT, "object_attributes": {"iid": 7, "action": "open"}})
    assert keys(acme)[-2:] == ["gitlab:acme/pay@refs/heads/fix", "gitlab:acme/pay#7"]


def test_gitlab_is_asked_for_its_token_and_repeats_are_seen(lab: Sender, acme: Tenant) -> None:
    assert lab.post(b"{}").json()["code"] == "no_token"
    assert lab.post(b"{}", X_Gitlab_Token="wrong").status_code == 401
    for _ in range(2):
        lab.gitlab(merge_request("open"), Idempotency_Key="k1")
    assert len(triggers(acme)) == 1


def test_gitlabs_signing_token_is_checked(acme: Tenant) -> None:
    signer = new_sender(acme, "gitlab", "signed", proof=STANDARD)
    raw = json.dumps(merge_request("open")).encode()
    assert signer.secret.startswith("whsec_")
    assert signer.standard(raw).status_code == 201
    assert signer.standard(raw).json()["status"] == "repeated"
    assert signer.standard(raw, at=1).json()["code"] == "stale"
    assert signer.post(raw, X_Gitlab_Token=signer.secret).json()["code"] == "no_signature"


# --- Mail


@pytest.fixture
def post(acme: Tenant) -> Sender:
    return new_sender(acme, "mail")


def letter(own: str, subject: str = "Retry", *, answers: str = "", references: str = "", date: str = "") -> bytes:
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "Eve <eve@x.test>", "team@acme.test", subject
    for name, value in (("Message-ID", own), ("In-Reply-To", answers), ("References", references), ("Date", date)):
        if value:
            made[name] = value
    made.set_content("See PAY-12.\n")
    return made.as_bytes()


def test_a_secret_in_a_subject_is_kept_nowhere_and_a_reply_still_finds_its_thread(post: Sender, acme: Tenant) -> None:
    secret = "ghp_" + "aZ3kQ9xL0pW7vB2nM5cR8tY1uE4sD6fG0hJ2"
    post.mail(letter("<a@x>", f"Key {secret}"))
    post.mail(letter("<b@x>", f"Re: Key {secret}"))
    assert keys(acme) == ["mail:a@x", "mail:a@x"]
    with rls.tenant_scope(str(acme.pk)):
        kept = [*Mark.objects.values_list("mark", flat=True), *Thread.objects.values_list("title", flat=True)]
    assert kept and not [text for text in kept if secret[4:].lower() in text.lower()]


def test_a_mail_thread_is_found_by_references(post: Sender, acme: Tenant) -> None:
    for raw in (
        letter("<a@x>", date="Thu, 01 Jan 2026 10:00:00 +0200"),
        letter("<b@x>", "Re: Retry", answers="<a@x>", references="<a@x>"),
        letter("<c@x>", "AW: another subject", answers="<b@x>"),
        letter("<d@x>", "Re: Retry", references="<a@x> <b@x> <c@x>"),
    ):
        assert post.mail(raw).status_code == 201
    assert set(keys(acme)) == {"mail:a@x"}
    first = triggers(acme)[0]
    assert (
        first.summary == "Eve: Retry"
        and first.occurred_at
        and first.occurred_at.isoformat().startswith("2026-01-01T08")
    )
    # The same mail again, as relays deliver it twice.
    assert post.mail(letter("<b@x>", "Re: Retry", answers="<a@x>", references="<a@x>")).json()["status"] == "repeated"


def test_the_subject_decides_only_at_last(post: Sender, acme: Tenant) -> None:
    post.mail(letter("<a@x>"))
    post.mail(letter("<b@x>", "Re: Retry"))
    post.mail(letter("<c@x>", "Retry"))
    post.mail(letter("<d@x>", "Re: Retry", answers="<elsewhere@y>"))
    assert keys(acme) == ["mail:a@x", "mail:a@x", "mail:c@x", "mail:elsewhere@y"]


def test_an_answer_that_comes_first_is_joined_by_what_it_answers(post: Sender, acme: Tenant) -> None:
    post.mail(letter("<b@x>", "Re: Retry", answers="<a@x>"))
    post.mail(letter("<a@x>"))
    assert keys(acme) == ["mail:a@x", "mail:a@x"]


@pytest.mark.parametrize(
    "raw",
    [
        "Subject: Grüße\nFrom: eve@x.test\n\nSchöne Grüße\n".encode("latin-1"),
        b"From: eve@x.test\nContent-Type: text/plain; charset=nonsense\n\n\xff\xfe\x80 broken\n",
        b"From: eve@x.test\nMessage-ID: no-brackets@x\nDate: yesterday\n\nHi\n",
        b"Subject: =?utf-8?B?broken\nFrom: =?=?= <x\nReferences: <<>> <a b>\n\nHi\n",
        b"From: eve@x.test\nContent-Type: multipart/mixed; boundary=never\n\nno parts\n",
    ],
)  # fmt: skip
def test_a_malformed_mail_loses_nothing(post: Sender, acme: Tenant, raw: bytes) -> None:
    assert post.mail(raw).status_code == 201
    [trigger] = triggers(acme)
    from memory.tenants import rls

    with rls.tenant_scope(str(acme.pk)):
        [part] = trigger.parts.all()
        assert bytes(part.content or b"") == raw


def test_what_is_no_mail_is_refused(post: Sender) -> None:
    for raw in (b"", b"just words", b"\0\1\2", b'{"subject": "x"}'):
        assert post.mail(raw).json()["code"] == "unreadable"


_HEADERS = st.sampled_from(["From", "Subject", "Message-ID", "References", "In-Reply-To", "Date", "Content-Type", "X"])
_VALUES = st.binary(max_size=60).map(lambda raw: raw.replace(b"\n", b" "))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(_HEADERS, _VALUES), max_size=6), st.binary(max_size=80))
def test_any_mail_is_read_or_refused(lines: list[tuple[str, bytes]], body: bytes) -> None:
    raw = b"".join(name.encode() + b": " + value + b"\n" for name, value in lines) + b"\n" + body
    try:
        told = mail.take({}, raw)
    except Unreadable:
        return
    assert told.payload == raw and (told.key is None or 0 < len(told.key) <= 300)
    assert told == mail.take({}, raw)


# --- Any other

MAP = {
    "thread": "/issue/key",
    "external_id": "/id",
    "title": "/issue/fields/summary",
    "summary": "/text",
    "occurred_at": "/at",
}


def test_a_field_map_says_where_things_stand(acme: Tenant) -> None:
    jira = new_sender(acme, "generic", "Jira", field_map=MAP)
    body = {
        "id": 9,
        "issue": {"key": "PAY-123", "fields": {"summary": "Retries"}},
        "text": "PAY-123 is done",
        "at": 1767225600000,
    }
    answer = jira.bearer(json.dumps(body).encode())
    assert answer.status_code == 201 and answer.json()["thread_key"] == "jira:PAY-123"
    [trigger] = triggers(acme)
    assert (trigger.source, trigger.external_id, trigger.summary, trigger.thread.title) == (
        "jira", "9", "PAY-123 is done", "Retries",
    )  # fmt: skip
    assert trigger.occurred_at and trigger.occurred_at.isoformat() == "2026-01-01T00:00:00+00:00"
    assert jira.bearer(json.dumps(body).encode()).json()["status"] == "repeated"
    assert jira.bearer(b'{"other": 1}').json()["code"] == "unreadable"
    assert jira.post(json.dumps(body).encode()).status_code == 401


def test_a_sender_may_sign_in_a_header_of_its_own(acme: Tenant) -> None:
    proof = Proof("hmac", header="X-Acme-Signature", prefix="sha256=")
    sender = new_sender(acme, "generic", "Deploys", proof=proof, secret="a-shared-secret-of-ours")
    raw = b'{"event": "deployed", "service": "pay"}'
    assert sender.post(raw, X_Acme_Signature=sender.signed(raw)).status_code == 201
    assert sender.post(raw, X_Acme_Signature=sender.signed(raw + b" ")).status_code == 401
    assert triggers(acme)[0].summary == "deployed: pay"


@pytest.mark.parametrize("raw", [b"", b"  ", b"null", b"{}", b"[]", b'""'])
def test_an_empty_call_is_refused(acme: Tenant, raw: bytes) -> None:
    sender = new_sender(acme, "generic", "Any")
    assert sender.bearer(raw).json()["code"] == "unreadable" and triggers(acme) == []


def test_a_source_can_not_pretend_to_be_another(acme: Tenant) -> None:
    sender = new_sender(acme, "generic", "GitHub", field_map={"thread": "/t"})
    answer = sender.bearer(b'{"t": "github:acme/payments#412"}')
    assert answer.json()["thread_key"] == "github-hook:github:acme/payments#412"


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("/a/b", 1),
        ("/a~1b", 2),
        ("/m~0n", 3),
        ("/l/0", 4),
        ("/l/1", None),
        ("/l/-", None),
        ("/l/00", None),
        ("/a/b/c", None),
        ("/", 5),
    ],
)
def test_a_json_pointer_leads(path: str, value: Any) -> None:
    assert generic.pointed({"a": {"b": 1}, "a/b": 2, "m~n": 3, "l": [4], "": 5}, path) == value


@pytest.mark.parametrize(
    "wrong", [{"thread": "issue"}, {"thread": 1}, {"other": "/x"}, {"thread": "/a~2"}, [], {"thread": "/x" * 200}]
)
def test_a_map_that_leads_nowhere_is_refused(wrong: Any) -> None:
    with pytest.raises(generic.WrongMap):
        generic.checked_map(wrong)


@pytest.mark.parametrize(
    ("value", "at"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00+00:00"), (1767225600, "2026-01-01T00:00:00+00:00"),
        ("1767225600.000200", "2026-01-01T00:00:00.000200+00:00"),
        ("2026-01-01 02:00:00 UTC", "2026-01-01T02:00:00+00:00"),
        ("2026-01-01T02:00:00+02:00", "2026-01-01T00:00:00+00:00"),
        ("soon", None), (True, None), (-5, None), (1e300, None),
        ("", None), (None, None), ([], None), (float("nan"), None),
    ],
)  # fmt: skip
def test_a_time_is_read(value: Any, at: str | None) -> None:
    found = moment(value)
    assert (found.isoformat() if found else None) == at
