"""What a model is shown of an event: enough, and never too much."""

from datetime import UTC, datetime
from typing import Any

from dream.distill_shapes import SeenEvent
from dream.prompt import INSTRUCTIONS, Asked, compose, line
from dream.shapes import KnownNote, Rejected


def event(name: str, payload: dict[str, Any], **more: Any) -> SeenEvent:
    beside: dict[str, Any] = {"at": None, "member": "an", "agent_id": None, "tool": "Bash"} | more
    return SeenEvent(id="evt_1", session="ses_1", seq=1, client="claude_code", name=name, payload=payload, **beside)


def test_a_prompt_stands_whole_without_what_was_injected() -> None:
    injected = "<team-memory id=1>old</team-memory><system-reminder>x</system-reminder>"
    shown = line(event("prompt", {"prompt": f"Use tabs.\n{injected}Always."}))
    assert "Use tabs." in shown and "Always." in shown and "by an" in shown
    assert "old" not in shown and "reminder" not in shown


def test_a_call_is_one_line_with_its_outcome() -> None:
    asked = line(event("tool_before", {"tool_input": {"command": "make\ntest"}}))
    ended = line(event("tool_after", {"tool_response": {"stdout": "a\nb\n12 passed", "stderr": ""}}))
    assert "make" in asked and "12 passed" in ended
    assert "\n" not in asked + ended


def test_an_error_stands_whole() -> None:
    error = "\n".join(f"E line {n}" for n in range(50))
    assert error in line(event("tool_failed", {"error": error}))


def test_a_file_is_only_counted() -> None:
    written = {"file_path": "a.py", "content": "def f(): ..." * 500}
    shown = line(event("tool_before", {"tool_input": written}, tool="Write"))
    assert "a.py" in shown and "def f" not in shown and "6000 characters" in shown
    answer = {"tool_response": {"file": {"content": "body"}}}
    assert line(event("tool_after", answer, tool="Read")) == "[evt_1] Read ended"


def test_base64_is_left_out() -> None:
    assert "QUJD" * 50 not in line(event("prompt", {"prompt": "look " + "QUJD" * 500}))


def test_a_huge_prompt_keeps_its_head_and_tail() -> None:
    shown = line(event("prompt", {"prompt": "first " + "x y " * 50_000 + "last"}))
    assert len(shown) < 9000 and "first" in shown and "last" in shown and "left out" in shown


def test_the_time_of_an_event_is_a_date() -> None:
    assert "2026-03-04 05:06" in line(event("stop", {}, at=datetime(2026, 3, 4, 5, 6, tzinfo=UTC)))


def test_what_changes_most_stands_last() -> None:
    asked = compose(Asked(
        project="Shop", slug="shop", notes=[KnownNote("project/shop/a.md", "text", by_person=True)],
        rejected=[Rejected("project/shop/b.md", "- no"), Rejected("project/shop/c.md", None)],
        events=[event("prompt", {"prompt": "hello"})],
    ))  # fmt: skip
    parts = ("CURRENT NOTES", "written by a person", "REJECTED", "closed", "EVENTS", "hello")
    places = [asked.index(part) for part in parts]
    assert places == sorted(places)
    assert "data" in INSTRUCTIONS and "instructions" in INSTRUCTIONS
