"""Files that browsers get: names with hashes, kept for good, packed for who takes it; and pages packed."""

import gzip
import io
import re
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.templatetags.static import static
from django.test import Client

PACKED = {"Accept-Encoding": "br, gzip;q=0.8"}
CSS = (Path(settings.BASE_DIR) / "static" / "app.css").read_bytes()


def body(answer: Any) -> bytes:
    return b"".join(answer.streaming_content) if answer.streaming else answer.content


def test_a_name_holds_the_hash_and_is_kept_for_good() -> None:
    address = static("app.css")
    assert re.fullmatch(r"/static/app\.[0-9a-f]{12}\.css", address)
    answer = Client().get(address)
    assert body(answer) == CSS and "immutable" in answer["Cache-Control"]
    assert "max-age=315360000" in answer["Cache-Control"] and "Content-Encoding" not in answer


def test_the_plain_name_and_one_of_another_version_give_the_file_for_a_minute() -> None:
    for address in ("/static/app.css", "/static/app.000000000000.css"):
        answer = Client().get(address)
        assert body(answer) == CSS and answer["Cache-Control"] == "max-age=60, public"
    for address in ("/static/none.css", "/static/none.000000000000.css", "/static/../memory/settings.py"):
        assert Client().get(address).status_code == 404


def test_it_is_packed_for_who_takes_it() -> None:
    answer = Client(headers=PACKED).get(static("app.css"))
    packed = body(answer)
    assert gzip.decompress(packed) == CSS and len(packed) * 3 < len(CSS)
    assert answer["Content-Encoding"] == "gzip" and answer["Vary"] == "Accept-Encoding"
    assert answer["Content-Length"] == str(len(packed)) and answer["Content-Type"].startswith("text/css")
    assert Client().get(static("app.css"))["Vary"] == "Accept-Encoding"
    head = Client(headers=PACKED).head(static("app.css"))
    assert head["Content-Length"] == str(len(packed)) and head["Content-Encoding"] == "gzip"


@pytest.mark.parametrize("accepted", ["", "br", "gzip;q=0", "gzip; q=0.0", "identity", "x-gzipped"])
def test_it_is_plain_for_who_does_not(accepted: str) -> None:
    answer = Client(headers={"Accept-Encoding": accepted}).get(static("app.css"))
    assert body(answer) == CSS and "Content-Encoding" not in answer


def test_a_part_of_a_file_is_a_part_of_its_plain_form() -> None:
    answer = Client(headers={**PACKED, "Range": "bytes=0-9"}).get(static("app.css"))
    assert answer.status_code == 206 and body(answer) == CSS[:10] and "Content-Encoding" not in answer


def test_who_has_it_is_not_sent_it_again() -> None:
    tag = Client(headers=PACKED).get(static("app.css"))["ETag"]
    again = Client(headers={**PACKED, "If-None-Match": tag}).get(static("app.css"))
    assert again.status_code == 304 and body(again) == b""


def test_a_file_that_packing_makes_no_smaller_is_left_as_it_is() -> None:
    answer = Client(headers=PACKED).get(static("favicon.svg"))
    assert "Content-Encoding" not in answer and b"<svg" in body(answer)


def test_a_page_is_packed_and_names_what_is_kept(logged_in: Any, acme: Any, alice: Any) -> None:
    browser = logged_in(alice)
    plain = browser.get("/t/acme/")
    packed = browser.get("/t/acme/", headers=PACKED)
    shown = gzip.GzipFile(fileobj=io.BytesIO(packed.content)).read()
    assert packed["Content-Encoding"] == "gzip" and len(packed.content) * 2 < len(plain.content)
    assert static("app.css").encode() in shown and static("vendor/htmx.min.js").encode() in shown


def test_what_agents_are_answered_is_not_packed(agent: Any) -> None:
    answer = Client(headers={**agent.headers, **PACKED}).get("/api/v1/schema")
    assert "Content-Encoding" not in answer
