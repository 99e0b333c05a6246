"""The duplicate audit: what repeats, what had changed, what it cost."""

from typing import Any

from cache_admin import repeats
from cache_admin.repeats import Use, audit, uses
from tests.pages import made


def use(session: str, path: str, answer: str = "", size: int = 10, tool: str = "Read") -> Use:
    return Use("shop", session, tool, path, answer, size)


def test_it_counts_repeats_by_project_session_and_tool() -> None:
    found = audit(
        [use("s1", "a", "1"), use("s1", "a", "1"), use("s2", "a", "2"), use("s2", "b"), use("s2", "b", tool="Bash")]
    )
    shop = found.projects["shop"]
    assert (shop.calls, shop.repeats, shop.compared, shop.changed) == (4, 2, 2, 1)
    assert (shop.repeated_tokens, shop.saved_tokens) == (20, 10) and shop.verdict == "yes"
    assert found.sessions[("shop", "s1")].repeats == 1 and found.sessions[("shop", "s2")].repeats == 0
    assert found.tools[("shop", "Read")].share == 0.5 and shop.changed_share == 0.5


def test_what_is_not_known_is_not_compared() -> None:
    shop = audit([use("s", "a"), use("s", "a", "1"), use("s", "a"), use("s", "a", "1")]).projects["shop"]
    assert (shop.repeats, shop.compared, shop.changed) == (3, 1, 0)


def test_a_result_belongs_to_its_call() -> None:
    asked: dict[str, Any] = {"tool_name": "Read", "tool_input": {"file_path": "a"}}
    events = [
        ("p", "s", "tool_before", "u1", asked),
        ("p", "s", "tool_before", "u2", asked),
        ("p", "s", "tool_after", "u2", {**asked, "tool_response": "second"}),
        ("p", "s", "tool_after", "u1", {**asked, "tool_response": "first"}),
        ("p", "s", "tool_before", "", asked),
        ("p", "s", "tool_after", "", {**asked, "tool_response": "first"}),
    ]
    one, two, three = uses(events)
    assert one.answer != two.answer and one.answer == three.answer and one.arguments == three.arguments


def test_verdicts() -> None:
    for count, verdict in ((10, "no"), (17, "maybe"), (30, "yes")):
        rows = [use("s", str(number)) for number in range(100 - count)] + [use("s", "0")] * count
        assert audit(rows).projects["shop"].verdict == verdict


def test_it_reads_the_teams_own_events(acme: Any, globex: Any, bound: Any) -> None:
    for tenant in (acme, globex):
        session = made.session(tenant)
        for number in range(3):
            body = '{"tool_input": {"file_path": "a.py"}, "tool_response": "x"}'
            for place, kind in enumerate(("tool_before", "tool_after"), 1):
                more = {"seq": 2 * number + place, "tool_use_id": f"u{number}"}
                made.event(session, kind=kind, tool="Read", body=body, **more)
    with bound(acme):
        [whole] = repeats.of_team(acme).projects.values()
        assert (whole.calls, whole.repeats, whole.compared, whole.changed) == (3, 2, 2, 0)
