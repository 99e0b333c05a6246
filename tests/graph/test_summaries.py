"""One line for whatever arrives: a table for each kind of sender."""

import base64
import json
import lzma
import unicodedata
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.graph import content
from memory.graph.summaries import LIMIT, summarize
from memory.graph.summaries.github import kind_of
from memory.graph.summaries.text import first_error
from tests.graph.webhook_calls import DATA, github_bodies

SHORT = json.loads((DATA / "ci-logs" / "short.json").read_text())
LOGS = ("leak", "mochitest-fail", "reftest-fail", "taskcluster-timeout")


def is_one_line(text: str) -> bool:
    hidden = [
        sign for sign in text if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp") and sign != "\u00ad"
    ]
    return 0 < len(text) <= LIMIT and text == text.strip() and not hidden


@pytest.mark.parametrize("name", LOGS)
def test_a_log_says_its_first_real_error(name: str) -> None:
    packed = (DATA / "ci-logs" / f"{name}.log.xz").read_bytes()
    log = lzma.decompress(packed).decode("utf-8", "replace")
    truth = json.loads((DATA / "ci-logs" / f"{name}.logview.json").read_text())["errors"][0]
    found = first_error(log)
    assert found is not None and found.number - 1 == truth["linenumber"]
    said = summarize("ci", log.encode(), "text/plain")
    assert is_one_line(said) and said.rstrip("…") in " ".join(truth["line"].split())


@pytest.mark.parametrize("case", SHORT, ids=lambda case: case["runner"])
def test_each_runner_is_read(case: dict[str, str]) -> None:
    assert summarize("ci", case["log"].encode(), "text/plain") == case["says"]


@pytest.mark.parametrize(
    "noise",
    [
        "0 errors, 0 warnings", "Errors: 0", "12 passed, 0 failed", "no errors found", "+ grep -c ERROR log.txt",
        'echo "error: this is only shown"', "TEST-PASS | a test of an ERROR page", "--log-errorsummary=error.log",
        "##[group]Run check --fail-fast", "retry: Calling run with args, attempt #1", "warning: unused variable",
    ],
)  # fmt: skip
def test_what_only_sounds_like_an_error_is_none(noise: str) -> None:
    assert first_error(f"building\n{noise}\ndone\n") is None


def test_clocks_and_colours_are_not_told() -> None:
    log = b"2024-01-02T03:04:05.1234567Z \x1b[31mError: no space left on device\x1b[0m\r\n"
    assert summarize("jenkins", log, "text/plain") == "Error: no space left on device"


def test_every_github_body_has_a_line_and_its_kind_is_seen_in_its_fields() -> None:
    for name, raw in github_bodies():
        kind = name.split("/")[0]
        said = summarize("github", raw, "application/json")
        assert is_one_line(said), name
        assert said == summarize(f"github.{kind}", raw, "application/json"), (name, kind_of(json.loads(raw)))


def gh(**body: Any) -> bytes:
    return json.dumps({"repository": {"full_name": "acme/pay"}, "sender": {"login": "alice"}, **body}).encode()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"action": "closed", "pull_request": {"number": 412, "title": "Retry", "merged": True}},
         "acme/pay#412 PR merged by alice: “Retry”"),
        ({"action": "closed", "pull_request": {"number": 412, "title": "Retry", "merged": False}},
         "acme/pay#412 PR closed by alice: “Retry”"),
        ({"action": "submitted", "pull_request": {"number": 412},
          "review": {"state": "changes_requested", "body": "Please test", "user": {"login": "bob"}}},
         "acme/pay#412 changes requested by bob: “Please test”"),
        ({"action": "completed", "check_run": {"name": "build", "conclusion": "timed_out", "head_sha": "a" * 40,
                                               "pull_requests": [{"number": 412}],
                                               "check_suite": {"head_branch": "fix"}}},
         "acme/pay#412 check build timed out on fix (aaaaaaa)"),
        ({"action": "created", "issue": {"number": 3}, "comment": {"body": "## Result\n\nAll <b>good</b>"}},
         "acme/pay#3 comment by alice: “Result”"),
        ({"ref": "refs/heads/main", "after": "b" * 40, "commits": [{}, {}],
          "head_commit": {"message": "Fix it\n\nlong"}},
         "acme/pay 2 commits pushed to main (bbbbbbb) by alice: “Fix it”"),
        ({"sha": "c" * 40, "state": "error", "context": "ci/x", "description": "Build broke", "branches": []},
         "acme/pay status ci/x error on (ccccccc): “Build broke”"),
        ({"action": "brand_new", "gizmo": {"id": 1}}, "acme/pay repository brand new by alice"),
    ],
)  # fmt: skip
def test_github_says(body: dict[str, Any], said: str) -> None:
    assert summarize("github", gh(**body), "application/json") == said


@pytest.mark.parametrize(
    ("source", "body", "said"),
    [
        ("gitlab", {"object_kind": "merge_request", "project": {"path_with_namespace": "a/b"},
                    "user": {"username": "eve"}, "object_attributes": {"iid": 7, "action": "merge", "title": "Retry"}},
         "a/b!7 merge request merged by eve: “Retry”"),
        ("gitlab", {"object_kind": "pipeline", "project": {"path_with_namespace": "a/b"}, "merge_request": {"iid": 7},
                    "builds": [{"name": "lint", "status": "failed"}],
                    "object_attributes": {"id": 9, "status": "failed", "ref": "fix", "sha": "d" * 40}},
         "a/b!7 pipeline 9 failed on fix (ddddddd), failed: lint"),
        ("gitlab", {"object_kind": "note", "project": {"path_with_namespace": "a/b"}, "user": {"username": "eve"},
                    "merge_request": {"iid": 7}, "object_attributes": {"note": "Why?"}},
         "a/b!7 comment by eve: “Why?”"),
        ("slack", {"type": "event_callback", "event": {"type": "message", "user": "U1", "channel": "C1",
                                                       "text": "see <https://x.test/1|the run> <@U2> &amp; tell"}},
         "U1 in C1: see the run @U2 & tell"),
        ("slack", {"event": {"type": "reaction_added", "user": "U1", "reaction": "eyes", "item": {"channel": "C1"}}},
         "U1 reacted :eyes: in C1"),
        ("teams", {"from": {"name": "Eve"}, "text": "Deploy now?"}, "Eve: Deploy now?"),
        ("mailgun", {"from": "Eve <eve@x.test>", "subject": "Hi", "text": "b"}, "Hi"),
        ("mail", {"from": "Eve <eve@x.test>", "subject": "Hi", "text": "b"}, "Eve: Hi"),
        ("sentry", {"event": "issue.created", "data": {"title": "KeyError: 'x'", "level": "error"}},
         "issue.created: KeyError: 'x' (error)"),
        ("any", {"status": "ok", "service": "pay"}, "pay (ok)"),
        ("any", {"a": 1, "b": "two", "password": "hunter2"}, "a: 1, b: two"),
        ("any", [{"title": "one"}, {"title": "two"}], "2 items: one"),
    ],
)  # fmt: skip
def test_other_senders_say(source: str, body: Any, said: str) -> None:
    assert summarize(source, json.dumps(body).encode(), "application/json") == said


@pytest.mark.parametrize(
    ("source", "payload", "media_type", "said"),
    [
        ("mail", b"From: =?utf-8?B?w4l2ZQ==?= <eve@x.test>\r\n"
         b"Subject: =?iso-8859-1?Q?caf=E9?= =?iso-8859-1?Q?_now?=\r\n\r\nHi",
         "message/rfc822", "Éve: café now"),
        ("mail", b"From: eve@x.test\n\nbody", "message/rfc822", "eve@x.test: (no subject)"),
        ("mail", "Subject: Grüße\nFrom: a@b.test\n\n".encode("latin-1"), "message/rfc822", "a@b.test: Grüße"),
        ("mail", b"Subject: =?utf-8?B?4pyT4pyT?=\nFrom: =?x-none?Q?abc?= <a@b.test>\n\n", "message/rfc822", "abc: ✓✓"),
        ("notes", b"# The plan\n\nWe retry. Three times.", "text/markdown", "The plan"),
        ("notes", b"We tried it again today. Then it worked.", "text/plain", "We tried it again today."),
        ("notes", b"---\ntitle: x\n---\nHello there, all of you. Bye.", "text/plain", "Hello there, all of you."),
        ("web", b"<html><head><title>A &amp; B</title></head><body>x</body>", "text/html", "A & B"),
        ("cam", b"\x89PNG\r\n\x1a\n\0\0", "image/png", "image/png, 10 bytes"),
        ("any", b"", "application/json", "Empty application/json"),
        ("any", b'{"broken": ', "application/json", '{"broken":'),
        ("any", b"\xff\xfe\0\0", "", "payload, 4 bytes"),
        ("any", b"status=ok&job=build", "application/x-www-form-urlencoded", "build (ok)"),
        ("any", "a\u202eb\u200b\x07 c".encode(), "text/plain", "ab c"),
    ],
)  # fmt: skip
def test_text_and_bytes_say(source: str, payload: bytes, media_type: str, said: str) -> None:
    assert summarize(source, payload, media_type) == said


KEY = "ghp_" + "aZ3kQ9xL0pW7vB2nM5cR8tY1uE4sD6fG0hJ2"
HIDDEN = {
    "words of a header": ("mail", f"Subject: =?utf-8?Q?=67hp=5F{KEY[4:]}?=\n\n"),
    "two words": ("mail", f"Subject: =?utf-8?Q?=67hp=5F{KEY[4:20]}?= =?utf-8?Q?{KEY[20:]}?=\n\n"),
    "another charset": ("mail", f"Subject: =?cp037?B?{base64.b64encode(KEY.encode('cp037')).decode()}?=\n\n"),
    "a sender's name": ("mail", f"From: =?utf-8?Q?=67hp=5F{KEY[4:]}?= <a@b.test>\n\n"),
    "entities of a page": ("web", f"<!doctype html><title>gh&#112;{KEY[3:]}</title>"),
    "tags of a page": ("web", f"<!doctype html><p>It is gh&#112;{KEY[3:]}</p>"),
    "markup of a chat": ("slack", json.dumps({"text": f"{KEY[:4]}<https://x.test|{KEY[4:]}>"})),
}


@pytest.mark.parametrize("how", HIDDEN)
def test_a_secret_that_only_reading_shows_is_not_told(how: str) -> None:
    source, payload = HIDDEN[how]
    said = summarize(source, content.cleaned(payload.encode(), "text/plain").raw, "text/plain")
    assert KEY not in said and "[secret:" in said


@pytest.mark.parametrize(
    "body", [b"[" * 100_000, b'{"a":' * 5_000 + b"1" + b"}" * 5_000, b"x" * 3_000_000, b"\n" * 1_000_000]
)
def test_what_is_deep_or_long_has_a_line_too(body: bytes) -> None:
    for source in ("any", "github", "ci", "mail", "slack"):
        assert is_one_line(summarize(source, body, "application/json"))


_SOURCES = st.sampled_from(["github", "github.push", "gitlab", "slack", "mail", "ci", "jenkins", "chat", "x", ""])
_TYPES = st.sampled_from(
    ["application/json", "text/plain", "message/rfc822", "text/html", "application/x-www-form-urlencoded", ""]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(["action", "event", "pull_request", "check_run", "commits", "branches", "comment", "message",
                         "object_attributes", "object_kind", "pages", "number", "head_commit", "channel", "from"])
        | st.text(),
        inner, max_size=5),
    max_leaves=25,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(_SOURCES, st.binary(max_size=400) | _JSON.map(lambda value: json.dumps(value).encode()), _TYPES)
def test_whatever_comes_has_one_line(source: str, payload: bytes, media_type: str) -> None:
    assert is_one_line(summarize(source, payload, media_type))
