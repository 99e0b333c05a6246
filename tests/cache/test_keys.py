"""One call has one key, and two calls have two."""

import json
from pathlib import Path
from typing import Any

import pytest

from cache_admin.keys import Call, canonical, tool_key
from cache_admin.normalize import NotKeyable, Rules, exact, fraction

VECTORS = Path(__file__).parents[1] / "data" / "json-canonical"
NONE = Rules()


def key(arguments: Any, *, rules: Rules = NONE, tool: str = "t", server: str = "", **more: Any) -> str:
    call = Call(tool, arguments, server=server, **more)
    return tool_key(call, tenant="ten", scope="team", salt="0.0", rules=rules).hex


@pytest.mark.parametrize("name", sorted(path.stem for path in (VECTORS / "input").glob("*.json")))
def test_rfc_8785_vectors(name: str) -> None:
    given = json.loads((VECTORS / "input" / f"{name}.json").read_text())
    assert canonical(given) == (VECTORS / "output" / f"{name}.json").read_bytes()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"n": 1}, {"n": True}),
        ({"n": 1}, {"n": "1"}),
        ({"n": 0}, {"n": False}),
        ({"n": 0}, {"n": None}),
        ({"a": None}, {"a": ""}),
        ({"a": None}, {}),
        ({"a": "ab", "b": "c"}, {"a": "a", "b": "bc"}),
        ({"a": [1, 2]}, {"a": [[1], 2]}),
        ({"n": 9007199254740993}, {"n": 9007199254740992}),
        ({"n": 9007199254740993}, {"n": 9007199254740993.0}),
        ({"n": 10**40}, {"n": 10**40 + 1}),
        ({"n": 2**63}, {"n": 2**63 + 1}),
        ({"n": fraction("9007199254740993.0")}, {"n": fraction("9007199254740992.0")}),
        ({"n": fraction("0.1000000000000000000001")}, {"n": fraction("0.1")}),
        ({"n": fraction("1e-999999999999999999999")}, {"n": 0}),
        ({"n": 9007199254740993}, {"n": "9007199254740993"}),
        ({"n": 9007199254740993}, {"n": {"$int": "9007199254740993"}}),
        ({"n": {"$int": "1"}}, {"n": {"$$int": "1"}}),
        ({"text": "\u00e9"}, {"text": "e\u0301"}),
        ({"text": "A"}, {"text": "a"}),
        ({"text": " a"}, {"text": "a"}),
    ],
)
def test_different_calls_have_different_keys(one: Any, other: Any) -> None:
    assert key(one) != key(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"n": 1.0}, {"n": 1}),
        ({"n": 1e2}, {"n": 100}),
        ({"n": fraction("1.50")}, {"n": 1.5}),
        ({"n": -0.0}, {"n": 0}),
        ({"a": {"x": 1, "y": [1.0]}}, {"a": {"y": [1], "x": 1}}),
    ],
)
def test_equal_calls_have_one_key(one: Any, other: Any) -> None:
    assert key(one) == key(other)


def test_all_that_the_answer_depends_on_is_in_it() -> None:
    asked = {"x": 1}
    keys = {
        key(asked),
        key(asked, tool="other"),
        key(asked, tool="get", server="jira"),
        key(asked, tool="get", server="git"),
        key(asked, version="2"),
        key(asked, environment={"python": "3.11"}),
        key(asked, content_hash="sha256:1"),
        tool_key(Call("t", asked), tenant="ten2", scope="team", salt="0.0", rules=NONE).hex,
        tool_key(Call("t", asked), tenant="ten", scope="member:1", salt="0.0", rules=NONE).hex,
        tool_key(Call("t", asked), tenant="ten", scope="team", salt="1.0", rules=NONE).hex,
    }
    assert len(keys) == 10


def test_the_same_call_of_another_content_has_the_same_identity() -> None:
    one, other = (
        tool_key(Call("t", {"x": 1}, content_hash=digest), tenant="ten", scope="team", salt="0", rules=NONE)
        for digest in ("a", "b")
    )
    assert one.identity == other.identity and one.digest != other.digest


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1: 2}, {"a": {1, 2}}, b"bytes"])
def test_what_is_no_json_has_no_key(value: Any) -> None:
    with pytest.raises(NotKeyable):
        key({"v": value})


def test_a_lone_surrogate_has_no_key() -> None:
    with pytest.raises(NotKeyable):
        key({"v": "\ud800"})


def test_defaults_are_left_out_only_where_the_policy_says_so() -> None:
    declared = Rules(defaults={"limit": 10})
    assert key({"limit": 10}) != key({})
    assert key({"limit": 10}, rules=declared) == key({}, rules=declared) == key({"limit": 10.0}, rules=declared)
    assert key({"limit": True}, rules=Rules(defaults={"limit": 1})) != key({}, rules=Rules(defaults={"limit": 1}))
    assert key({"limit": 11}, rules=declared) != key({}, rules=declared)


def test_exact_keeps_what_all_readers_keep() -> None:
    assert exact(2**53 - 1) == 2**53 - 1 and exact(2**53) == {"$int": str(2**53)} and exact(True) is True
