"""Agents write what these pages show: nothing of it becomes markup, a script, a link that runs or a foreign image."""

from html.parser import HTMLParser
from typing import Any

import pytest

from memory.tenants import rls
from tests.pages import made

BODY = (
    "[x](javascript:alert(1)) [y](JaVaScRiPt:alert(1)) [z](data:text/html;base64,PHNjcmlwdD4=) "
    "<img src=x onerror=alert(1)> <svg/onload=alert(1)> ![a](https://evil.example/p.png?c=1)"
)
SIGN = "<img src=x onerror=alert(1)>"


class Danger(HTMLParser):
    """Collects what a page holds that must not come from a text: scripts, handlers, running links, foreign images."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: (value or "").strip().lower() for name, value in attrs}
        source, target = named.get("src", ""), named.get("href", "")
        is_foreign = bool(source) and not source.startswith("/static/")
        runs = any(name.startswith("on") for name in named) or target.startswith(("javascript:", "data:", "vbscript:"))
        is_bare = tag in ("img", "script") and not source
        if is_foreign or runs or is_bare or tag in ("iframe", "object", "embed", "style", "base"):
            self.found.append(self.get_starttag_text() or tag)


@pytest.fixture
def pages(acme: Any, alice: Any) -> list[str]:
    """Every page that shows what an agent may have written, with the worst of it in every field."""
    project = made.project(acme, "evil", name=SIGN, place=f"/home/{SIGN}")
    session = made.session(acme, last_prompt=BODY, project=project, model=SIGN, cwd=SIGN, client=SIGN[:40])
    event = made.event(session, 1, tool=SIGN, name=SIGN, summary=BODY, body=f'{{"a": "{SIGN}"}}')
    made.event(session, 2, kind="tool_before", tool=SIGN, summary=BODY)
    made.event(session, 3, kind="tool_before", tool=SIGN, summary=BODY)
    text = f"---\ntitle: '{SIGN}'\ndescription: '{SIGN}'\ntags: ['{SIGN}']\n---\n# {BODY}\n\n- {BODY}\n"
    note = made.note(acme, alice, path="general/evil.md", text=text)
    changed = made.proposal(acme, path=note.path, text=text.replace("# ", "# New "), rests_on=(event,), reason=BODY)
    made.telling(event, note, why=SIGN)
    failed = made.run(acme, state="failed", error=BODY, asked_by=SIGN, proposals=(changed,), sessions=(session,))
    made.rewritten(note, alice, text + f"- {SIGN}\n")
    with rls.tenant_scope(str(acme.pk)):
        # No path may hold such signs; a page escapes what stands there all the same.
        acme.notes.update(path=f"general/{SIGN}.md")
    return [
        "",
        "notes/",
        f"notes/?q={SIGN}",
        f"notes/{note.public_id}/",
        f"notes/{note.public_id}/edit/",
        f"notes/{note.public_id}/history/",
        f"notes/{note.public_id}/diff/?from=1&to=2",
        f"proposals/{changed.public_id}/",
        "sessions/",
        f"sessions/?q={SIGN}",
        f"sessions/{session.public_id}/",
        f"events/{event.public_id}/",
        "projects/",
        "dreams/",
        f"dreams/{failed.public_id}/",
        f"notes/{SIGN}/",
    ]


def test_nothing_an_agent_wrote_is_markup(logged_in: Any, alice: Any, pages: list[str]) -> None:
    browser = logged_in(alice)
    for page in pages:
        answer = browser.get(f"/t/acme/{page}")
        assert answer.status_code == (404 if page == f"notes/{SIGN}/" else 200), page
        assert Danger(answer.content.decode()).found == [], page


def test_the_raw_text_is_shown(logged_in: Any, alice: Any, pages: list[str]) -> None:
    note = next(page for page in pages if page.startswith("notes/nte_"))
    shown = logged_in(alice).get(f"/t/acme/{note}").content.decode()
    assert "&lt;img src=x onerror=alert(1)&gt;" in shown


def test_what_a_form_refuses_is_shown_as_text(logged_in: Any, acme: Any, bob: Any) -> None:
    waiting = made.proposal(acme)
    answer = logged_in(bob).post(
        f"/t/acme/proposals/{waiting.public_id}/edit/",
        {"text": f"---\ntitle: [{SIGN}\n---\n</textarea><script>alert(1)</script>\n", "shown": made.shown(waiting)},
    )
    assert answer.status_code == 422 and Danger(answer.content.decode()).found == []
