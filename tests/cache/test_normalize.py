"""Spellings: of paths, addresses, numbers, queries, commands."""

from typing import Any

import pytest

from cache_admin.normalize import (
    Rules,
    carries_secret,
    command,
    exact,
    fraction,
    normal,
    number,
    path,
    query,
    rules_of,
    url,
)

ROOT = "/home/dev/shop"


@pytest.mark.parametrize(
    ("text", "root", "expected"),
    [
        ("./src/u.py", ROOT, "$ROOT/src/u.py"),
        ("src/u.py", ROOT, "$ROOT/src/u.py"),
        ("src/u.py", "", "$ROOT/src/u.py"),
        ("/home/dev/shop/src/u.py", ROOT, "$ROOT/src/u.py"),
        ("/home/dev/shop/src/u.py", ROOT + "/", "$ROOT/src/u.py"),
        ("src//u.py", ROOT, "$ROOT/src/u.py"),
        ("src/x/../u.py", ROOT, "$ROOT/src/u.py"),
        ("src\\u.py", ROOT, "$ROOT/src/u.py"),
        ("C:\\work\\shop\\src\\u.py", "c:\\work\\shop", "$ROOT/src/u.py"),
        ("c:/Work/Shop/src/u.py", "C:\\work\\shop", "$ROOT/src/u.py"),
        ("src/", ROOT, "$ROOT/src"),
        (".", ROOT, "$ROOT"),
        ("", ROOT, "$ROOT"),
        (ROOT, ROOT, "$ROOT"),
        ("/home/dev/shop2/u.py", ROOT, "/home/dev/shop2/u.py"),
        ("../other/u.py", ROOT, "/home/dev/other/u.py"),
        ("/etc/hosts", ROOT, "/etc/hosts"),
        ("src/e\u0301.py", ROOT, "$ROOT/src/\u00e9.py"),
        ("src/U.py", ROOT, "$ROOT/src/U.py"),
    ],
)
def test_paths(text: str, root: str, expected: str) -> None:
    assert path(text, root=root) == expected


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("HTTPS://Example.COM:443/a?b=1&a=2", "https://example.com/a?a=2&b=1"),
        ("http://x.com:80/", "http://x.com"),
        ("https://x.com/d#s1", "https://x.com/d#s2"),
        ("https://x.com/%7Eu", "https://x.com/~u"),
        ("https://x.com/a/../b", "https://x.com/b"),
        ("https://bücher.de/", "https://xn--bcher-kva.de/"),
        ("https://straße.de/", "https://xn--strae-oqa.de/"),
        ("https://STRAẞE.de:443/", "https://straße.de/"),
        ("https://x.com/d?a=b+c", "https://x.com/d?a=b%20c"),
        ("https://x.com/d?utm_source=a&x=1&gclid=2&fbclid=3", "https://x.com/d?x=1"),
    ],
)
def test_spellings_of_one_address(one: str, other: str) -> None:
    assert url(one) == url(other) == url(url(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("https://x.com/A", "https://x.com/a"),
        ("https://x.com/d?time", "https://x.com/d?station"),
        ("https://x.com/d?a=1&a=2", "https://x.com/d?a=2&a=1"),
        ("https://x.com/a", "https://x.com/a/"),
        ("http://x.com/", "https://x.com/"),
        ("https://x.com/?id=3", "https://x.com/?id=4"),
        ("https://x.com/?a=", "https://x.com/?b="),
        ("https://x.com/a%2Fb", "https://x.com/a/b"),
        ("https://x.com/?q=a%26b", "https://x.com/?q=a&b"),
        ("https://x.com/#!/one", "https://x.com/#!/two"),
        ("https://x.com/#/one", "https://x.com/#/two"),
        ("https://straße.de/", "https://strasse.de/"),
        ("https://βόλος.gr/", "https://βόλοσ.gr/"),
    ],
)
def test_different_addresses_stay_different(one: str, other: str) -> None:
    assert url(one) != url(other)


def test_http_and_https_are_one_only_on_the_hosts_of_the_policy() -> None:
    hosts = frozenset({"docs.shop.test"})
    assert url("http://docs.shop.test/a", http_hosts=hosts) == url("https://docs.shop.test/a", http_hosts=hosts)
    assert url("http://x.com/a", http_hosts=hosts) != url("https://x.com/a", http_hosts=hosts)


@pytest.mark.parametrize("text", ["http://[bad", "no address", "mailto:a@b.c", "http://", "ftp://x/A?b&a"])
def test_what_is_no_web_address_stays(text: str) -> None:
    assert url(text) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10", 10), ("-3", -3), ("1.50", 1.5), ("1e2", 100.0), ("010", "010"), ("1_000", "1_000"), ("", ""),
        ("0x10", "0x10"), ("NaN", "NaN"), ("1e999", "1e999"), (" 1", " 1"), ("٣", "٣"),
        ("9007199254740993", 9007199254740993),
    ],
)  # fmt: skip
def test_numbers_written_as_text(text: str, expected: Any) -> None:
    assert number(text) == expected and type(number(text)) is type(expected)


def test_only_what_the_policy_names_is_rewritten() -> None:
    arguments = {"path": "./a", "url": "HTTP://X.com", "n": "10", "q": "  Two  Words ", "command": " ls  -l\n"}
    assert normal(arguments, rules=Rules()) == arguments
    rules = rules_of({"paths": ["path"], "urls": ["url"], "numbers": ["n"], "queries": ["q"], "commands": ["command"]})
    assert normal(arguments, rules=rules) == {
        "path": "$ROOT/a", "url": "http://x.com/", "n": 10, "q": "two words", "command": "ls  -l",
    }  # fmt: skip
    assert normal({"path": ["./a", 3, "b"]}, rules=rules) == {"path": ["$ROOT/a", 3, "$ROOT/b"]}


def test_a_schema_says_what_numbers_addresses_and_defaults_are() -> None:
    schema = {"properties": {"n": {"type": "integer"}, "u": {"format": "uri"}, "limit": {"default": 10}}}
    rules = rules_of({}, schema)
    assert normal({"n": "7", "u": "HTTPS://A.b", "limit": 10}, rules=rules) == {"n": 7, "u": "https://a.b/"}
    with pytest.raises(ValueError, match="unknown rules"):
        rules_of({"pathes": []})


def test_a_query_loses_case_and_spacing_alone() -> None:
    assert query("  Django\tRLS  How? ") == "django rls how?"
    assert query("Jaguar NOT car") == "jaguar NOT car" != query("jaguar not car"), "an operator is no word"


@pytest.mark.parametrize(("text", "expected"), [(" ls\r\n", "ls"), ("ls a\\ ", "ls a\\ "), ("ls\u00a0", "ls\u00a0")])
def test_a_command_loses_what_a_shell_takes_for_space(text: str, expected: str) -> None:
    assert command(text) == expected


@pytest.mark.parametrize(
    ("default", "given", "is_default"),
    [
        (10, 10.0, True), (True, 1, False), ([1], [True], False), ({"a": [0]}, {"a": [False]}, False),
        ({"a": [1.0]}, {"a": [1]}, True), ("1", 1, False), (None, False, False), ([1], [1, 1], False),
        (0.1, fraction("0.10000000000000000000001"), False),
    ],
)  # fmt: skip
def test_only_what_is_the_default_is_left_out(default: Any, given: Any, is_default: bool) -> None:
    assert normal({"n": given}, rules=Rules(defaults={"n": default})) == ({} if is_default else {"n": exact(given)})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("https://u:p@x.com/", True),
        ("https://x.com/?token=abc", True),
        ({"a": ["see https://x.com/?a=1&X-Amz-Signature=2"]}, True),
        ("https://x.com/#access_token=x", True),
        ("https://x.com/?to%6ben=abc", True),
        ("https://x.com/?a=1;private_token=abc", True),
        ("https://x.com/?user[password]=x", True),
        ("https://x.com/?apiKey=x", True),
        ("https://x.com/?PRIVATE-TOKEN=x", True),
        ("https://x.com/?key=AIzaSyD9k3bQ0x8Zz71Lm5T", True),
        ("https://x.com/callback?code=4f2&state=9", True),
        ("https://x.com/?page=2&tokens=3&max_tokens=4", False),
        ("https://x.com/?key=name&code=US&author=Pat-Smith&passage=3&pageToken=abc", False),
        ("user@x.com", False),
        ("http://[bad", False),
    ],
)
def test_addresses_with_secrets(value: Any, expected: bool) -> None:
    assert carries_secret(value) is expected
