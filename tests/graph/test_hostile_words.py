"""What no database and no UTF-8 can hold comes in all the same, as U+FFFD, by every door that takes words."""

import json
from typing import Any

import pytest

from memory.graph import mentions
from memory.graph.summaries import summarize
from memory.graph.webhooks import mail
from memory.graph.webhooks.github import take

MAILS = (
    b"Subject: =?utf-8?b?/////w==?=\nMessage-ID: <a\0@b>\nFrom: \xff\xfe\nDate: Mon, 99 Foo 99999 99:99:99 +9999\n\nx",
    b"Content-Type: application/x; name*0*=a'b'%ff; name*=x''%zz\nMessage-ID: <fn@q>\n\nx",
    b"Subject: a\0b\nFrom: x\nReferences: <\0@q>\n\nx",
)


def is_fit(text: str) -> bool:
    text.encode()
    return "\0" not in text


@pytest.mark.parametrize("raw", MAILS)
def test_a_mail_of_any_kind_is_read(raw: bytes) -> None:
    taken = mail.take({}, raw)
    marks = taken.marks.seek + taken.marks.keep + taken.marks.renew
    assert all(map(is_fit, (taken.key or "", taken.external_id or "", taken.title, *marks)))
    assert mentions.words_of(raw, "message/rfc822") is not None and is_fit(summarize("mail", raw, "message/rfc822"))


def test_a_repository_may_be_called_anything() -> None:
    body = {"action": "opened", "number": 1, "pull_request": {"number": 1, "title": "\ud800"}}
    raw = json.dumps(body | {"repository": {"full_name": "\ud800/x", "id": 1}}).encode()
    taken = take({"X-GitHub-Event": "pull_request"}, raw)
    assert all(map(is_fit, (taken.key or "", taken.title, taken.repository, *taken.marks.keep, *taken.names)))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("cache/invalidate", {"tool": "\ud800"}),
        ("results", {"content": "x", "project": "\ud800"}),
        ("cache/tools/lookup", {"tool": "x", "arguments": {}, "context": {"project": "\ud800", "session": "\ud800"}}),
        ("workers", {"task": "\ud800"}),
        ("threads", {"title": "\ud800"}),
        ("triggers", {"source": "ci", "payload": "\ud800"}),
        ("triggers", {"source": "ci", "payload": 1, "thread": "\ud800"}),
        ("triggers", {"source": "ci", "payload": 1, "thread": {"\ud800": 1}}),
        ("triggers", {"source": "ci", "payload": 1, "id": "x\udfffy"}),
    ],
)
def test_half_a_character_is_no_fault_of_ours(client: Any, agent: Any, path: str, body: Any) -> None:
    answer = client.post(f"/api/v1/{path}", json.dumps(body), content_type="application/json", headers=agent.headers)
    assert answer.status_code < 500 and answer.headers["Content-Type"].startswith("application/")
