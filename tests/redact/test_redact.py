"""What cleaning does to values, what it leaves alone, and that it works after a fork and in threads."""

import base64
import gzip
import json
import os
import random
import threading
from pathlib import Path
from typing import Any

import pytest

from memory import redact
from memory.redact import binary, native, scan
from tests.redact.kinds import sample

redact.use_key(b"test")
SAMPLES = Path(__file__).parents[1] / "data" / "redact"
_before, TOKEN, _after = sample("github pat", random.Random(1))  # noqa: S311 - a made-up secret
UUID = "0f6b3a52-7c1d-4e7f-9a55-0c1d2e3f4a5b"
SHA256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


@pytest.mark.parametrize(
    "text",
    [
        "risk-based review",
        "commit 3f786850e387550fdab836ed7e6dc881de23001b",
        "apiKey: import.meta.env.KEY",
        "No API key in the build",
        f"session {UUID}",
        f'"key": "{UUID}"',
        f"sha256:{SHA256} cache_key={SHA256}",
        "const token = await getToken(request.headers.authorization);",
        "password: string; apiKey?: string | undefined",
        "def login(user: str, password: str = Field(min_length=8)) -> Token:",
        "API_KEY=${API_KEY} TOKEN=$(cat token) SECRET=<your-secret> PASSWORD=********",
        "Authorization: Bearer $TOKEN",
        "run the basic integrations, then basic authentication",
        "max_tokens: 4096, total_tokens=128000, primary_key=True",
        "https://example.com:8080/a@b postgres://db.internal:5432/prod ssh://git@host.example/repo.git",
        "import { useSecretsManagerClientFactory } from './components/secrets/manager/client'",
        "public_key = ssh-ed25519 in authorized_keys",
        "C:\\new\\temp\\users and 50%25 of &quot;it&quot;",
    ],
)
def test_it_leaves_ordinary_text_alone(text: str) -> None:
    assert redact.clean_text(text) == redact.Clean(text, 0, 0)
    assert redact.clean({"stdout": text}).redactions == 0


def test_it_leaves_real_sessions_and_logs_alone() -> None:
    with gzip.open(SAMPLES / "hooks.jsonl.gz", "rt", encoding="utf-8") as lines:
        payloads = [json.loads(line) for line in lines]
    for payload, cleaned in zip(payloads, redact.clean_many(payloads), strict=True):
        assert cleaned.value is payload
    with gzip.open(SAMPLES / "ci.log.gz", "rt", encoding="utf-8") as log:
        assert redact.clean_text(log.read()).redactions == 0


def test_it_masks_the_values_of_an_environment_dump_as_a_whole() -> None:
    dotted = "sk-" + "test-ABCDEFGH1234567890." + "abcdefgh_XYZ"
    same = "ghp_" + "A" * 36
    pem = "-----BEGIN " + "PRIVATE KEY-----\nMIIFAKE\n-----END " + "PRIVATE KEY-----"
    dump = f"export API_KEY={dotted}\n{same}\npostgres://app:" + f"S3cr3tPw@db/prod\n{pem}"
    cleaned = redact.clean_text(dump)
    assert cleaned.redactions == 4
    for raw in (dotted, "abcdefgh_XYZ", same, "S3cr3tPw", "MIIFAKE"):
        assert raw not in cleaned.value
    assert cleaned.value.startswith("export API_KEY=[secret:")
    assert "postgres://app:[secret:" in cleaned.value
    assert "]@db/prod\n" in cleaned.value


def test_it_sees_a_value_with_its_key() -> None:
    value = "Zx81kqPmv93" + "hfbQwe7Lr"
    event = {"tool_input": {"api_key": value, "path": "/a"}, "list": [1, None, True, 2.5, "x"]}
    cleaned = redact.clean(event)
    assert cleaned.redactions == 1
    assert cleaned.value["tool_input"]["api_key"].startswith("[secret:")
    assert cleaned.value["tool_input"]["path"] == "/a"
    assert cleaned.value["list"] is event["list"]
    assert event["tool_input"]["api_key"] == value  # type: ignore[index]


def test_it_sees_the_value_of_a_named_list() -> None:
    value = "Zx81kqPmv93" + "hfbQwe7Lr"
    cleaned = redact.clean({"env": [{"name": "SERVICE_API_KEY", "value": value}]})
    assert value not in json.dumps(cleaned.value)


def test_it_cleans_keys_and_keeps_both_values_of_keys_that_became_the_same() -> None:
    cleaned = redact.clean({TOKEN: 1, "a\x00": 2, "a\ufffd": 3})
    assert TOKEN not in json.dumps(cleaned.value)
    assert sorted(cleaned.value.values()) == [1, 2, 3]


def test_it_names_one_secret_the_same_everywhere_and_two_apart() -> None:
    first, second = (redact.clean_text(f"x {TOKEN}").value, redact.clean_text(f"longer {TOKEN} y").value)
    assert first[2:] == second[7:-2]
    assert redact.clean_text(f"x {TOKEN[:-1]}_").value != first
    redact.use_key(b"other")
    assert redact.clean_text(f"x {TOKEN}").value != first
    redact.use_key(b"test")


def test_it_changes_nothing_the_second_time() -> None:
    named = f"token: {TOKEN} password='{TOKEN}'"
    once = redact.clean_text(f"{named} postgres://u:{TOKEN}@h/d\nAuthorization: Bearer {TOKEN}")
    assert once.redactions >= 4
    assert redact.clean_text(once.value) == redact.Clean(once.value, 0, 0)
    assert redact.clean({"api_key": once.value}).redactions == 0


def test_it_hides_every_later_copy_of_a_value_it_knows() -> None:
    value = "Zx81kqPmv93" + "hfbQwe7Lr"
    text = f"api_key = '{value}'\n" + "word " * 20_000 + value
    assert value not in redact.clean_text(text).value


@pytest.mark.parametrize(
    ("text", "fit", "count"),
    [
        ("a\x00b", "a\ufffdb", 1),
        ("x\ud83d", "x\ufffd", 1),
        ("\ud83d\ude00", "\U0001f600", 0),
        ("C:\\u0000dir \U0001f600 é", "C:\\u0000dir \U0001f600 é", 0),
        ("", "", 0),
    ],
)
def test_it_replaces_what_postgresql_refuses(text: str, fit: str, count: int) -> None:
    assert redact.sanitize(text) == (fit, count)
    cleaned = redact.clean({text or "k": [text]})
    assert cleaned.sanitized == (2 * count)
    assert cleaned.value == {fit or "k": [fit]}


def test_it_gives_each_of_many_what_clean_gives() -> None:
    values: list[Any] = [{"a": place, "b": f"text {UUID}"} for place in range(300)]
    values[7] = {"out": f"x {TOKEN}"}
    values[150] = {"out": "nul \x00"}
    values[151] = {"out": "half \ud800", "big": 2**70}
    values[299] = {"out": "word " * 9_000 + TOKEN}
    cleaned = redact.clean_many(values)
    assert cleaned == [redact.clean(value) for value in values]
    assert [place for place, one in enumerate(cleaned) if one.redactions] == [7, 299]
    assert [place for place, one in enumerate(cleaned) if one.sanitized] == [150, 151]
    assert cleaned[0].value is values[0]
    assert redact.clean_many([]) == []


def test_it_takes_an_encoded_secret_out_whole() -> None:
    blob = base64.b64encode(f"export TOKEN={TOKEN}".encode()).decode()
    assert redact.clean_text(f"got {blob} ok").value.startswith("got [secret:encoded:")
    assert redact.clean_text("got " + base64.b64encode(b"hello, this is only text").decode()).redactions == 0


def test_it_takes_out_what_it_had_no_time_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "BUDGET_SECONDS", -1.0)
    if native.scanner():
        assert redact.clean_text("plain words").value.startswith("[secret:unscanned:")


def test_it_has_its_own_rules_where_there_is_no_wheel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "_scanner", None)
    monkeypatch.setattr(native, "_is_searched", True)
    assert "own rules only" in redact.engine()
    assert redact.has_secret(f"x {TOKEN}")
    assert not redact.has_secret("risk-based review")


def test_it_works_in_threads() -> None:
    found: list[int] = []

    def scan_once() -> None:
        found.append(redact.clean_text(f"x {TOKEN}").redactions)

    threads = [threading.Thread(target=scan_once) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [1] * 8


def test_it_works_in_a_child_forked_after_the_first_scan() -> None:
    named = redact.engine()
    child = os.fork()
    if child == 0:
        os._exit(0 if redact.clean_text(f"x {TOKEN}").redactions == 1 and redact.engine() == named else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_it_masks_secrets_in_bytes_that_are_no_text() -> None:
    noise = random.Random(2).randbytes(3_000)  # noqa: S311 - noise, the same in each run
    for told in (
        TOKEN.encode(),
        TOKEN.encode("utf-16-le"),
        TOKEN.encode("utf-16-be"),
        TOKEN[:20].encode() + b"\0" + TOKEN[20:].encode(),
        b"name\0" + TOKEN.encode() + b"\0next",
    ):
        raw = noise + told + noise
        masked, count = binary.masked(raw)
        assert count and len(masked) == len(raw), told
        assert TOKEN[10:24].encode() not in masked.replace(b"\0", b""), told
        assert masked.startswith(noise[:2_990]) and masked.endswith(noise[10:])
    assert binary.masked(noise) == (noise, 0)


def test_it_leaves_files_that_hold_no_secret_alone() -> None:
    for file in (Path(__file__).parents[2] / "static" / "vendor" / "htmx.min.js", SAMPLES / "hooks.jsonl.gz"):
        raw = file.read_bytes()
        assert binary.masked(raw) == (raw, 0), file.name
