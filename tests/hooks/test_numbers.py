"""Numbers that readers of JSON refuse, or take for others: nothing of a hook call is lost for them."""

from typing import Any

import pytest

from memory.events import bodies
from memory.events.models import Event
from memory.hooks.payloads import moment
from memory.hooks.receive import one_spelling
from memory.problems import Problem
from memory.tenants import rest
from tests.conftest import Agent
from tests.hooks.test_hooks import post

LONG = "1" + "0" * 4000
SECRET = "ghp_" + "A1b2C3d4E5" * 4


def call(value: str, **more: str) -> str:
    rest_of = "".join(f',"{name}":{said}' for name, said in more.items())
    return f'{{"session_id":"s1","hook_event_name":"X","v":{value}{rest_of}}}'


def kept(acme: Any, bound: Any) -> tuple[Any, int]:
    with bound(acme):
        event = Event.objects.get()
        return bodies.payload(event)["v"], event.sanitized


@pytest.mark.parametrize("number", ["1e999", "-1e999", LONG, f"-{LONG}", f"{LONG}0000", f"{LONG}.5"])
def test_a_number_without_end_is_kept_as_text(agent: Agent, acme: Any, bound: Any, number: str) -> None:
    assert post(agent, "claude-code", call(number)).status_code == 200
    assert kept(acme, bound) == (number, 1)


@pytest.mark.parametrize("number", ["18446744073709551616", "-9223372036854775809", "1" + "0" * 200])
@pytest.mark.parametrize("more", [{}, {"note": f'"{SECRET}"'}, {"v": "1", "V": '"\\u0000"'}])
def test_a_long_number_keeps_its_digits(agent: Agent, acme: Any, bound: Any, number: str, more: dict[str, str]) -> None:
    post(agent, "claude-code", call("0", w=number, **more))
    with bound(acme):
        body = Event.objects.get().body or ""
    assert f'"w":{number}' in body and SECRET not in body


def test_a_line_of_a_batch_keeps_them_too(api: Any, agent: Agent, acme: Any, bound: Any) -> None:
    lines = [f'{{"client":"codex","key":"k{n}","payload":{call(v)}}}' for n, v in enumerate(["1e999", "2" * 30, LONG])]
    answer = api(agent).post("events/batch", "\n".join(lines), content_type="application/x-ndjson")
    assert answer.json() == {"accepted": 3, "repeated": 0, "refused": []}
    with bound(acme):
        said = [(event.body or "", event.sanitized) for event in Event.objects.order_by("seq")]
    assert ['"v":"1e999"' in said[0][0], f'"v":{"2" * 30}' in said[1][0], f'"v":"{LONG}"' in said[2][0]] == [True] * 3
    assert [sanitized for _, sanitized in said] == [1, 0, 1]


@pytest.mark.parametrize("number", ["1e999", LONG])
def test_other_doors_refuse_such_a_number(api: Any, agent: Agent, number: str) -> None:
    body = f'{{"text":"---\\ntitle: a\\n---\\nb","v":{number}}}'
    answer = api(agent).put("notes/by-path/team/general/a.md", body)
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_json")
    assert "send it as text" in answer.json()["detail"]


@pytest.mark.parametrize("first", ["1e999", LONG, "true", "1180591620717411303424", "1.5", '"a"', "[1,{}]"])
@pytest.mark.parametrize("second", ["2e999", f"{LONG}0", "1", "1180591620717411303425", "1.25", '"b"', "[1,[]]"])
def test_another_body_under_one_key_is_a_conflict(agent: Agent, first: str, second: str) -> None:
    key = {"Idempotency-Key": "k"}
    assert post(agent, "claude-code", call(first), **key)["X-Team-Memory-Outcome"] == "new"
    assert post(agent, "claude-code", call(first), **key)["X-Team-Memory-Outcome"] == "repeat"
    assert post(agent, "claude-code", call(second), **key).status_code == 409


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a":1,"b":2}', b'{ "b": 2, "a": 1.0 }', True),
        (b'{"a":"\\u00e9"}', '{"a":"é"}'.encode(), True),
        (b'{"a":true}', b'{"a":1}', False),
        (b'{"a":0}', b'{"a":false}', False),
        (b'{"a":1e999}', b'{"a":"1e999"}', True),
        (b'{"a":9007199254740993}', b'{"a":9007199254740992}', False),
        (f'{{"a":{LONG}}}'.encode(), f'{{"a":{LONG}1}}'.encode(), False),
    ],
)
def test_two_spellings_of_one_payload_are_one(one: bytes, other: bytes, same: bool) -> None:
    assert (one_spelling(one) == one_spelling(other)) is same


@pytest.mark.parametrize("number", [10**400, -(10**400), float("inf"), float("nan"), 1e300, "9" * 400, "9" * 26, True])
def test_no_such_number_is_a_time(number: Any) -> None:
    assert moment(number) is None


@pytest.mark.parametrize("at", ["1" + "0" * 400, "1e999", "-1e300", "{}"])
def test_a_wild_time_is_no_time(agent: Agent, acme: Any, bound: Any, at: str) -> None:
    headers = {"X-Team-Memory-At": "9" * 400}
    assert post(agent, "claude-code", call("1", timestamp=at), **headers).status_code == 200
    with bound(acme):
        assert Event.objects.get().occurred_at is None


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"[" * 65 + b"]" * 65, "nested_too_deeply"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "nested_too_deeply"),
        (b"[" * 200_000, "nested_too_deeply"),
        (b"[" + b"[]," * rest.MAX_VALUES + b"[]]", "too_many_values"),
        (b"[" + b'"\\"",' * rest.MAX_VALUES + b'"\\"', "too_many_values"),
    ],
)
def test_what_costs_too_much_is_refused(raw: bytes, code: str) -> None:
    for read in (rest.strict_json, rest.exact_json):
        with pytest.raises(Problem) as refused:
            read(raw)
        assert (refused.value.status, refused.value.code) == (400, code)


def test_commas_inside_a_text_are_no_values() -> None:
    text = 'a,"b",[{' * rest.MAX_VALUES
    assert rest.strict_json(rest.orjson.dumps([text])) == [text]


def test_sixty_four_levels_are_fine() -> None:
    assert rest.strict_json(b"[" * 64 + b"1" + b"]" * 64)
