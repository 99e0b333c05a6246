"""The hop map: how an answer is reached from a thread, as a picture and as a list."""

import re
from itertools import pairwise
from typing import Any

import pytest

from memory.graph import hops
from memory.graph.reached import Edge, Node, Reached
from tests.pages import chains


def reached(*ways: tuple[str, str]) -> Reached:
    """Stops by their ways, each one hop behind the first that leads to it."""
    found = Reached()
    found.nodes["a"] = Node("a", "thread", "A", "", "/a/", 0)
    for start, end in ways:
        found.lead(start, Node(end, "trigger", end.upper(), "", f"/{end}/", found.nodes[start].hop + 1), "cites")
    return found


CHAIN = (("a", "b"), ("a", "c"), ("b", "d"), ("d", "e"), ("c", "f"), ("c", "d"))


def test_hops_stand_side_by_side_and_never_on_each_other() -> None:
    picture = hops.wide(reached(*CHAIN, *(("d", f"x{number}") for number in range(9))))
    places = {(box.x, box.y) for box in picture.boxes}
    assert len(places) == len(picture.boxes) == 15
    columns = {box.node.key: box.x for box in picture.boxes}
    assert columns["a"] < columns["b"] == columns["c"] < columns["d"] == columns["f"] < columns["e"]
    assert all(box.x + box.width <= picture.width and box.y + box.height <= picture.height for box in picture.boxes)


def test_every_way_is_drawn() -> None:
    picture = hops.wide(reached(*CHAIN))
    assert sorted(wire.name for wire in picture.wires) == ["n0-n1", "n0-n2", "n1-n3", "n2-n3", "n2-n5", "n3-n4"]


def test_on_a_phone_they_stand_below_each_other() -> None:
    picture = hops.narrow(reached(*CHAIN))
    assert [box.node.key for box in picture.boxes] == ["a", "b", "d", "e", "c", "f"]
    assert picture.width <= 326 and all(box.x + box.width <= picture.width for box in picture.boxes)
    tops = [box.y for box in picture.boxes]
    assert all(after - before >= hops.NARROW_HEIGHT for before, after in pairwise(tops))


def test_the_way_to_a_stop_is_lit() -> None:
    for picture in (hops.wide(reached(*CHAIN), to="e"), hops.narrow(reached(*CHAIN), to="e")):
        assert {box.node.key for box in picture.boxes if box.is_lit} == {"a", "b", "d", "e"}
        assert {wire.name for wire in picture.wires if wire.is_lit} == {"n0-n1", "n1-n3", "n3-n4"}
    assert not any(box.is_lit for box in hops.wide(reached(*CHAIN), to="none").boxes)


def test_a_way_back_makes_no_circle() -> None:
    found = reached(("a", "b"), ("b", "c"), ("c", "a"), ("c", "b"), ("b", "b"))
    assert found.edges == [Edge("a", "b", "cites"), Edge("b", "c", "cites")]
    assert [branch.node.key for branch in hops.as_list(found).branches] == ["b"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("short", ("short",)),
        ("", ()),
        ("two words here", ("two words", "here")),
        ("averyverylongword", ("averyveryl", "ongword")),
        ("one two three four five", ("one two", "three fou…")),
        ("数据库迁移失败已回滚", ("数据库迁移", "失败已回滚")),
        ("数据库迁移失败已经回滚了", ("数据库迁移", "失败已经…")),
    ],
)
def test_titles_are_wrapped_by_the_width_of_their_letters(text: str, lines: tuple[str, ...]) -> None:
    assert hops.wrapped(text, 10, most=2) == lines
    assert all(hops.width_of(line) <= 10 for line in lines)


def test_a_stop_is_named_by_what_is_read_in_it_and_wholly_where_that_is_cut(
    logged_in: Any, acme: Any, vera: Any
) -> None:
    home = chains.thread(acme, "jira:PAY-7", title="Many")
    long = "Look why " + "the build of the payments service " * 3 + "fails"
    chains.worker(acme, home, task=long)
    answer = logged_in(vera).get(f"/t/acme/threads/{home.public_id}/map/")
    first, second = answer.context["wide"].boxes
    assert (first.is_cut, second.is_cut) == (False, True)
    named = f"Hop 1, worker: {' '.join(second.lines)}, {second.note}. Whole: {long}"
    assert f'aria-label="{named}"' in answer.content.decode()


def test_it_leads_from_the_thread_to_what_was_cited(logged_in: Any, acme: Any, vera: Any) -> None:
    chain = chains.answered(acme)
    to = chain["run"].public_id
    answer = logged_in(vera).get(f"/t/acme/threads/{chain['thread'].public_id}/map/", {"to": to})
    page = answer.content.decode()
    assert answer.context["to"].hop == 3 and "3 hops" in page
    worker = chain["worker"].public_id
    lit = [box.node.key for box in answer.context["wide"].boxes if box.is_lit]
    assert lit == [chain["thread"].public_id, worker, f"{worker}.report", to]
    for address in (f"/t/acme/workers/{worker}/#report", f"/t/acme/triggers/{to}/"):
        assert len(re.findall(f'href="{address}"', page)) == 3, "wide, narrow and list"
    assert "<script" not in page.split("<main")[1] and " style=" not in page


def test_what_is_looked_for_is_never_left_out(logged_in: Any, acme: Any, vera: Any) -> None:
    home = chains.thread(acme, "jira:PAY-7", title="Many")
    cited = [chains.trigger(acme, f"ci:{number}", summary=f"Run {number}") for number in range(30)]
    chains.worker(acme, home, report=" ".join(one.public_id for one in cited))
    for number in range(20):
        chains.worker(acme, home, report=f"Report {number}")
    answer = logged_in(vera).get(f"/t/acme/threads/{home.public_id}/map/", {"to": cited[29].public_id})
    assert answer.context["to"].title == "Run 29" and answer.context["reached"].left_out > 20
    assert "do not fit on the map" in answer.content.decode()


def test_a_thread_that_leads_nowhere_says_what_to_do(logged_in: Any, acme: Any, vera: Any) -> None:
    thread = chains.thread(acme, "jira:PAY-7")
    page = logged_in(vera).get(f"/t/acme/threads/{thread.public_id}/map/").content.decode()
    assert "Nothing leads on from here yet" in page


def test_it_takes_no_other_method(logged_in: Any, acme: Any, alice: Any) -> None:
    thread = chains.thread(acme, "jira:PAY-7")
    assert logged_in(alice).post(f"/t/acme/threads/{thread.public_id}/map/").status_code == 405
