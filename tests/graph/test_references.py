"""What a text names, and above all what it does not: two tables."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.graph.references import Reference, references

HOME = "acme/payments"


NAMED: list[tuple[str, list[tuple[str, str]]]] = [
    ("fixes #412", [("number", "github:acme/payments#412")]),
    ("(#412)", [("number", "github:acme/payments#412")]),
    ("see acme/other#7.", [("number", "github:acme/other#7")]),
    ("GH-412", [("number", "github:acme/payments#412")]),
    ("https://github.com/acme/payments/pull/412/files#r1", [("pr", "github:acme/payments#412")]),
    ("https://github.com/acme/payments/issues/9).", [("issue", "github:acme/payments#9")]),
    ("https://gitlab.com/a/b/c/-/merge_requests/12", [("pr", "gitlab:a/b/c!12")]),
    ("grp/proj!34 merged", [("pr", "gitlab:grp/proj!34")]),
    ("https://gitlab.com/a/b/-/issues/3", [("issue", "gitlab:a/b#3")]),
    ("https://gitlab.com/a/b/-/pipelines/99", [("run", "gitlab:a/b/pipelines/99")]),
    ("PAY-123 is done", [("ticket", "PAY-123")]),
    ("[PAY-123]", [("ticket", "PAY-123")]),
    ("https://linear.app/acme/issue/ENG-12/title", [("ticket", "ENG-12")]),
    ("https://acme.atlassian.net/browse/PAY-9", [("ticket", "PAY-9")]),
    (
        "https://acme.slack.com/archives/C012AB3CD/p1531420618000100?thread_ts=1531420600.000100&cid=C",
        [("message", "slack:C012AB3CD:1531420600.000100")],
    ),
    ("commit 3f4e5d6 broke", [("commit", "3f4e5d6")]),
    ("bbf59cabac8fe735e858199623a38d867d8c94d6", [("commit", "bbf59cabac8fe735e858199623a38d867d8c94d6")]),
    ("3f4e5d6 Fix it", [("commit", "3f4e5d6")]),
    ("thr_pr_412", [("thread", "thr_pr_412")]),
    ("trg_01h455vb4pex5vsknk084sn02q", [("trigger", "trg_01h455vb4pex5vsknk084sn02q")]),
    ("wkr_abc.", [("worker", "wkr_abc")]),
    ("ses_01h455vb4pex5vsknk084sn02q", [("session", "ses_01h455vb4pex5vsknk084sn02q")]),
    ("branch fix/412-retry", [("number", "github:acme/payments#412")]),
    ("feature/PAY-123-retry", [("ticket", "PAY-123")]),
    ("feature/pay-123-retry", [("ticket", "PAY-123")]),
    ("claude/issue-365-20250806", [("number", "github:acme/payments#365")]),
    (
        "https://github.com/acme/payments/actions/runs/16784367597/job/1",
        [("run", "github:acme/payments/runs/16784367597")],
    ),
    ("https://my-app-git-x.vercel.app/", [("deploy", "my-app-git-x.vercel.app")]),
    ("refs/heads/fix/issue-12", [("number", "github:acme/payments#12")]),
    ("https://github.com/acme/payments/commit/3f4e5d6a", [("commit", "3f4e5d6a")]),
    ("**#412**", [("number", "github:acme/payments#412")]),
    (
        "#412, #413 and #414",
        [
            ("number", "github:acme/payments#412"),
            ("number", "github:acme/payments#413"),
            ("number", "github:acme/payments#414"),
        ],
    ),
    ("#412: title", [("number", "github:acme/payments#412")]),
    ("Merge pull request #2048 from octo-repo/update-readme", [("number", "github:acme/payments#2048")]),
    ("Fix (#365)\n", [("number", "github:acme/payments#365")]),
    ("PR #380", [("number", "github:acme/payments#380")]),
    ("[#12](https://github.com/a/b/pull/12)", [("number", "github:acme/payments#12"), ("pr", "github:a/b#12")]),
    ("closes: #5", [("number", "github:acme/payments#5")]),
    ("issue #1", [("number", "github:acme/payments#1")]),
]
NOT_NAMED = [
    "#1 priority",
    "color: #412abc",
    "#412abc",
    "# 412",
    "## 412 heading",
    "// # 412",
    "12:30:45",
    "https://x.y/page#412",
    "https://x.y/a?b=#3",
    "&#412;",
    "#0",
    "C#7",
    "v1.2.3",
    "UTF-8",
    "SHA-256",
    "2f1e4c3a-1111-4222-8333-abcdefabcdef",
    "deadbeef",
    "1234567",
    "defaced",
    "background:#123;",
    "color: #123456",
    "facade1 is word",
    "UTF-16 and ISO-8859-1",
    "X-1",
    "foo#bar",
    "#412-retry",
    "a#412",
    "line #3",
    "step #2",
    "rgb #444",
    "0x1234abcd",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "src/app/views.py",
    "and/or",
    "1e10000",
    "```\nx #412\n```",
    "thr_",
    "ses_foo",
    "GPT-4",
    "CVE-2020-1234",
    "email a@b.c",
    "node_modules/x",
    "path/to/PAY",
    "feature flags",
    "9a8b7c6d5e4f@host",
    "id: 3f4e5d6",
    "http://localhost:8000/#412",
    "the #1 reason",
    "he is #1 in the rank",
    '<a href="#412">',
    "url(#412)",
    "[a](#412)",
    "box-shadow: 0 0 2px #333",
    "fill: #123456;",
    "at 10:30:12",
    "2024-01-02T03:04:05Z",
    "10.0.0.1",
    "+1-555-123-4567",
    "3.14.15",
    "acme/payments",
    "src/utils/x.test.ts",
    "https://example.com/pull/412",
    "https://github.com/acme",
    "https://github.com/acme/payments",
    "a@b.com#12",
    "MD5: d41d8cd98f00b204e9800998ecf8427e",
    "ISO-8601",
    "RFC-2119",
    "TLS-1",
    "IEEE-754",
    "AES-256-GCM",
    "H-264",
    "#12.5",
    "#!bin/sh",
    "# 1. Install",
    "### 3",
    "x-y-12",
    "F-16",
    "covid-19",
    "COVID-19",
    "sha1-abcdef1",
    "face book added",
    "decade",
    "acceded",
    "0000000",
    "127.0.0.1:8080/#5",
    "user#1234x",
    "channel #3",
]


@pytest.mark.parametrize(("text", "named"), NAMED)
def test_a_text_names(text: str, named: list[tuple[str, str]]) -> None:
    assert references(text, repository=HOME) == [Reference(*one) for one in named]


@pytest.mark.parametrize("text", NOT_NAMED)
def test_a_text_names_nothing(text: str) -> None:
    assert references(text, repository=HOME) == []


def test_a_bare_number_needs_a_repository() -> None:
    assert references("#412 and GH-7") == []
    assert references("#412", repository="gitlab:a/b") == [Reference("number", "gitlab:a/b#412")]
    assert references("!412", repository="gitlab:a/b") == [Reference("pr", "gitlab:a/b!412")]


def test_each_is_told_once_in_order_of_first_mention() -> None:
    text = "PAY-2 then #3, thr_a_b, PAY-2 and https://github.com/acme/payments/issues/3 and #3"
    found = [one.key for one in references(text, repository=HOME)]
    assert found == ["PAY-2", "github:acme/payments#3", "thr_a_b", "github:acme/payments#3"]


@pytest.mark.parametrize(
    "piece",
    ["a", "a/", "0123abc ", "#1 ", "https://", "thr_", "AB-", "ab/cd ", "a" * 39 + "/", "a/b/c/d/e/f/g/h", "\n```\n",
     "#412 ",
     "x" * 50 + "#1 ", "-1", "!1", "_ses_a"],
)  # fmt: skip
def test_a_long_text_costs_what_its_length_says(piece: str) -> None:
    """No pattern looks at a character more than a few times: a megabyte of the worst is read to its end."""
    assert len(references(piece * (1_000_000 // len(piece)), repository=HOME)) <= 500


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300), st.sampled_from([HOME, None, "gitlab:a/b"]))
def test_any_text_is_read(text: str, repository: str | None) -> None:
    found = references(text, repository=repository)
    assert found == references(text, repository=repository) and len(set(found)) == len(found)


def test_words_of_hex_are_words() -> None:
    words = ["defaced", "effaced", "facade", "acceded", "deadbeef", "cafebabe", "decade", "beaded"]
    assert references(" ".join(words * 50), repository=HOME) == []
