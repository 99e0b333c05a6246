"""Where threads and triggers of GitHub and GitLab are on the web, and that nobody leads a reader elsewhere."""

import re
from typing import Any

import pytest

from memory.graph import addresses

GITHUB = {"repository": {"full_name": "acme/payments", "html_url": "https://github.com/acme/payments"}}
OWN = {"repository": {"full_name": "acme/payments", "html_url": "https://git.acme.test/acme/payments"}}
GITLAB = {"project": {"path_with_namespace": "acme/pay/api", "web_url": "https://git.acme.test/lab/acme/pay/api"}}


def keyed(key: str) -> re.Match[str]:
    found = addresses.read(key)
    assert found, key
    return found


def url(page: addresses.Page | None) -> str:
    return page.url if page else ""


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("github:acme/payments#412", "https://github.com/acme/payments/issues/412"),
        ("github:acme/payments@" + "a" * 40, "https://github.com/acme/payments/commit/" + "a" * 40),
        ("github:acme/payments@refs/heads/fix/x", "https://github.com/acme/payments/tree/fix/x"),
        ("github:acme/payments", "https://github.com/acme/payments"),
        ("gitlab:acme/pay/api!7", "https://gitlab.com/acme/pay/api/-/merge_requests/7"),
        ("gitlab:acme/pay/api#7", "https://gitlab.com/acme/pay/api/-/issues/7"),
    ],
)
def test_a_key_alone_leads_to_the_host_that_all_know(key: str, expected: str) -> None:
    assert url(addresses.page_of_thread(keyed(key), {})) == expected


def test_a_proven_payload_says_which_server_and_which_kind_of_page() -> None:
    pull = {"pull_request": {"number": 412, "html_url": "https://github.com/acme/payments/pull/412"}}
    assert url(addresses.page_of_thread(keyed("github:acme/payments#412"), GITHUB | pull)).endswith("/pull/412")
    assert url(addresses.page_of_thread(keyed("github:acme/payments#413"), GITHUB | pull)).endswith("/issues/413")
    assert url(addresses.page_of_thread(keyed("github:acme/payments#4"), OWN)).startswith("https://git.acme.test/acme/")
    assert url(addresses.page_of_thread(keyed("gitlab:acme/pay/api!7"), GITLAB)) == (
        "https://git.acme.test/lab/acme/pay/api/-/merge_requests/7"
    )


@pytest.mark.parametrize(
    "key",
    [
        "github:../evil#1", "github:acme/..#1", "github:acme/payments#412?x", "github:acme/payments#0",
        "github:acme//evil.test#1", "github:acme", "github:javascript:alert(1)#1", "jira:PAY-7", "github:a/b#1\n",
        "github:acme/pay ments#1", "github:acme/payments/runs/7", "gitlab:acme/pay/releases/v1",
        "github:acme/päy#1", "Github:acme/payments#1",
    ],
)  # fmt: skip
def test_other_keys_lead_nowhere(key: str) -> None:
    assert addresses.read(key) is None


EVIL = [
    "javascript:alert(1)//github.com/acme/payments/pull/1",
    "http://github.com/acme/payments/pull/1",
    "https://github.com.evil.test/acme/payments/pull/1",
    "https://github.com@evil.test/acme/payments/pull/1",
    "https://evil.test/acme/payments/pull/1",
    "https://github.com/acme/payments/../../evil/x/pull/1",
    "https://github.com/acme/payments-evil/pull/1",
    'https://github.com/acme/payments/"onclick="x',
    "https://github.com/acme/payments/pull/1\nx",
    "//github.com/acme/payments/pull/1",
    "data:text/html,x",
]


@pytest.mark.parametrize("said", EVIL)
@pytest.mark.parametrize("is_proven", [True, False])
def test_an_address_of_another_place_is_never_taken(said: str, is_proven: bool) -> None:
    body: dict[str, Any] = GITHUB | {"comment": {"html_url": said}, "pull_request": {"number": 412, "html_url": said}}
    key = keyed("github:acme/payments#412")
    assert addresses.page_of_trigger(key, body, is_proven=is_proven) is None
    assert url(addresses.page_of_thread(key, body)) == "https://github.com/acme/payments/issues/412"


@pytest.mark.parametrize(
    "home",
    [
        "http://github.com/acme/payments",
        "https://u:p@evil.test/acme/payments",
        "https://evil.test/x?/acme/payments",
        "javascript:/acme/payments",
        "https://evil/acme/payments",
    ],
)
def test_a_home_that_is_none_is_the_one_that_all_know(home: str) -> None:
    body = {"repository": {"full_name": "acme/payments", "html_url": home}}
    assert url(addresses.page_of_thread(keyed("github:acme/payments#1"), body)).startswith("https://github.com/")


def test_whose_sender_is_not_proven_names_no_server_of_its_own() -> None:
    body = OWN | {"comment": {"html_url": "https://git.acme.test/acme/payments/pull/412#issuecomment-1"}}
    key = keyed("github:acme/payments#412")
    assert url(addresses.page_of_trigger(key, body, is_proven=True)).endswith("#issuecomment-1")
    assert addresses.page_of_trigger(key, body, is_proven=False) is None


def test_the_most_particular_page_is_a_trigger_s_own() -> None:
    pull = "https://github.com/acme/payments/pull/412"
    body = GITHUB | {"pull_request": {"html_url": pull}, "review": {"html_url": f"{pull}#pullrequestreview-9"}}
    assert url(addresses.page_of_trigger(keyed("github:acme/payments#412"), body, is_proven=True)).endswith("-9")
    note = GITLAB | {"object_attributes": {"url": "https://git.acme.test/lab/acme/pay/api/-/issues/7#note_1"}}
    assert url(addresses.page_of_trigger(keyed("gitlab:acme/pay/api#7"), note, is_proven=True)).endswith("#note_1")
    job = GITLAB | {"build_id": 55}
    assert url(addresses.page_of_trigger(keyed("gitlab:acme/pay/api!7"), job, is_proven=True)).endswith("/-/jobs/55")


def test_after_a_rename_the_new_name_is_a_page_of_it_too() -> None:
    body = {
        "repository": {"full_name": "acme/pay", "html_url": "https://github.com/acme/pay"},
        "comment": {"html_url": "https://github.com/acme/pay/pull/412#issuecomment-2"},
    }
    assert url(addresses.page_of_trigger(keyed("github:acme/payments#412"), body, is_proven=True)).endswith("-2")
