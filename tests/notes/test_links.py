"""Links between notes: by path, and after a move of either."""

import re
from typing import Any

import pytest
from django.test import Client

from memory.notes import moving
from memory.notes.markdown import render, targets_in
from memory.tenants import rls
from memory.tenants.access import member_actor
from tests.notes.test_files_api import unzipped
from tests.pages import made

LINKED = """---
title: Deploys
---
See [flags](../tools/bash/flags.md), [same](/tools/bash/flags.md#set-e), [top](tools/bash/flags.md) and
[spaced](<a b.md>), [coded](a%20b.md), [team](team/tools/bash/flags.md), [none](none.md), [out](../../../x.md),
[web](https://a.example/x.md), [here](#top), [ref].

[ref]: ../Tools/BASH/flags.md "title"
"""


def moved(note: Any, to: str, by: Any) -> None:
    with rls.tenant_scope(str(note.tenant_id)):
        moving.move(note, to, by=member_actor(by))


def links_on(note: Any, by: Any) -> dict[str, str]:
    """The addresses on a note's page by the words of each link."""
    browser = Client()
    browser.force_login(by.user)
    page = browser.get(f"/t/acme/notes/{note.public_id}/").content.decode()
    prose = page[page.index('<div class="prose"') : page.index("</article>")]
    return {words: address for address, words in re.findall(r'<a href="([^"]*)"[^>]*>([^<]*)</a>', prose)}


def export(by: Any) -> bytes:
    browser = Client()
    browser.force_login(by.user)
    return browser.get("/api/v1/notes/export").content


def test_paths_lead_to_notes_and_old_ones_after_a_move(acme: Any, alice: Any) -> None:
    flags = made.note(acme, alice, path="tools/bash/flags.md")
    spaced = made.note(acme, alice, path="general/a b.md")
    note = made.note(acme, alice, path="general/deploy.md", text=LINKED)
    to_flags, to_spaced = (f"/t/acme/notes/{one.public_id}/" for one in (flags, spaced))
    before = links_on(note, alice)
    assert before == {
        **dict.fromkeys(("flags", "top", "team", "ref"), to_flags),
        "same": f"{to_flags}#set-e",
        **dict.fromkeys(("spaced", "coded"), to_spaced),
        "web": "https://a.example/x.md",
        "here": "#top",
    }
    moved(flags, "project/shell/flags.md", alice)
    moved(spaced, "general/other.md", alice)
    assert links_on(note, alice) == before
    # Its own relative links go on to be read from where it stood.
    moved(note, "project/shop/ops/deploy.md", alice)
    assert links_on(note, alice) == before
    assert LINKED.encode() in unzipped(export(alice))["project/shop/ops/deploy.md"]
    # Who stands at the path now comes before who stood there.
    newer = made.note(acme, alice, path="general/newer.md")
    moved(newer, "tools/bash/flags.md", alice)
    assert links_on(note, alice)["top"] == f"/t/acme/notes/{newer.public_id}/"


def test_the_team_is_not_led_to_a_private_note(acme: Any, alice: Any) -> None:
    own = made.note(acme, alice, path="general/own.md", is_private=True)
    shared = made.note(acme, alice, path="general/shared.md", text="[own](own.md)\n")
    assert links_on(shared, alice) == {}
    mine = made.note(acme, alice, path="general/mine.md", text="[own](own.md) [shared](shared.md)\n", is_private=True)
    assert links_on(mine, alice) == {
        "own": f"/t/acme/notes/{own.public_id}/",
        "shared": f"/t/acme/notes/{shared.public_id}/",
    }


@pytest.mark.parametrize(
    "target", ["//evil.example", r"\\evil.example", r"/\evil.example", "//evil.example/a.md", "</\\evil.example>"]
)
def test_no_link_leaves_by_the_scheme_of_the_page(target: str) -> None:
    for text in (f"[d]({target})", f"![d]({target})", f"[d]\n\n[d]: {target}\n"):
        for how in ({}, {"page_for": lambda path: None}):
            assert not re.search(r'href="[/\\]{2}', render(text, **how)), (text, how)


def test_a_search_for_targets_is_cheap_where_there_is_no_link() -> None:
    assert targets_in("[a] b (c)") == frozenset()
    assert targets_in("[a](x.md#y) ![i](p.png) `[c](z.md)` [b](https://h/x.md)") == {"x.md"}
