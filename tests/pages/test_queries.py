"""A long list costs as many queries as a short one."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.cache import made as made_cache
from tests.pages import chains, made


def notes(acme: Any, alice: Any, names: range) -> None:
    for name in names:
        made.note(acme, alice, path=f"general/{name}.md", text=f"# Note {name}\n\n- Say {name}\n")


def proposals(acme: Any, alice: Any, names: range) -> None:
    seen = made.event(made.session(acme, f"of {names}"))
    rows = [
        made.proposal(acme, path=f"general/{name}.md", text=f"# Note {name}\n\n- Say {name}\n", rests_on=(seen,))
        for name in names
    ]
    made.run(acme, proposals=tuple(rows))


def sessions(acme: Any, alice: Any, names: range) -> None:
    for name in names:
        project = made.project(acme, f"p{name}", place=f"/p/{name}")
        made.event(made.session(acme, str(name), project=project, member=alice))


def runs(acme: Any, alice: Any, names: range) -> None:
    for _ in names:
        made.run(acme)


def chained(acme: Any, alice: Any, names: range) -> None:
    for name in names:
        thread = chains.trigger(acme, f"ci:{name}", summary=f"Say {name}").thread
        chains.trigger(acme, f"lone:{name}", summary=f"Alone {name}")
        chains.owner(thread, chains.worker(acme, thread))
        chains.endpoint(acme, alice, name=f"Endpoint {name}")


def cached(acme: Any, alice: Any, names: range) -> None:
    for name in names:
        made_cache.shown(acme, alice, name=str(name))


LISTS: dict[str, Callable[[Any, Any, range], None]] = {
    "": proposals,
    "notes/": notes,
    "notes/?q=say": notes,
    "sessions/": sessions,
    "projects/": sessions,
    "dreams/": runs,
    "threads/": chained,
    "threads/?q=say&owned=yes": chained,
    "threads/unlinked/": chained,
    "webhooks/": chained,
    "caches/": cached,
    "caches/entries/": cached,
    "caches/similar/": cached,
    "caches/analyses/": cached,
    "caches/incidents/": cached,
}


def queries(browser: Any, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert browser.get(address).status_code == 200
    return len(captured)


@pytest.mark.parametrize("page", LISTS)
def test_a_list_costs_the_same_with_3_and_30_rows(logged_in: Any, acme: Any, alice: Any, page: str) -> None:
    browser = logged_in(alice)
    LISTS[page](acme, alice, range(3))
    few = queries(browser, f"/t/acme/{page}")
    LISTS[page](acme, alice, range(3, 20 if page == "" else 30))
    assert queries(browser, f"/t/acme/{page}") == few


def test_a_session_costs_the_same_with_3_and_30_events(logged_in: Any, acme: Any, alice: Any) -> None:
    browser, session = logged_in(alice), made.session(acme)
    url = f"/t/acme/sessions/{session.public_id}/"

    def add(names: range) -> None:
        for name in names:
            event = made.event(session, name + 1)
            note = made.note(acme, alice, path=f"general/{name}.md", text=f"- Say {name}\n")
            made.telling(event, note)

    add(range(3))
    few = queries(browser, url)
    add(range(3, 30))
    assert queries(browser, url) == few


def test_a_note_and_a_proposal_cost_the_same_with_3_and_30_sources(logged_in: Any, acme: Any, alice: Any) -> None:
    browser, session = logged_in(alice), made.session(acme)
    counts = []
    for many in (range(1, 4), range(4, 34)):
        seen = tuple(made.event(session, seq) for seq in many)
        waiting = made.proposal(acme, path=f"general/of-{len(seen)}.md", rests_on=seen)
        shown = queries(browser, f"/t/acme/proposals/{waiting.public_id}/")
        note = made.approved(waiting, alice).note
        counts.append((shown, queries(browser, f"/t/acme/notes/{note.public_id}/")))
    assert counts[0] == counts[1]


def test_a_run_costs_the_same_with_3_and_30_windows(logged_in: Any, acme: Any, alice: Any) -> None:
    browser, counts = logged_in(alice), []
    for many in (range(3), range(3, 33)):
        rows = tuple(made.session(acme, str(name)) for name in many)
        run = made.run(acme, sessions=rows)
        counts.append(queries(browser, f"/t/acme/dreams/{run.public_id}/"))
    assert counts[0] == counts[1]


def test_a_thread_its_map_and_a_worker_cost_the_same_with_3_and_20_of_all(
    logged_in: Any, acme: Any, alice: Any
) -> None:
    browser, home = logged_in(alice), chains.trigger(acme, summary="Opened").thread
    reader = chains.worker(acme, home)
    chains.owner(home, reader, pass_through=True)

    def add(names: range) -> str:
        for name in names:
            cited = [chains.trigger(acme, f"ci:{name}.{place}", summary="Ran", payload=b"x") for place in range(3)]
            said = " ".join(one.public_id for one in cited)
            chains.owner(home, chains.worker(acme, home, report=said))
            chains.link(home, cited[0].thread)
            last = chains.trigger(acme, summary=f"Push {name}", payload=b"x")
        return chains.worker(acme, home, report=said + " " + last.public_id).public_id

    def cost(worker: str) -> list[int]:
        at = f"threads/{home.public_id}/"
        pages = (at, f"{at}map/", f"workers/{worker}/", f"workers/{reader.public_id}/")
        return [queries(browser, f"/t/acme/{page}") for page in pages]

    few = cost(add(range(3)))
    assert cost(add(range(3, 20))) == few
