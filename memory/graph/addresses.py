"""Where a thread or a trigger of GitHub or GitLab is on the web: its pull request, merge request, issue or check.

Keys and payloads are what callers say, so no address is taken as it stands. Its repository must be the one of the
thread, it must be https, and its host GitHub's or GitLab's own; another host, as of a server of one's own, is believed
only where the payload came by a webhook, whose sender has proved itself.
"""

import re
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

import orjson

from memory.graph import parts
from memory.graph.models import Part, Thread, Trigger
from memory.graph.summaries.line import word
from memory.problems import Problem

Body = dict[str, Any]

# A larger payload is a push of thousands of commits, and is not read for a link.
MOST_BYTES: Final = 512 * 1024
_LATEST: Final = 5
_HOSTS: Final = {"github": "github.com", "gitlab": "gitlab.com"}
_NAME: Final = r"(?!\.{1,2}(?![\w.-]))[\w.-]{1,100}"
# A repository of GitHub has two names; one of GitLab any number, so that `…/releases/v1` alone may be one as well.
_ABOUT: Final = (
    r"(?P<sign>[#!])(?P<number>[1-9]\d{0,8})|@(?P<sha>[0-9a-f]{40})|@refs/(?:heads|tags)/(?P<ref>[\w./+-]{1,150})"
)
_KEYS: Final = (
    re.compile(rf"(?P<source>github):(?P<repo>{_NAME}/{_NAME})(?:{_ABOUT})?", re.ASCII),
    re.compile(rf"(?P<source>gitlab):(?P<repo>{_NAME}(?:/{_NAME}){{1,8}})(?:{_ABOUT})", re.ASCII),
)
_HOST: Final = re.compile(r"[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,8}(?::\d{1,5})?")
_ADDRESS: Final = re.compile(r"[\w.~:/?#\[\]@!$&'()*+,;=%-]{1,1000}", re.ASCII)
# What a delivery is about, the most particular first.
_GITHUB: Final = (
    *(("comment", "html_url"), ("review", "html_url"), ("check_run", "html_url"), ("workflow_job", "html_url")),
    *(("workflow_run", "html_url"), ("release", "html_url"), ("alert", "html_url"), ("head_commit", "url")),
    *(("pull_request", "html_url"), ("issue", "html_url"), ("discussion", "html_url"), ("commit", "html_url")),
)
_GITLAB: Final = (("object_attributes", "url"), ("commit", "url"), ("url",))
_NUMBERED: Final = ("pull_request", "issue", "discussion")


@dataclass(frozen=True)
class Page:
    """An address on the web, and of whom: `github` or `gitlab`."""

    url: str
    source: str


@dataclass(frozen=True)
class _Place:
    """What a key names, and the address of its repository without a slash at its end; `now` is where a payload says
    it is, which after a rename is another.
    """

    key: re.Match[str]
    home: str
    now: str

    @property
    def source(self) -> str:
        return self.key["source"]

    def page(self, url: str) -> Page | None:
        """The address, where it is one of this repository."""
        is_ours = url.startswith((f"{self.home}/", f"{self.now}/"))
        return Page(url, self.source) if is_ours and _ADDRESS.fullmatch(url) and "/.." not in url else None


def of_thread(thread: Thread) -> Page | None:
    """The page of what a thread is about; None where it is of another source, or of nothing with a page."""
    key = read(thread.key or "")
    if key is None:
        return None
    latest = Trigger.objects.filter(thread=thread, deleted_at__isnull=True).order_by("-seq")[:_LATEST]
    proven = [trigger for trigger in latest if is_proven(trigger)]
    # All at once: the page costs the same, however many of them there are.
    stored = {part.trigger_id: part for part in _parts(proven)}
    bodies = (_object(stored.get(trigger.pk)) for trigger in proven)
    return page_of_thread(key, next((found for found in bodies if found is not None), {}))


def of_trigger(trigger: Trigger) -> Page | None:
    """The page of what a trigger itself is about: a comment, a check, a release. Its `thread` is loaded."""
    key = read(trigger.thread.key or "")
    body = body_of(trigger) if key else None
    return page_of_trigger(key, body, is_proven=is_proven(trigger)) if key and body else None


def read(key: str) -> re.Match[str] | None:
    """A thread's key in its pieces; None where it names nothing of GitHub or GitLab that has a page."""
    return next(filter(None, (pattern.fullmatch(key) for pattern in _KEYS)), None)


def is_proven(trigger: Trigger) -> bool:
    """Whether no agent's key sent it: a webhook did, with its signature, or whoever runs the server."""
    return not trigger.by


def body_of(trigger: Trigger) -> Body | None:
    """The JSON object that came with a trigger; None where there is none, or no longer, or a very large one."""
    return _object(next(iter(_parts([trigger])), None))


def _parts(of: list[Trigger]) -> list[Part]:
    return list(Part.objects.filter(trigger__in=of, name=parts.MAIN, size__lte=MOST_BYTES))


def _object(part: Part | None) -> Body | None:
    try:
        body = orjson.loads(parts.stored(part)) if part else None
    except (Problem, orjson.JSONDecodeError):
        return None
    return body if isinstance(body, dict) else None


def page_of_thread(key: re.Match[str], body: Body) -> Page | None:
    """The page a key names; `body` is a proven payload of its thread, or empty."""
    place = _place(key, body)
    for about in _NUMBERED:
        is_it = key["number"] and word(body, about, "number") == key["number"]
        if is_it and (page := place.page(word(body, about, "html_url"))):
            return page
    return place.page(f"{place.home}/{rest}") if (rest := _rest(key)) else Page(place.home, place.source)


def page_of_trigger(key: re.Match[str], body: Body, *, is_proven: bool) -> Page | None:
    """The page a payload names as its own."""
    place = _place(key, body if is_proven else {})
    for path in _GITHUB if place.source == "github" else _GITLAB:
        if page := place.page(word(body, *path)):
            return page
    job = word(body, "build_id")
    return place.page(f"{place.home}/-/jobs/{job}") if place.source == "gitlab" and job.isdecimal() else None


def _place(key: re.Match[str], body: Body) -> _Place:
    """Where the repository of a key is: where a proven payload says, else at the host that all know."""
    said = word(body, "repository", "html_url") if key["source"] == "github" else word(body, "project", "web_url")
    name = word(body, "repository", "full_name") or word(body, "project", "path_with_namespace")
    root = _root(said, name) or f"https://{_HOSTS[key['source']]}/"
    home = f"{root}{key['repo']}"
    return _Place(key, home, f"{root}{name}" if name else home)


def _root(said: str, name: str) -> str:
    """The address that a repository with this name stands under, with a slash at its end; "" where it is none of
    https.
    """
    url = said.rstrip("/")
    if not (name and url.startswith("https://") and url.endswith(f"/{name}") and _ADDRESS.fullmatch(url)):
        return ""
    split = urlsplit(url)
    is_plain = _HOST.fullmatch(split.netloc) and not (split.query or split.fragment) and "/.." not in url
    return url.removesuffix(name) if is_plain else ""


def _rest(key: re.Match[str]) -> str:
    """What stands behind the repository's address; "" for the repository itself."""
    dash = "-/" if key["source"] == "gitlab" else ""
    if key["number"]:
        # Of a pull request too: GitHub leads on from there.
        return f"{dash}{'merge_requests' if key['sign'] == '!' else 'issues'}/{key['number']}"
    if key["sha"]:
        return f"{dash}commit/{key['sha']}"
    return f"{dash}tree/{quote(key['ref'])}" if key["ref"] else ""
