"""Every page by axe-core, by its weight, by what moves while it and its parts load, and by the keyboard alone.

axe-core (tests/data/axe) is given to the page by the debugger, which the page's own policy does not bind. The API's
interactive page (/api/v1/docs) is left out: it is Swagger UI, which is not ours and weighs more than all others.
"""

from dataclasses import dataclass
from typing import Any

import pytest
from django.urls import resolve

from tests import database, test_urls
from tests.browser import filled

pytestmark = pytest.mark.browser
AXE = (database.ROOT / "tests" / "data" / "axe" / "axe.min.js").read_text()
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
HEAVIEST = 200 * 1024
MOST_SHIFT = 0.1
MOST_STOPS = 60
ANSWERS = {"not-found": 404, "link-used": 410}
# A date's field has a stop for each of its parts.
MOST_INSIDE = 4
# What a member's GET answers with that is no page: files, and pieces that stand in a page.
NO_PAGES = {"note_export", "trigger_raw", "worker_report", "event_payload"}
# What an operator does by a POST.
ACTS = {f"operator_{verb}" for verb in ("suspend", "resume", "export", "delete", "keep")}

FINDINGS = """async (tags) => {
    const found = await axe.run(document, {runOnly: tags, resultTypes: ["violations"], preload: false});
    return found.violations.flatMap((rule) => rule.nodes.map((node) =>
        [node.impact, rule.id, node.target.flat().join(" "), node.failureSummary.split("\\n")[1].trim()]));
}"""
# Asked after two frames: a shift is reported with the frame in which it happened.
SHIFT = """() => new Promise((done) => {
    let sum = 0;
    new PerformanceObserver((list) => { for (const entry of list.getEntries()) sum += entry.value; })
        .observe({type: "layout-shift", buffered: true});
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(sum))));
})"""
# Where the focus is: which stop (the same number for the same element), whether it is in the page's content, and what
# is wrong with how it shows. A row's link draws its outline around the row, by ::after.
STOP = """() => {
    const at = document.activeElement;
    if (!at || at === document.body) return null;
    const seen = window.walkedStops ??= [];
    if (!seen.includes(at)) seen.push(at);
    const rings = (...of) => of.some((style) => style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1);
    const line = at.getClientRects()[0] ?? at.getBoundingClientRect();
    const left = Math.max(line.left, 0), right = Math.min(line.right, innerWidth);
    const top = Math.max(line.top, 0), bottom = Math.min(line.bottom, innerHeight);
    const isSeen = right > left && bottom > top;
    const over = isSeen ? document.elementFromPoint((left + right) / 2, (top + bottom) / 2) : null;
    const wrong = [];
    if (!rings(getComputedStyle(at), getComputedStyle(at, "::after"))) wrong.push("its focus does not show");
    if (!over) wrong.push("it is focused where nobody sees it");
    else if (!at.contains(over) && !over.contains(at)) wrong.push("something covers it: " + over.className);
    const words = at.getAttribute("aria-label") || at.textContent || at.name || "";
    const name = `${at.localName} “${words.trim().slice(0, 40)}”`;
    return {number: seen.indexOf(at), isInside: !!at.closest("main"), isMain: at.id === "main", name, wrong};
}"""


@dataclass(frozen=True)
class Look:
    """How a page is looked at."""

    scheme: str
    width: int
    height: int

    def __str__(self) -> str:
        return f"{self.width} px, {self.scheme}"


@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param(Look("dark", 390, 844), Look("light", 1440, 900), id="usual"),
        pytest.param(Look("dark", 1440, 900), Look("light", 390, 844), id="others", marks=pytest.mark.slow),
    ],
)
def test_every_page_is_light_still_and_accessible(window: Any, first: Look, then: Look) -> None:
    team = filled.fill()
    pages, before = filled.addresses(team) | filled.operated(team), filled.outside(team)
    assert not unwalked(pages), "pages that tests/browser/filled.py does not know"
    wrong: list[str] = []
    for member, paths in ((team["alice"], pages), (None, before)):
        walk = Walk(window(member))
        for name, path in paths.items():
            walk.show(first)
            walk.open(name, path)
            walk.measure()
            walk.ask_axe()
            walk.by_keyboard()
            walk.show(then)
            walk.ask_axe()
        wrong += walk.wrong
    assert not wrong, "\n".join(wrong)


def unwalked(pages: dict[str, str]) -> set[str]:
    """The names of a team's pages, and of operators', that are not among these."""
    walked = {resolve(path.partition("?")[0]).url_name for path in pages.values()}
    operators = {route.name for route in test_urls.ROUTES if route.address.startswith("operator/")} - ACTS
    asked = {**test_urls.LISTS, **{name: how for name, (how, *_) in test_urls.BY_ID.items()}}
    pages_of_team = {route.name for route in test_urls.PAGES if asked[route.name] == "get"} - NO_PAGES
    return (pages_of_team | operators) - walked


class Walk:
    """One window that goes from page to page; `wrong` holds what was found, with the page and how it was looked at."""

    def __init__(self, window: Any) -> None:
        self.address, self.page = window.address, window.page
        self.wrong: list[str] = []
        self.name, self.look, self.sent = "", "", 0
        debugger = window.context.new_cdp_session(self.page)
        debugger.send("Network.enable")
        # Each page is weighed as for who comes for the first time.
        debugger.send("Network.setCacheDisabled", {"cacheDisabled": True})
        debugger.on("Network.loadingFinished", self._weigh)

    def _weigh(self, event: dict[str, Any]) -> None:
        self.sent += event["encodedDataLength"]

    def note(self, is_wrong: bool, what: str) -> None:
        if is_wrong:
            self.wrong.append(f"{self.name} ({self.look}): {what}")

    def show(self, look: Look) -> None:
        self.look = str(look)
        self.page.set_viewport_size({"width": look.width, "height": look.height})
        self.page.emulate_media(color_scheme=look.scheme)
        # Where the keyboard left the page, a bar that stays may lie over half of a link.
        self.page.evaluate("scrollTo({top: 0, behavior: 'instant'})")

    def open(self, name: str, path: str) -> None:
        self.name, self.sent = name, 0
        status = self.page.goto(self.address + path).status
        self.note(status != ANSWERS.get(name, 200), f"answers {status}")
        self.note(not self.page.url.endswith(path), f"leads to {self.page.url}")
        # Parts that the page asks for by itself belong to its loading: they take the place of what asks for them.
        self.page.wait_for_function("() => !document.querySelector('[hx-trigger=load]')")

    def measure(self) -> None:
        shift = self.page.evaluate(SHIFT)
        self.note(shift >= MOST_SHIFT, f"moves by {shift:.3f} while it loads")
        self.note(self.sent > HEAVIEST, f"weighs {self.sent / 1024:.0f} KB")

    def ask_axe(self) -> None:
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(AXE)
        for impact, rule, selector, why in self.page.evaluate(FINDINGS, TAGS):
            self.note(True, f"{impact} {rule}: {selector} ({why})")

    def by_keyboard(self) -> None:
        """By the skip link into the content, and on to its end."""
        skip = self.page.locator(".skip")
        if skip.count():
            skip.focus()
            self.judge(self.page.evaluate(STOP))
            at = self.press("Enter")
            self.note(not (at and at["isMain"]), "the skip link does not lead to the content")
        last, stays = -1, 0
        for _ in range(MOST_STOPS):
            at = self.press("Tab")
            # Out of the content, or, on a page that is one card, back at its beginning.
            if at is None or not at["isInside"] or at["number"] == 0 < last:
                return
            stays = stays + 1 if at["number"] == last else 0
            if at["number"] < last or stays > MOST_INSIDE:
                self.note(True, f"{at['name']} traps the focus")
                return
            last = at["number"]
            self.judge(at)

    def press(self, key: str) -> Any:
        self.page.keyboard.press(key)
        return self.page.evaluate(STOP)

    def judge(self, at: Any) -> None:
        for what in at["wrong"]:
            self.note(True, f"{at['name']}: {what}")
