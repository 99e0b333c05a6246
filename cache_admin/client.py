#!/usr/bin/env python3
"""Team Memory's client for tool authors: one file, Python 3.8 or newer, nothing to install beside it.

    from team_memory import cached, files, tree

    @cached("read_file", content=files("path"))       # until the bytes of the file change
    def read_file(path): ...

    @cached("run_tests", content=tree())              # until anything in the git checkout changes
    def run_tests(target="all"): ...

    @cached("get_exchange_rate")                      # as long as the team's policy says
    async def get_exchange_rate(pair): ...

Whether a tool is cached, for how long and for whom is decided by the team's policy on the server, not here. Where the
server is away, slow, or says what makes no sense, the tool runs as if it were not decorated: nothing here raises.
Address and key come from TEAM_MEMORY_URL and TEAM_MEMORY_KEY, else from the file that `hook.py install` wrote.

Sections: digests · where to · wire · cache · one call · decorator.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import http.client
import inspect
import json
import logging
import os
import random
import re
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse
import urllib.request
import uuid
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

VERSION = "1"
MOST_BYTES = 30 * 1024 * 1024
AT_ONCE = 1000
log = logging.getLogger("team_memory")
__all__ = ["Cache", "cached", "content_digest", "file_digest", "files", "tree", "tree_digest"]


# --- digests ---------------------------------------------------------------------------------------------------------


def content_digest(content: bytes) -> str:
    """`sha256:…` of bytes."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def file_digest(path: str) -> str:
    """`sha256:…` of a file's bytes."""
    whole = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            whole.update(block)
    return "sha256:" + whole.hexdigest()


def tree_digest(folder: str = ".") -> str:
    """`sha256:…` of what a git checkout holds: its tree, and every changed or new file as it is now.

    The same as `hook.py digest`. Ignored files do not count. Raises OSError where there is no repository or no git.
    """
    top = os.fsdecode(_git(folder, "rev-parse", "--show-toplevel")).rstrip("\r\n")
    try:
        head = _git(folder, "rev-parse", "HEAD^{tree}").strip()
    except OSError:
        head = b"empty"
    whole = hashlib.sha256(b"tree " + head + b"\n")
    named = ["--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=none"]
    changed = {one[3:] for one in _git(top, "status", *named).split(b"\0") if len(one) > 3}
    # Git does not look at files that somebody told it to take for unchanged; they may be changed all the same.
    unseen = (one for one in _git(top, "ls-files", "-v", "-z").split(b"\0") if one[:1].islower() or one[:1] == b"S")
    changed.update(one[2:] for one in unseen if os.path.lexists(os.path.join(top, os.fsdecode(one[2:]))))
    for name in sorted(changed):
        whole.update(b"%d:" % len(name) + name + b"=" + _state_of(os.path.join(top, os.fsdecode(name))) + b"\n")
    return "sha256:" + whole.hexdigest()


def _state_of(path: str) -> bytes:
    if os.path.islink(path):
        return b"link " + os.fsencode(os.readlink(path))
    if os.path.isdir(path):
        return b"repository " + tree_digest(path).encode("ascii")
    try:
        return (b"x " if os.access(path, os.X_OK) else b"- ") + file_digest(path).encode("ascii")
    except FileNotFoundError:
        return b"gone"


def _git(folder: str, *arguments: str) -> bytes:
    settings = ["-c", "core.quotepath=off", "-c", "core.fsmonitor=false", "--no-optional-locks"]
    command = ["git", "-C", folder, *settings, *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        raise OSError(done.stderr.decode("utf-8", "replace").strip() or f"git ended with {done.returncode}")
    return done.stdout


def _is_covered(folder: str, named: Iterable[str]) -> bool:
    """Whether the digest of a folder's checkout changes with all that lies at these paths."""
    paths = sorted({os.path.realpath(one) for one in named})
    if not paths:
        return True
    top = os.path.realpath(os.fsdecode(_git(folder, "rev-parse", "--show-toplevel")).rstrip("\r\n"))
    below = [os.path.relpath(path, top).split(os.sep) if _is_below(path, top) else [".."] for path in paths]
    if any(parts[0] == ".." or ".git" in parts for parts in below):
        return False
    # 1: none of them is ignored. Where git does not know (a path within a submodule), neither do we.
    command = ["git", "-C", top, "--no-optional-locks", "check-ignore", "-q", "--", *paths]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 1  # noqa: S603


def _is_below(path: str, top: str) -> bool:
    return os.path.join(path, "").startswith(os.path.join(top, ""))


def _named_paths(value: Any) -> Iterator[str]:
    """What in an argument is the path of something that is there; of a pattern, the folder it begins in."""
    if isinstance(value, (list, tuple, set, frozenset)):
        for one in value:
            yield from _named_paths(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _named_paths(one)
    elif isinstance(value, (str, os.PathLike)):
        text = os.path.expanduser(str(value))
        start = re.split(r"[*?\[{]", text, maxsplit=1)[0]
        for one in (text, os.path.dirname(start) if start != text else ""):
            # "/[a-z]+" is an expression rather than a pattern of all that a machine holds.
            if one and (one == text or one != os.sep) and len(one) < 4096 and not set(one) & {"\0", "\n"}:
                with contextlib.suppress(OSError, ValueError):
                    if os.path.lexists(one):
                        yield one


class files:
    """The digest of the files that these arguments name (texts, or lists of them); a folder counts as its checkout.

    A folder that git ignores has none: the tool runs uncached.
    """

    def __init__(self, *names: str) -> None:
        self.names = names

    def __call__(self, arguments: Mapping[str, Any]) -> str:
        given = [arguments[name] for name in self.names]
        paths = [os.fspath(one) for value in given for one in (value if isinstance(value, (list, tuple)) else [value])]
        if not all(_is_covered(path, [path]) for path in paths if os.path.isdir(path)):
            return ""
        digests = [tree_digest(path) if os.path.isdir(path) else file_digest(path) for path in paths]
        return digests[0] if len(digests) == 1 else content_digest("\n".join(digests).encode())


class tree:
    """The digest of the git checkout around a folder: the one that an argument names, else the current one.

    Where an argument names what the digest does not see (outside of the checkout, ignored by git, in `.git`), there is
    none: the tool runs uncached.
    """

    def __init__(self, name: str = "") -> None:
        self.names = (name,) if name else ()

    def __call__(self, arguments: Mapping[str, Any]) -> str:
        folder = os.fspath(arguments[self.names[0]] or ".") if self.names else "."
        return tree_digest(folder) if _is_covered(folder, _named_paths(dict(arguments))) else ""


# --- where to --------------------------------------------------------------------------------------------------------


def _target(root: str) -> tuple[str, str] | None:
    """Address and key: of the environment or the user's own file, never of a project's files."""
    url, key = os.environ.get("TEAM_MEMORY_URL", "").strip(), os.environ.get("TEAM_MEMORY_KEY", "").strip()
    if not (url and key):
        kept = _credentials()
        projects = kept.get("projects")
        projects = projects if isinstance(projects, dict) else {}
        below = [folder for folder in projects if os.path.join(root, "").startswith(os.path.join(folder, ""))]
        found = projects[max(below, key=len)] if below else kept.get("default")
        found = found if isinstance(found, dict) else {}
        url, key = str(found.get("url", "")), str(found.get("key", ""))
    is_fit = url.startswith(("http://", "https://")) and key and not any(one.isspace() for one in url + key)
    return (url.rstrip("/"), key) if is_fit else None


def _credentials() -> dict[str, Any]:
    if os.name == "nt":
        base = os.environ.get("APPDATA") or os.path.join(os.path.expanduser("~"), "AppData", "Roaming")
    else:
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    path = os.path.join(base, "team-memory", "credentials.json")
    try:
        seen = os.stat(path)
        if os.name != "nt" and (seen.st_uid not in (os.getuid(), 0) or seen.st_mode & 0o077):
            return {}
        with open(path, encoding="utf-8-sig") as file:
            kept = json.load(file)
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _top(folder: str) -> str:
    """The real folder of the checkout around a folder; the folder itself where there is none."""
    here = folder = os.path.realpath(folder)
    while not os.path.exists(os.path.join(here, ".git")):
        here, before = os.path.dirname(here), here
        if here == before:
            return folder
    return here


def _project(root: str) -> str:
    """The checkout's remote without a login in it, else its folder's name."""
    try:
        remote = _git(root, "config", "--get", "remote.origin.url").decode("utf-8", "replace").strip()
    except OSError:
        remote = ""
    if "://" in remote and "@" in remote.split("://")[1].split("/")[0]:
        scheme, rest = remote.split("://", 1)
        remote = scheme + "://" + rest.split("@", 1)[1]
    return remote or os.path.basename(root)


# --- wire ------------------------------------------------------------------------------------------------------------


class _Away(Exception):
    """The server gave no answer that can be used. `pause`: seconds in which to leave it alone."""

    def __init__(self, why: str, pause: float = 0.0) -> None:
        super().__init__(why)
        self.pause = pause


class _Wire:
    """Requests to one server: a connection kept for each thread, none longer than its time, no redirects."""

    def __init__(self, url: str, key: str) -> None:
        self.parts = urllib.parse.urlsplit(url)
        self.key = key
        self._own = threading.local()

    def send(self, method: str, path: str, body: Any, wait: float, key: str = "") -> tuple[int, bytes]:
        """Status and body. Raises _Away. A connection that the server let go since its last use is tried anew, once."""
        data = None if body is None else json.dumps(body, allow_nan=False).encode()
        headers = {"Authorization": f"Bearer {self.key}", "User-Agent": f"team-memory-python/{VERSION}"}
        headers.update({"Content-Type": "application/json"} if data else {})
        headers.update({"Idempotency-Key": key} if key else {})
        until = time.monotonic() + wait
        for is_last in (False, True):
            connection, is_used = self._connection(wait)
            try:
                return self._sent(connection, method, self.parts.path + path, data, headers, until)
            except (OSError, http.client.HTTPException) as fault:
                self._drop()
                let_go = isinstance(fault, (ConnectionError, http.client.BadStatusLine)) and time.monotonic() < until
                if is_last or not is_used or not let_go:
                    raise _Away(f"{type(fault).__name__}: {fault}") from None
            except BaseException:
                # What is left of this answer must not be read as the next one's.
                self._drop()
                raise
        raise AssertionError("unreachable")

    def _sent(
        self, connection: Any, method: str, path: str, data: bytes | None, headers: dict[str, str], until: float
    ) -> tuple[int, bytes]:
        is_new = connection.sock is None
        if is_new:
            connection.connect()
            connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # A socket's own timeout begins again with every byte: a server that drips would hold the tool for ever.
        watch = threading.Timer(max(0.0, until - time.monotonic()), _cut, (connection.sock,))
        watch.daemon = True
        watch.start()
        try:
            connection.request(method, path, data, headers)
            got = connection.getresponse()
            text = got.read(MOST_BYTES + 1)
            if len(text) > MOST_BYTES or not got.isclosed():
                self._drop()
                raise _Away("the answer is too long")
            if got.status == 429 or got.status >= 500 or got.status in (401, 403):
                told = got.headers.get("Retry-After", "")
                pause = min(60.0, float(told)) if told.isdigit() else 60.0 if got.status in (401, 403) else 0.0
                raise _Away(f"status {got.status}", pause)
            return int(got.status), bytes(text)
        finally:
            watch.cancel()

    def _connection(self, wait: float) -> tuple[Any, bool]:
        """This thread's connection, never one that a parent process uses too, and whether it was used before."""
        kept, owner = getattr(self._own, "kept", (None, 0))
        if kept is not None and owner == os.getpid() and kept.sock is not None:
            kept.sock.settimeout(wait)
            return kept, True
        host, port = self.parts.hostname or "", self.parts.port
        proxy = urllib.request.getproxies().get(self.parts.scheme, "")
        is_near = host in ("localhost", "::1") or host.startswith("127.") or urllib.request.proxy_bypass(host)
        secure = self.parts.scheme == "https"
        if proxy and not is_near and secure:
            through = urllib.parse.urlsplit(proxy if "://" in proxy else "http://" + proxy)
            kept = http.client.HTTPSConnection(
                through.hostname or "", through.port, timeout=wait, context=ssl.create_default_context()
            )
            kept.set_tunnel(host, port)
        elif secure:
            kept = http.client.HTTPSConnection(host, port, timeout=wait, context=ssl.create_default_context())
        else:
            kept = http.client.HTTPConnection(host, port, timeout=wait)
        self._own.kept = (kept, os.getpid())
        return kept, False

    def _drop(self) -> None:
        kept, owner = getattr(self._own, "kept", (None, 0))
        self._own.kept = (None, 0)
        if kept is not None and owner == os.getpid():
            kept.close()


def _cut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


# --- cache -----------------------------------------------------------------------------------------------------------


class Cache:
    """The team's caches. Every method gives None (or all misses) where the server is away; none raises for it.

    `root` is the folder below which paths are shared between machines; `stats` counts what became of calls.
    """

    def __init__(
        self,
        url: str = "",
        key: str = "",
        *,
        root: str = "",
        project: str = "",
        scope: str = "",
        thread: str = "",
        session: str = "",
        environment: Mapping[str, Any] | None = None,
        timeout: float = 2.0,
    ) -> None:
        self.root = _top(root or os.getcwd())
        target = (url.rstrip("/"), key) if url and key else _target(self.root)
        self._wire = _Wire(*target) if target else None
        given = {"scope": scope, "thread": thread, "session": session}
        self.context: dict[str, Any] = {"project": project or _project(self.root), "root": self.root}
        self.context.update({name: value for name, value in given.items() if value})
        self.environment = dict(environment or {})
        self.timeout = timeout
        self.stats: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._faults, self._closed_until = 0, 0.0

    def lookup(self, tool: str, arguments: Mapping[str, Any], **more: Any) -> dict[str, Any] | None:
        """The server's answer to one call, as `POST /cache/tools/lookup` describes it."""
        environment = {**self.environment, **(more.pop("environment", None) or {})}
        context = {**self.context, **({"environment": environment} if environment else {}), **more.pop("context", {})}
        body = {"tool": tool, "arguments": arguments, "context": context, **more}
        return self._json("POST", "/cache/tools/lookup", body)

    def store(self, key: str, lease: str, result: Any, **more: Any) -> dict[str, Any] | None:
        """Keep what a tool answered, under the lease of its lookup."""
        return self._json("PUT", f"/cache/tools/{key}", {"lease": lease, "result": result, **more}, again=True)

    def analyses(self, wanted: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """One answer for each, in order: `{"status": "hit", "analysis": …}` or `{"status": "miss"}`."""
        found: list[dict[str, Any]] = []
        for start in range(0, len(wanted), AT_ONCE):
            some = list(wanted[start : start + AT_ONCE])
            body = {"items": some, "context": {"project": self.context["project"]}}
            said = (self._json("POST", "/cache/analyses/lookup", body) or {}).get("items")
            fits = isinstance(said, list) and len(said) == len(some)
            found += said if fits and isinstance(said, list) else [{"status": "miss", "reason": "away"} for _ in some]
        return found

    def store_analysis(
        self, content_hash: str, analysis_type: str, version: str, analysis: Any, **more: Any
    ) -> dict[str, Any] | None:
        """Keep the analysis of a content; `more`: parameters, model, prompt, path, duration_ms."""
        body = {"version": version, "analysis": analysis, "context": {"project": self.context["project"]}, **more}
        names = (urllib.parse.quote(name, safe="") for name in (content_hash, analysis_type))
        return self._json("PUT", "/cache/analyses/" + "/".join(names), body, again=True)

    def analyse(
        self, paths: Iterable[str], analysis_type: str, version: str, run: Callable[[str], Any], **more: Any
    ) -> dict[str, Any]:
        """The analysis of each file: of the team's where the content was analysed before, else by `run(path)`."""
        known = [(path, file_digest(path)) for path in paths]
        asked = {"analysis_type": analysis_type, "version": version, **more}
        wanted = [{**asked, "content_hash": digest, "path": self.below(path)} for path, digest in known]
        found: dict[str, Any] = {}
        for (path, digest), said in zip(known, self.analyses(wanted)):  # noqa: B905 - strict= is newer than 3.8
            if said.get("status") == "hit" and "analysis" in said:
                self.stats["hit"] += 1
                found[path] = said["analysis"]
                continue
            self.stats["miss"] += 1
            began = time.monotonic()
            found[path] = run(path)
            took = int((time.monotonic() - began) * 1000)
            if _is_plain(found[path]) and _still(path, digest):
                place = {"path": self.below(path), "duration_ms": took}
                self.store_analysis(digest, analysis_type, version, found[path], **more, **place)
        return found

    def below(self, path: str) -> str:
        """A path as it is below the root, with slashes; as it is where it lies elsewhere."""
        whole = os.path.realpath(path)
        base = os.path.join(self.root, "")
        return (whole[len(base) :] if whole.startswith(base) else whole).replace(os.sep, "/")

    def keep(self, content: Any, **more: Any) -> dict[str, Any] | None:
        """Keep a long result out of the context: `summary`, and the `result_id` to expand it by."""
        return self._json("POST", "/results", {"content": content, **more}, again=True)

    def expand(self, result_id: str, **parts: Any) -> str | None:
        """The text of a result, or a part of it: `lines="120-180"`, `grep="ERROR"`, `context=2`."""
        query = "?" + urllib.parse.urlencode(parts) if parts else ""
        text = self._text("GET", f"/results/{urllib.parse.quote(result_id, safe='')}{query}", None)
        return None if text is None else text.decode("utf-8", "replace")

    def usage(self, message_id: str, model: str, usage: Mapping[str, Any], **more: Any) -> dict[str, Any] | None:
        """What a model call took, in the provider's own figures; `more`: harness, at."""
        body = {"message_id": message_id, "model": model, "usage": usage, **more}
        return self._json("POST", "/usage", body, again=True)

    def stale(self, detail: str = "", **what: str) -> dict[str, Any] | None:
        """Say that an answer (`result_id` or `key`) was stale or, with `kind="wrong"`, wrong; it is dropped."""
        return self._json("POST", "/cache/incidents", {"detail": detail, **what}, again=True)

    def invalidate(self, **what: Any) -> dict[str, Any] | None:
        """Drop stored answers: `paths` (below the root), `tool`, `project`, `content_hash` or `key`."""
        body = {**what, **({"root": self.root} if "paths" in what else {})}
        return self._json("POST", "/cache/invalidate", body, again=True)

    def _json(self, method: str, path: str, body: Any, *, again: bool = False) -> dict[str, Any] | None:
        text = self._text(method, path, body, again=again)
        if text is None:
            return None
        try:
            said = json.loads(text.decode("utf-8"))
        except (ValueError, RecursionError) as fault:
            self._fault(fault)
            return None
        return said if isinstance(said, dict) else None

    def _text(self, method: str, path: str, body: Any, *, again: bool = False) -> bytes | None:
        """The body of a good answer. What writes may be sent again under its key, once; nothing else is."""
        if self._wire is None or time.monotonic() < self._closed_until:
            return None
        key = uuid.uuid4().hex if again and method == "POST" else ""
        for is_last in (not again, True):
            try:
                status, text = self._wire.send(method, "/api/v1" + path, body, self.timeout, key)
                self._faults = 0
                if 200 <= status < 300:
                    return text
                log.info("%s %s: %s %s", method, path, status, text[:300].decode("utf-8", "replace"))
                return None
            except _Away as fault:
                if is_last or fault.pause:
                    self._fault(fault)
                    return None
            except Exception as fault:  # whatever it is, the tool has to run
                self._fault(fault)
                return None
        return None

    def _fault(self, fault: Exception) -> None:
        """After two faults in a row the server is left alone for a while: a tool must not wait for it each time."""
        with self._lock:
            self._faults += 1
            pause = 5.0 * 2 ** min(self._faults - 2, 3) if self._faults > 1 else 0.0
            self._closed_until = time.monotonic() + max(pause, getattr(fault, "pause", 0.0))
        self.stats["fault"] += 1
        (log.warning if self._faults == 1 else log.debug)("the cache is passed by: %s", fault)


def _still(path: str, digest: str) -> bool:
    try:
        return file_digest(path) == digest
    except OSError:
        return False


def _is_plain(value: Any) -> bool:
    """Whether JSON gives the very same value back: a hit must be what the tool would have returned."""
    if value is None or type(value) in (bool, int):
        return True
    if type(value) is float:
        return value == value and value not in (float("inf"), float("-inf"))
    if type(value) is str:
        return "\0" not in value and (value.isascii() or not any("\ud800" <= one <= "\udfff" for one in value))
    if type(value) is list:
        return all(_is_plain(one) for one in value)
    return type(value) is dict and all(
        type(name) is str and _is_plain(name) and _is_plain(value[name]) for name in value
    )


# --- one call --------------------------------------------------------------------------------------------------------


class _Tool:
    """What a decorated function said of itself."""

    def __init__(self, name: str, run: Callable[..., Any], options: Mapping[str, Any]) -> None:
        self.name, self.signature = name, inspect.signature(run)
        self.content, self.arguments = options["content"], options["arguments"]
        self.encode, self.decode = options["encode"], options["decode"]
        self.lease_s, self.wait_s = int(options["lease_s"]), float(options["wait_s"])
        # Another text of the function may answer otherwise: without a version of the author's, its source is one.
        version = options["version"] or _source_digest(run)
        more = {name: options[name] for name in ("server", "environment", "hints")}
        more.update({"version": version, "lease_s": self.lease_s, "want": "result"})
        self.more = {name: value for name, value in more.items() if value}


def _source_digest(run: Callable[..., Any]) -> str:
    """Of the text of a function, and of the plain values that it was made with: one text may make two tools."""
    try:
        text = inspect.getsource(run)
    except (OSError, TypeError):
        return ""
    made_with = []
    for name, cell in zip(run.__code__.co_freevars, run.__closure__ or ()):  # noqa: B905 - strict= is newer than 3.8
        with contextlib.suppress(ValueError):
            if isinstance(cell.cell_contents, (str, bytes, int, float, bool, type(None))):
                made_with.append(f"{name}={cell.cell_contents!r}")
    return content_digest("\n".join([text, *made_with]).encode("utf-8", "replace"))


class _Call:
    """One call on its way: asked, perhaps waited for, run, and told what came out."""

    def __init__(self, cache: Cache, tool: _Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.cache, self.tool = cache, tool
        self.args, self.kwargs = args, kwargs
        self.is_hit, self.value = False, None
        self.key, self.lease, self.digest = "", "", ""
        self.body: dict[str, Any] = {}
        self.began = self.asked_at = time.monotonic()
        self._lock, self._over = threading.Lock(), threading.Event()

    def look(self) -> float | None:
        """Ask: gives the seconds after which to ask again, or None where it is decided. Never raises."""
        try:
            return self._look()
        except Exception as fault:
            self.cache.stats["fault"] += 1
            log.debug("the cache is passed by: %s", fault)
            self.lease = ""
            return None

    def _look(self) -> float | None:
        # Asked again after a wait, the content may be another.
        self.body = self._body()
        said = self.cache.lookup(self.tool.name, **self.body)
        status = str(said.get("status")) if said else "away"
        if said is None or status not in ("hit", "miss", "wait", "bypass"):
            self.cache.stats["away"] += 1
            return None
        if status == "wait":
            if time.monotonic() - self.asked_at < self.tool.wait_s:
                # A little apart, so that all who wait do not come back at once.
                return min(2.0, max(0.02, float(said.get("retry_after") or 0.5))) * random.uniform(1.0, 1.2)  # noqa: S311
            status = "gave_up"
        self.key, self.lease = str(said.get("key") or ""), str(said.get("lease") or "")
        if status == "hit" and self.lease and said.get("revalidate") is True:
            status = "shadow"
        elif status == "hit":
            status = "hit" if self._taken(said) else "away"
        self.cache.stats[status] += 1
        return None

    def _taken(self, said: Mapping[str, Any]) -> bool:
        self.lease = ""
        if "result" not in said:
            return False
        self.value = self.tool.decode(said["result"]) if self.tool.decode else said["result"]
        self.is_hit = True
        return True

    def _body(self) -> dict[str, Any]:
        bound = self.tool.signature.bind(*self.args, **self.kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)
        content = self.tool.content
        self.digest = str(content(given) or "") if content else ""
        if content and not self.digest:
            raise ValueError("no digest of the content")
        if self.tool.arguments:
            given = dict(self.tool.arguments(given))
        for name in getattr(content, "names", ()):
            if name in given:
                given[name] = _real(given[name])
        given = {name: list(value) if type(value) is tuple else value for name, value in given.items()}
        if not _is_plain(given):
            raise ValueError("arguments that JSON can't hold")
        more = dict(self.tool.more)
        # Where it stands a tool reads "." and "tests"; only of the files that `files` names do we know the whole path.
        here = "" if isinstance(content, files) else self.cache.below(os.getcwd())
        if here and os.path.realpath(os.getcwd()) != self.cache.root:
            more["environment"] = {"cwd": here, **(more.get("environment") or {})}
        return {"arguments": given, **({"content_hash": self.digest} if self.digest else {}), **more}

    def begin(self) -> None:
        """The tool runs now; as long as it does, its lease is made to last."""
        self.began = time.monotonic()
        if self.lease:
            threading.Thread(target=self._beat, daemon=True).start()

    def _beat(self) -> None:
        while not self._over.wait(self.tool.lease_s / 3):
            said = self.cache.lookup(self.tool.name, **{**self.body, "lease": self.lease})
            with self._lock:
                if said and said.get("key") == self.key and said.get("lease") and not self._over.is_set():
                    self.lease = str(said["lease"])

    def done(self, value: Any) -> None:
        """Keep what the tool answered. Never raises."""
        try:
            lease = self._end()
            if not lease:
                return
            kept = self.tool.encode(value) if self.tool.encode else value
            if not _is_plain(kept) or len(json.dumps(kept)) > MOST_BYTES:
                self._give_back(lease)
                return
            more: dict[str, Any] = {"duration_ms": int((time.monotonic() - self.began) * 1000)}
            if self.digest:
                more["content_hash"] = self._body()["content_hash"]
            said = self.cache.store(self.key, lease, kept, **more)
            if said and said.get("stored") is True:
                self.cache.stats["stored"] += 1
        except Exception as fault:
            log.debug("the answer is not kept: %s", fault)

    def failed(self) -> None:
        """The tool raised: whoever waits for it runs it at once. Never raises."""
        try:
            lease = self._end()
            if lease:
                self._give_back(lease)
        except Exception as fault:
            log.debug("the lease is not given back: %s", fault)

    def _end(self) -> str:
        with self._lock:
            self._over.set()
            return self.lease

    def _give_back(self, lease: str) -> None:
        self.cache.store(self.key, lease, "", is_error=True)


def _real(value: Any) -> Any:
    """The real path, whatever link it was named by."""
    if isinstance(value, (list, tuple)):
        return [_real(one) for one in value]
    return os.path.realpath(os.fspath(value)) if isinstance(value, (str, os.PathLike)) and value else value


# --- decorator -------------------------------------------------------------------------------------------------------

_default: dict[int, Cache] = {}


def _cache_of(given: Any) -> Cache:
    """The cache that was given, or the one of the current folder, made when a tool is first called."""
    found = given() if callable(given) else given
    if found is None:
        found = _default.get(os.getpid()) or _default.setdefault(os.getpid(), Cache())
    return found  # type: ignore[no-any-return] # what was given, as its author says


def cached(
    tool: str,
    *,
    cache: Any = None,
    content: Callable[[Mapping[str, Any]], str | None] | None = None,
    arguments: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
    version: str = "",
    server: str = "",
    environment: Mapping[str, Any] | None = None,
    hints: Mapping[str, Any] | None = None,
    encode: Callable[[Any], Any] | None = None,
    decode: Callable[[Any], Any] | None = None,
    lease_s: int = 15,
    wait_s: float = 120.0,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator: the team's stored answer where there is one, else the function runs, once for all who ask.

    `content` gives the digest of what the function reads (`files`, `tree`, or your own, of the arguments by name);
    where it gives none, the function runs uncached. `arguments` says what tells calls apart, if not all arguments do.
    Results that are not plain JSON are kept only with `encode` and `decode`. An exception is never kept.
    """
    options = {
        "content": content, "arguments": arguments, "version": version, "server": server, "environment": environment,
        "hints": hints, "encode": encode, "decode": decode, "lease_s": lease_s, "wait_s": wait_s,
    }  # fmt: skip

    def around(run: Callable[..., Any]) -> Callable[..., Any]:
        if inspect.isgeneratorfunction(run) or inspect.isasyncgenfunction(run):
            raise TypeError("what is made piece by piece can't be kept: return the whole")
        about = _Tool(tool, run, options)

        @functools.wraps(run)
        def once(*args: Any, **kwargs: Any) -> Any:
            call = _new_call(cache, about, args, kwargs)
            if call is None:
                return run(*args, **kwargs)
            pause = call.look()
            while pause is not None:
                time.sleep(pause)
                pause = call.look()
            if call.is_hit:
                return call.value
            call.begin()
            try:
                value = run(*args, **kwargs)
            except BaseException:
                call.failed()
                raise
            call.done(value)
            return value

        @functools.wraps(run)
        async def once_async(*args: Any, **kwargs: Any) -> Any:
            aside = functools.partial(asyncio.get_running_loop().run_in_executor, None)
            call = await aside(_new_call, cache, about, args, kwargs)
            if call is None:
                return await run(*args, **kwargs)
            pause = await aside(call.look)
            while pause is not None:
                await asyncio.sleep(pause)
                pause = await aside(call.look)
            if call.is_hit:
                return call.value
            call.begin()
            try:
                value = await run(*args, **kwargs)
            except BaseException:
                # Not awaited: a cancelled task may not wait.
                aside(call.failed)
                raise
            await aside(call.done, value)
            return value

        return once_async if inspect.iscoroutinefunction(run) else once

    return around


def _new_call(cache: Any, tool: _Tool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Call | None:
    try:
        return _Call(_cache_of(cache), tool, args, kwargs)
    except Exception as fault:
        log.debug("the cache is passed by: %s", fault)
        return None
