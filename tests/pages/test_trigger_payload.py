"""The payload viewer: windows, search, errors, binary, and the bytes to keep."""

import lzma
from pathlib import Path
from typing import Any

import pytest

from memory.graph import payloads
from memory.graph.summaries.text import first_error
from memory.tenants import rls
from tests.pages import chains

LOGS = Path(__file__).parents[1] / "data" / "ci-logs"
HTMX = {"HX-Request": "true"}


def url(trigger: Any, query: str = "") -> str:
    return f"/t/acme/triggers/{trigger.public_id}/payload/?{query}"


def numbered(count: int, words: str = "line") -> bytes:
    return b"".join(f"{words} {number}\n".encode() for number in range(1, count + 1))


def shown(answer: Any) -> tuple[int, int, int]:
    window = answer.context["window"]
    return window.first, window.last, window.total


@pytest.fixture
def log(acme: Any) -> Any:
    return chains.trigger(acme, "ci:1", numbered(5000), source="ci")


def test_it_opens_a_window_of_lines(logged_in: Any, vera: Any, log: Any) -> None:
    answer = logged_in(vera).get(url(log))
    assert shown(answer) == (1, 200, 5000) and len(answer.content) < 70_000
    assert 'id="L200"' in answer.content.decode() and "line 201<" not in answer.content.decode()


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("from=201", (201, 400, 5000)),
        ("from=4801", (4801, 5000, 5000)),
        ("from=1001", (1001, 1200, 5000)),
        ("line=2500", (2492, 2691, 5000)),
        ("line=2,500", (2492, 2691, 5000)),
        ("line=7", (1, 200, 5000)),
        ("line=99999", (5000, 5000, 5000)),
        ("line=x&from=-4", (1, 200, 5000)),
    ],
)
def test_it_goes_to_a_line(logged_in: Any, vera: Any, log: Any, query: str, expected: tuple[int, int, int]) -> None:
    assert shown(logged_in(vera).get(url(log, query))) == expected


def test_a_line_that_is_not_there_is_told(logged_in: Any, vera: Any, log: Any) -> None:
    assert "There is no line 99,999" in logged_in(vera).get(url(log, "line=99999")).content.decode()


def test_windows_hold_every_line_once(logged_in: Any, vera: Any, acme: Any) -> None:
    lines = ["x" * (0, 1, 80, 3000)[number % 7 % 4] + str(number) for number in range(2345)]
    long = chains.trigger(acme, "ci:2", "\n".join(lines).encode())
    browser, seen, at = logged_in(vera), [], 1
    while at:
        window = browser.get(url(long, f"from={at}")).context["window"]
        seen += [line.text for line in window.lines]
        at = window.next
    assert seen == [line[: payloads.LINE_CUT] for line in lines]


def test_it_searches_the_whole(logged_in: Any, vera: Any, log: Any) -> None:
    answer = logged_in(vera).get(url(log, "q=line 4[0-9]99$"))
    assert [hit["line"] for hit in answer.context["hits"]] == [4099 + 100 * place for place in range(9)] + [4999]
    assert shown(answer)[0] == 4091, "around the first hit"
    assert "<mark>line 4099</mark>" in answer.content.decode()


def test_many_hits_are_read_on(logged_in: Any, vera: Any, log: Any) -> None:
    browser = logged_in(vera)
    answer = browser.get(url(log, "q=line"))
    assert [hit["line"] for hit in answer.context["hits"]] == list(range(1, 101)) and answer.context["more_past"] == 100
    answer = browser.get(url(log, "q=line&past=4950"))
    assert [hit["line"] for hit in answer.context["hits"]] == list(range(4951, 5001))
    assert answer.context["more_past"] == 0


@pytest.mark.parametrize("pattern", ["(", "a{100000}", "(?=x)", r"(a)\1", "x" * 1001])
def test_a_pattern_that_is_none_is_told(logged_in: Any, vera: Any, log: Any, pattern: str) -> None:
    answer = logged_in(vera).get(url(log), {"q": pattern})
    assert answer.status_code == 200 and 'role="alert"' in answer.content.decode()


def test_a_pattern_that_would_backtrack_for_ever_does_not(logged_in: Any, vera: Any, acme: Any) -> None:
    slow = chains.trigger(acme, "ci:3", b"a" * 100_000 + b"\n")
    assert logged_in(vera).get(url(slow, "q=(a%2B)%2B$b")).context["hits"] == []


def test_no_hit_says_what_to_try(logged_in: Any, vera: Any, log: Any) -> None:
    assert "(?i)" in logged_in(vera).get(url(log, "q=nothing")).content.decode()


@pytest.mark.parametrize("name", ["mochitest-fail", "taskcluster-timeout"])
def test_the_first_real_error_stands_first(logged_in: Any, vera: Any, acme: Any, name: str) -> None:
    raw = lzma.decompress((LOGS / f"{name}.log.xz").read_bytes())
    log = chains.trigger(acme, "ci:4", raw, source="ci")
    piece = logged_in(vera).get(url(log, "errors=1"), headers={**HTMX, "HX-Target": "errors"})
    assert piece.content.strip().startswith(b'<section class="panel" id="errors"')
    sign, found = first_error(raw.decode("utf-8", "replace")), piece.context["errors"][0]
    assert sign is not None and found.text == sign.words[:300]
    assert sign.words[:60].encode() in raw.split(b"\n")[found.number - 1]
    assert "First real error" in piece.content.decode()


def test_an_error_behind_progress_bars_is_at_the_line_that_is_shown(logged_in: Any, vera: Any, acme: Any) -> None:
    raw = b"step\r\n" * 50 + b"fetching 1%\rfetching 50%\rdone\r\n" * 9 + b"E   AssertionError: assert 3 == 4\r\n"
    log = chains.trigger(acme, "ci:4", raw, source="ci")
    answer = logged_in(vera).get(url(log, "errors=1"))
    assert [line.number for line in answer.context["errors"]] == [60]
    assert [hit["line"] for hit in logged_in(vera).get(url(log, "q=Assertion")).context["hits"]] == [60]


def test_a_log_without_errors_says_so(logged_in: Any, vera: Any, log: Any) -> None:
    assert "No line looks like a failure" in logged_in(vera).get(url(log, "errors=1")).content.decode()


def test_32_megabytes_open_by_a_window(logged_in: Any, vera: Any, acme: Any) -> None:
    big = chains.trigger(acme, "ci:5", None, summary="Large")
    row = b"2026-01-01T00:00:00Z step %07d did what it had to do and was well\n"
    raw = b"".join(row % number for number in range(480_000))
    chains.part(big, "full_log", raw)
    answer = logged_in(vera).get(url(big, "part=full_log&from=470000"))
    assert shown(answer) == (470_000, 470_199, 480_000) and len(answer.content) < 90_000
    found = logged_in(vera).get(url(big, "part=full_log&q=step 0479999"))
    assert [hit["line"] for hit in found.context["hits"]] == [480_000]


def test_reading_the_beginning_leaves_the_rest_packed(acme: Any) -> None:
    big = chains.trigger(acme, "ci:6", numbered(400_000))
    with rls.tenant_scope(str(acme.pk)):
        part = big.parts.get(name="payload")
        pieces = payloads._bytes(part)
        assert len(next(pieces)) <= payloads._READ < part.size


def test_one_endless_line_is_cut(logged_in: Any, vera: Any, acme: Any) -> None:
    endless = chains.trigger(acme, "ci:7", b"x" * 3_000_000 + b"needle" + b"y" * 1_000_000)
    answer = logged_in(vera).get(url(endless, "q=needle"))
    assert len(answer.content) < 40_000 and "the line has 3.8 MB" in answer.content.decode()
    assert "<mark>needle</mark>" in answer.content.decode()


def test_small_json_has_indents_and_its_lines_are_there_too(logged_in: Any, vera: Any, acme: Any) -> None:
    body = chains.trigger(acme, "ci:8", b'{"a": {"b": "\xc3\xa9"}}', media_type=chains.JSON)
    browser = logged_in(vera)
    assert "&quot;b&quot;: &quot;é&quot;" in browser.get(url(body)).content.decode()
    assert shown(browser.get(url(body, "view=lines"))) == (1, 1, 1)
    assert shown(browser.get(url(body, "q=a"))) == (1, 1, 1)


def test_json_that_is_none_is_shown_by_lines(logged_in: Any, vera: Any, acme: Any) -> None:
    broken = chains.trigger(acme, "ci:9", b'{"a": ', media_type=chains.JSON)
    assert shown(logged_in(vera).get(url(broken))) == (1, 1, 1)


@pytest.mark.parametrize(
    ("raw", "kind"), [(b"\x89PNG\r\n\x1a\n\0\0", "image/png"), (b"\xff\xd8\xff\xe0" * 9, "application/octet-stream")]
)
def test_binary_says_so(logged_in: Any, vera: Any, acme: Any, raw: bytes, kind: str) -> None:
    picture = chains.trigger(acme, "ci:10", raw, media_type=kind)
    page = logged_in(vera).get(url(picture, "q=PNG&errors=1")).content.decode()
    assert "This part is binary" in page and "/raw/?part=payload" in page


def test_other_encodings_are_read(logged_in: Any, vera: Any, acme: Any) -> None:
    wide = chains.trigger(acme, "ci:11", "erste Zeile\nzweite Zeile: Größe\n".encode("utf-16"))
    latin = chains.trigger(acme, "ci:12", "Größe\n".encode("latin-1"))
    browser = logged_in(vera)
    assert "zweite Zeile: Größe" in browser.get(url(wide)).content.decode()
    assert browser.get(url(latin)).status_code == 200


def test_terminal_colours_are_left_out(logged_in: Any, vera: Any, acme: Any) -> None:
    coloured = chains.trigger(acme, "ci:13", b"\x1b[31mred\x1b[0m\n")
    page = logged_in(vera).get(url(coloured)).content.decode()
    assert ">red<" in page and "\x1b" not in page


def test_an_empty_part_says_so(logged_in: Any, vera: Any, acme: Any) -> None:
    empty = chains.trigger(acme, "ci:14", None, summary="Empty")
    chains.part(empty, "body", b"")
    assert "The part is empty" in logged_in(vera).get(url(empty, "part=body")).content.decode()


def test_an_unknown_part_is_not_found(logged_in: Any, vera: Any, log: Any) -> None:
    assert logged_in(vera).get(url(log, "part=diff")).status_code == 404
    assert logged_in(vera).get(url(log, "part=../x")).status_code == 400


def test_the_bytes_are_downloaded_never_shown(logged_in: Any, vera: Any, acme: Any) -> None:
    page = chains.trigger(acme, "ci:15", b"<script>alert(1)</script>", media_type="text/html")
    answer = logged_in(vera).get(url(page).replace("/payload/", "/raw/"))
    assert answer.content == b"<script>alert(1)</script>" and answer["X-Content-Type-Options"] == "nosniff"
    assert answer["Content-Disposition"].startswith("attachment;")
