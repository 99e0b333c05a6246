"""GET and PUT /api/v1/triggers/{id}/payload: the stored bytes exactly, and pieces of them."""

import gzip
import hashlib
import random
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from memory.graph.models import Body, Part
from tests.conftest import Agent, new_agent

LOG = b"".join(b"line %d of the build\n" % n for n in range(1, 2001))


@pytest.fixture
def client(api: Callable[[Agent], Any], agent: Agent) -> Any:
    return api(agent)


@pytest.fixture
def trigger_id(client: Any) -> str:
    return str(client.post("triggers", {"source": "ci", "payload": {"run": 1}}).json()["trigger_id"])


def put(client: Any, trigger_id: str, raw: bytes, part: str = "full_log", kind: str = "text/plain") -> Any:
    return client.put(f"triggers/{trigger_id}/payload?part={part}", raw, content_type=kind)


def read(client: Any, trigger_id: str, **query: Any) -> Any:
    return client.get(f"triggers/{trigger_id}/payload", **({"part": "full_log"} | query))


def test_it_keeps_a_part_byte_for_byte(client: Any, trigger_id: str, acme: Any, bound: Any) -> None:
    answer = put(client, trigger_id, LOG)
    assert (answer.status_code, answer.json()["size"]) == (201, len(LOG))
    assert answer.json()["sha256"] == hashlib.sha256(LOG).hexdigest()
    stored = read(client, trigger_id)
    assert stored.content == LOG and stored["Content-Type"] == "text/plain"
    assert stored["ETag"] == f'"{hashlib.sha256(LOG).hexdigest()}"'
    spilled = client.get(f"triggers/{trigger_id}").json()["spilled"]
    assert spilled["full_log"] == f"GET /api/v1/triggers/{trigger_id}/payload?part=full_log (44 KB, truncated)"
    with bound(acme):
        assert len(bytes(Body.objects.get().content)) < len(LOG) / 4


def test_binary_is_untouched(client: Any, trigger_id: str) -> None:
    raw = random.Random(7).randbytes(300_000)  # noqa: S311 - bytes, not a secret
    assert put(client, trigger_id, raw, kind="image/png").json()["redactions"] == 0
    answer = read(client, trigger_id)
    assert answer.content == raw and answer["Content-Type"] == "image/png"


def test_strangers_bytes_are_not_run(client: Any, trigger_id: str) -> None:
    put(client, trigger_id, b"<script>alert(1)</script>", kind="text/html")
    answer = read(client, trigger_id)
    assert answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Disposition"].startswith("attachment")
    assert answer["Content-Security-Policy"] == "default-src 'none'; sandbox"


def test_a_secret_in_a_log_is_taken_out(client: Any, trigger_id: str) -> None:
    secret = b"AKIA" + b"QYLPMN5HHHFPZAM2"
    put(client, trigger_id, b"start\naws_access_key_id=" + secret + b"\nend\n")
    stored = read(client, trigger_id).content
    assert secret not in stored and b"[secret:" in stored and stored.endswith(b"\nend\n")


@pytest.mark.parametrize("kind", ["application/gzip", "text/plain", "application/json"])
def test_a_secret_in_packed_bytes_is_taken_out(client: Any, trigger_id: str, kind: str) -> None:
    log = LOG + b"aws_access_key_id=AKIA" + b"QYLPMN5HHHFPZAM2\n"
    assert put(client, trigger_id, gzip.compress(log), kind=kind).json()["redactions"] == 1
    assert gzip.decompress(read(client, trigger_id).content) == log[:-21] + b"*" * 20 + b"\n"


def test_of_a_doubled_key_only_what_was_looked_at_is_stored(client: Any, trigger_id: str) -> None:
    raw = b'{"a":"AKIA' + b'QYLPMN5HHHFPZAM2","a":"fine"}'
    put(client, trigger_id, raw, kind="application/json")
    assert read(client, trigger_id).content == b'{"a":"fine"}'


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [("bytes=0-9", 0, 9), ("bytes=100-", 100, len(LOG) - 1), ("bytes=-5", len(LOG) - 5, len(LOG) - 1),
     (f"bytes=10-{10**30}", 10, len(LOG) - 1)],
)  # fmt: skip
def test_a_range_is_a_part(client: Any, agent: Agent, trigger_id: str, asked: str, first: int, last: int) -> None:
    put(client, trigger_id, LOG)
    browser = Client(headers={**agent.headers, "Range": asked})
    answer = browser.get(f"/api/v1/triggers/{trigger_id}/payload?part=full_log")
    assert (answer.status_code, answer.content) == (206, LOG[first : last + 1])
    assert answer["Content-Range"] == f"bytes {first}-{last}/{len(LOG)}"


def test_a_range_behind_the_end_is_416(client: Any, agent: Agent, trigger_id: str) -> None:
    put(client, trigger_id, b"short")
    browser = Client(headers={**agent.headers, "Range": "bytes=50-60"})
    answer = browser.get(f"/api/v1/triggers/{trigger_id}/payload?part=full_log")
    assert (answer.status_code, answer["Content-Range"]) == (416, "bytes */5")


@pytest.mark.parametrize("asked", ["bytes=0-1,3-4", "items=0-1", "bytes=9-2", "bytes=-", "x"])
def test_an_odd_range_means_the_whole(client: Any, agent: Agent, trigger_id: str, asked: str) -> None:
    put(client, trigger_id, LOG)
    browser = Client(headers={**agent.headers, "Range": asked})
    answer = browser.get(f"/api/v1/triggers/{trigger_id}/payload?part=full_log")
    assert (answer.status_code, answer.content) == (200, LOG)


def test_what_one_has_already_is_not_sent_again(client: Any, agent: Agent, trigger_id: str) -> None:
    put(client, trigger_id, LOG)
    tag = read(client, trigger_id)["ETag"]
    browser = Client(headers={**agent.headers, "If-None-Match": tag})
    assert browser.get(f"/api/v1/triggers/{trigger_id}/payload?part=full_log").status_code == 304


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [("120-180", 120, 180), ("7", 7, 7), ("1990-", 1990, 2000), ("-3", 1998, 2000), ("1999-9999", 1999, 2000)],
)
def test_lines_are_taken_by_number(client: Any, trigger_id: str, asked: str, first: int, last: int) -> None:
    put(client, trigger_id, LOG)
    answer = read(client, trigger_id, lines=asked)
    assert answer.content == b"".join(LOG.splitlines(keepends=True)[first - 1 : last])
    assert answer["X-Lines"] == f"{first}-{last}/2000"


@pytest.mark.parametrize(("asked", "status"), [("", 400), ("-", 400), ("0-5", 400), ("9-2", 400), ("a-b", 400),
                                               ("2001-2002", 416), ("1-2-3", 400), ("9" * 40, 400)])  # fmt: skip
def test_lines_that_are_not_there_are_refused(client: Any, trigger_id: str, asked: str, status: int) -> None:
    put(client, trigger_id, LOG)
    assert read(client, trigger_id, lines=asked).status_code == status


def test_grep_tells_lines_with_their_numbers(client: Any, trigger_id: str) -> None:
    put(client, trigger_id, b"one\nerror: two\r\nthree\nFATAL four\n\n")
    answer = read(client, trigger_id, grep="(?i)error|fatal").json()
    assert answer == {"hits": [{"line": 2, "text": "error: two"}, {"line": 4, "text": "FATAL four"}], "more": False}
    assert read(client, trigger_id, grep="o$", lines="3-4").json()["hits"] == []
    assert read(client, trigger_id, grep="^three$", lines="2-4").json()["hits"] == [{"line": 3, "text": "three"}]
    assert len(read(client, trigger_id, grep="").json()["detail"]) > 5


def test_grep_is_capped(client: Any, trigger_id: str) -> None:
    put(client, trigger_id, LOG + b"x" * 100_000 + b"needle" + b"y" * 100_000)
    answer = read(client, trigger_id, grep="line").json()
    assert (len(answer["hits"]), answer["more"], answer["hits"][-1]["line"]) == (100, True, 100)
    (hit,) = read(client, trigger_id, grep="needle").json()["hits"]
    assert hit["line"] == 2001 and "needle" in hit["text"] and len(hit["text"]) < 600


@pytest.mark.parametrize("pattern", ["(", "a{1001}", "(?=x)", "\\1", "x" * 1001, "[z-a]"])
def test_a_bad_pattern_is_refused(client: Any, trigger_id: str, pattern: str) -> None:
    put(client, trigger_id, LOG)
    answer = read(client, trigger_id, grep=pattern)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_pattern")


def test_no_pattern_takes_for_ever(client: Any, trigger_id: str) -> None:
    put(client, trigger_id, b"a" * 200_000)
    assert read(client, trigger_id, grep="(a*)*b|(a|aa)+$x").json() == {"hits": [], "more": False}


def test_other_bytes_under_the_same_name_are_told(client: Any, trigger_id: str, acme: Any, bound: Any) -> None:
    assert [put(client, trigger_id, raw).status_code for raw in (b"one", b"one", b"two")] == [201, 200, 200]
    assert read(client, trigger_id).content == b"two"
    thread_id = client.get(f"triggers/{trigger_id}").json()["thread_id"]
    kinds = [step["kind"] for step in client.get(f"threads/{thread_id}/events").json()["items"]]
    assert kinds == ["trigger", "payload_replaced"]
    with bound(acme):
        assert Part.objects.count() == 2


@pytest.mark.parametrize("part", ["", "../x", "Full", "a" * 41, "x%00"])
def test_a_part_has_a_plain_name(client: Any, trigger_id: str, part: str) -> None:
    assert put(client, trigger_id, b"x", part=part).json()["code"] == "invalid_part"


def test_a_part_has_a_bound(client: Any, trigger_id: str, settings: Any) -> None:
    settings.MAX_BODY_BYTES = 1000
    answer = put(client, trigger_id, b"x" * 1001)
    assert (answer.status_code, answer.json()["limit_bytes"]) == (413, 1000)


def test_an_unknown_part_or_parameter_is_refused(client: Any, trigger_id: str) -> None:
    assert read(client, trigger_id, part="diff").status_code == 404
    assert read(client, trigger_id, line="1-2").json()["code"] == "unknown_parameter"


def test_it_needs_the_scope(api: Any, alice: Any, client: Any, trigger_id: str) -> None:
    reader, writer = (api(new_agent(alice, scopes=[scope])) for scope in ("read", "ingest"))
    assert put(reader, trigger_id, b"x").status_code == 403
    assert put(writer, trigger_id, b"x").status_code == 201
    assert (read(writer, trigger_id).status_code, read(reader, trigger_id).status_code) == (403, 200)


def test_it_hides_the_bytes_from_other_tenants(client: Any, api: Any, globex_agent: Agent, trigger_id: str) -> None:
    put(client, trigger_id, LOG)
    stranger = api(globex_agent)
    theirs, none = (read(stranger, one) for one in (trigger_id, "trg_none"))
    assert theirs.status_code == none.status_code == 404
    assert theirs.content.replace(trigger_id.encode(), b"ID") == none.content.replace(b"trg_none", b"ID")
    assert put(stranger, trigger_id, b"x").status_code == 404
