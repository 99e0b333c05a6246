#!/usr/bin/env python3
"""Team Memory's hook client: one file, Python 3.8 or newer, nothing to install beside it.

    python3 hook.py install --client claude-code --url https://memory.example --key tm_live_...
    python3 hook.py uninstall | doctor | pause | resume | recall ID | search WORDS | delete-session ID | watch DIR
    python3 hook.py keep AGENTS.md | unkeep AGENTS.md

Coding agents call it as `hook.py --client X --event EVENT` with the hook's JSON on stdin. Called so, it always exits 0,
writes one JSON object or nothing to stdout and nothing to stderr. Start and prompt events wait for what the memory
tells, 1.5 s at most; every other event goes to a file, and a process of its own delivers it.

Sections: places · credentials · locks · redaction · git · ignore rules · spool · network · delivery · the hook ·
digests · watch · JSON with comments · configurations of harnesses · install and uninstall · kept files · doctor ·
commands.
"""

from __future__ import annotations

import time

STARTED_AT = time.time_ns()
STARTED = time.monotonic()

import json  # noqa: E402 - the clock starts first
import os  # noqa: E402
import re  # noqa: E402
import sys  # noqa: E402

TYPE_CHECKING = False  # typing itself takes 5 ms to import
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

VERSION = "1"
# What one waiting call may take, Python's own start included.
WAIT_SECONDS = 1.4
MAX_STDIN = 64 * 1024 * 1024
MAX_EVENT = 24 * 1024 * 1024
# Redacting and writing more than this takes longer than a harness should wait (0.2 s a MB on a slow machine).
MAX_WHOLE = 4 * 1024 * 1024
MAX_VALUES = 250_000
IS_WINDOWS = os.name == "nt"

# Where each harness takes text from the answer: only there is waiting of any use. Letters only, lower case.
WAITS = {
    "claude_code": ("sessionstart", "userpromptsubmit"),
    "codex": ("sessionstart", "userpromptsubmit"),
    "cursor": ("sessionstart", "beforesubmitprompt"),
    "gemini_cli": ("sessionstart", "beforeagent"),
    "copilot_cli": ("sessionstart",),
    "opencode": ("sessionstart", "userpromptsubmit"),
}


# --- places ----------------------------------------------------------------------------------------------------------


def home() -> str:
    return os.path.expanduser("~")


def config_dir() -> str:
    """The user's own folder: credentials, this script, and what install changed."""
    if IS_WINDOWS:
        base = os.environ.get("APPDATA") or os.path.join(home(), "AppData", "Roaming")
    else:
        base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home(), ".config")
    return os.path.join(base, "team-memory")


def state_dirs() -> list[str]:
    """Folders for the spool, best first: a home that can't be written must not cost an event."""
    import_temp = os.environ.get("TEMP") if IS_WINDOWS else os.environ.get("TMPDIR")
    who = str(os.getuid()) if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    spare = os.path.join(import_temp or ("C:\\Windows\\Temp" if IS_WINDOWS else "/tmp"), f"team-memory-{who}")  # noqa: S108 - checked to be ours
    if IS_WINDOWS:
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home(), "AppData", "Local")
    else:
        base = os.environ.get("XDG_STATE_HOME") or os.path.join(home(), ".local", "state")
    return [os.path.join(base, "team-memory"), spare]


def is_ours(folder: str) -> bool:
    """True for a real folder of this user: in a shared temporary folder another could have laid it out for us."""
    if IS_WINDOWS:
        return os.path.isdir(folder)
    try:
        seen = os.lstat(folder)
    except OSError:
        return False
    return (seen.st_mode & 0o170000) == 0o040000 and seen.st_uid == os.getuid()


def made(folder: str) -> bool:
    """Make a private folder; False where that can't be."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
    except OSError:
        return False
    return is_ours(folder) and os.access(folder, os.W_OK)


def read_text(path: str) -> str:
    """A file's text, "" where it can't be read."""
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def write_private(path: str, text: str) -> None:
    """Replace a file as a whole, readable by its user alone."""
    fresh = f"{path}.{os.getpid()}.new"
    fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(text.encode("utf-8", "surrogatepass"))
        os.replace(fresh, path)
    except OSError:
        remove(fresh)
        raise


def remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        return


def as_dict(text: str) -> dict[str, Any]:
    """The JSON object in a text, {} where there is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def is_paused() -> bool:
    """True while `pause` holds."""
    mark = os.path.join(config_dir(), "paused")
    if not os.path.exists(mark):
        return False
    until = read_text(mark).strip()
    try:
        return not until or time.time() < float(until)
    except ValueError:
        return True


# --- credentials -----------------------------------------------------------------------------------------------------


class Target:
    """A server, the key for it, and the name its spool has."""

    def __init__(self, url: str, key: str, scope: str) -> None:
        self.url, self.key, self.scope = url.rstrip("/"), key, scope

    @property
    def spool_name(self) -> str:
        import zlib

        # Keys from the environment may be of several teams; the file's are replaced when a key is rotated. Checksums,
        # because hashlib takes 10 ms to import.
        rest = self.key if self.scope == "environment" else self.scope
        whole = f"{self.url}\0{rest}".encode("utf-8", "surrogatepass")
        return f"{zlib.crc32(whole):08x}{zlib.crc32(whole[::-1]):08x}"


def credentials_path() -> str:
    return os.path.join(config_dir(), "credentials.json")


def credentials() -> dict[str, Any]:
    """What the 0600 file holds; {} where it is not this user's own."""
    path = credentials_path()
    try:
        seen = os.stat(path)
        if not IS_WINDOWS and seen.st_uid not in (os.getuid(), 0):
            return {}
        if not IS_WINDOWS and seen.st_mode & 0o077:
            os.chmod(path, 0o600)
    except OSError:
        return {}
    return as_dict(read_text(path))


def target_for(root: str) -> Target | None:
    """Where events of a folder go. From the environment or the user's file, never from a project's files."""
    url, key = os.environ.get("TEAM_MEMORY_URL", "").strip(), os.environ.get("TEAM_MEMORY_KEY", "").strip()
    if url and key and not _set_by_project(root, url, key):
        return _checked(url, key, "environment")
    kept = credentials()
    projects = kept.get("projects")
    best = ""
    for folder in projects if isinstance(projects, dict) else ():
        if is_below(root, folder) and len(folder) > len(best):
            best = folder
    found = projects[best] if best and isinstance(projects, dict) else kept.get("default")
    if not isinstance(found, dict):
        return None
    return _checked(str(found.get("url", "")), str(found.get("key", "")), best or "default")


def _checked(url: str, key: str, scope: str) -> Target | None:
    if not url.startswith(("https://", "http://")) or not key or any(c.isspace() for c in url + key):
        return None
    return Target(url, key, scope)


def _set_by_project(root: str, url: str, key: str) -> bool:
    """Harnesses hand a project's settings on as environment; a cloned repository must not redirect what is recorded."""
    if not root or os.path.realpath(root) == os.path.realpath(home()):
        return False
    for name in (".claude/settings.json", ".claude/settings.local.json", ".codex/config.toml", ".env", ".envrc"):
        text = read_text(os.path.join(root, *name.split("/")))
        if "TEAM_MEMORY" in text and (url in text or key in text):
            return True
    return False


def is_below(path: str, folder: str) -> bool:
    if not path or not folder:
        return False
    path, folder = (os.path.normcase(os.path.realpath(one)) for one in (path, folder))
    return path == folder or path.startswith(folder.rstrip("/\\") + os.sep)


# --- locks -----------------------------------------------------------------------------------------------------------


class Lock:
    """A lock that ends with its process, however that ends. `held` is False where it could not be had in time."""

    def __init__(self, path: str, wait: float) -> None:
        self.path, self.wait, self.held = path, wait, False
        self._fd = -1

    def __enter__(self) -> Lock:
        try:
            self._fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return self
        until = time.monotonic() + self.wait
        while not self._try():
            if time.monotonic() >= until:
                break
            time.sleep(0.005)
        return self

    def _try(self) -> bool:
        try:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(self._fd, msvcrt.LK_NBLCK, 1)
            else:
                import fcntl

                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        self.held = True
        return True

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            # Closing ends the lock on every system.
            os.close(self._fd)
            self._fd, self.held = -1, False


# --- redaction -------------------------------------------------------------------------------------------------------

# The form of the server's own marks, which it leaves alone.
REDACTED = "[secret:client:00000000]"


class Pattern:
    """A regular expression that is compiled when it is first needed: most calls need none."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._compiled: Any = None

    def __call__(self) -> Any:
        if self._compiled is None:
            self._compiled = re.compile(self._source)
        return self._compiled


# Shapes that are secrets wherever they stand, each with what stands in it in lower case. Each begins with a literal and
# takes what follows without looking back, so a text is read once. The server looks again, with many more rules.
_SHAPES = (
    ("tm_live_", r"tm_live_[0-9A-Za-z]{20,64}"),
    ("sk-", r"sk-(?:ant-|proj-|svcacct-|or-)?[0-9A-Za-z_-]{20,200}"),
    ("ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[0-9A-Za-z]{30,255}"),
    ("github_pat_", r"github_pat_[0-9A-Za-z_]{22,255}"),
    ("glpat-", r"glpat-[0-9A-Za-z_-]{20,64}"),
    ("xox", r"xox[abeoprs]-[0-9A-Za-z-]{10,250}"),
    ("xapp-", r"xapp-[0-9A-Za-z-]{20,200}"),
    ("hooks.slack", r"hooks\.slack\.com/services/[0-9A-Za-z/]{20,100}"),
    ("akia asia abia acca", r"(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}(?![0-9A-Za-z])"),
    ("aiza", r"AIza[0-9A-Za-z_-]{35}"),
    ("ya29.", r"ya29\.[0-9A-Za-z_-]{20,500}"),
    ("gocspx-", r"GOCSPX-[0-9A-Za-z_-]{20,60}"),
    ("k_live_ k_test_", r"[rs]k_(?:live|test)_[0-9A-Za-z]{16,200}"),
    ("whsec_", r"whsec_[0-9A-Za-z+/=]{20,100}"),
    ("npm_", r"npm_[0-9A-Za-z]{36}"),
    ("pypi-", r"pypi-[0-9A-Za-z_-]{50,500}"),
    ("dckr_pat_", r"dckr_pat_[0-9A-Za-z_-]{20,60}"),
    ("hf_", r"hf_[0-9A-Za-z]{30,60}"),
    ("sg.", r"SG\.[0-9A-Za-z_-]{16,32}\.[0-9A-Za-z_-]{30,64}"),
    ("dop_v1_", r"dop_v1_[0-9a-f]{64}"),
    ("shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    ("glsa_", r"glsa_[0-9A-Za-z_]{30,64}"),
    ("lin_api_", r"lin_api_[0-9A-Za-z]{30,64}"),
    ("atatt3", r"ATATT3[0-9A-Za-z_=-]{50,300}"),
    ("age-secret-key-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    ("hvs.", r"hvs\.[0-9A-Za-z_-]{20,200}"),
    ("sntrys_", r"sntrys_[0-9A-Za-z_=+/-]{40,400}"),
    ("tskey-", r"tskey-[0-9A-Za-z-]{20,80}"),
    ("eyj", r"eyJ[0-9A-Za-z_-]{8,2000}\.eyJ[0-9A-Za-z_-]{8,6000}\.[0-9A-Za-z_-]{8,2000}"),
)
_PEM_START = Pattern(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = Pattern(r"-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
_NAME = r"(?:password|passwd|passphrase|secret|(?:api|access|private)[_-]?key|auth[_-]?token|token|credentials?)"
# NAME=value, "name": "value", name: value, from the word on by which a name is one of a secret. Words are found ten
# times as fast as names of any kind, which begin at every second character.
_NAMED = Pattern(
    r"(?i)(?!secret:client:0)(" + _NAME + r"(?:[_-][0-9a-z]{1,12})?)"
    r"(\\?[\"']?\s{0,4}(?:=>|:=|[:=])\s{0,4}\\?[\"']?)([^\s\"'\\,;&<>(){}\[\]$%*]{8,500})"
)
_BEARER = Pattern(r"(?i)\b((?:bearer|basic)\s+)([0-9a-z_.~+/=-]{16,4000})")
_URL_LOGIN = Pattern(r"(?i)\b([a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'<>]{0,100}):([^\s/@\"'<>]{1,200})@")
_SECRET_FIELD = Pattern(r"(?i)^[0-9a-z_-]{0,40}?" + _NAME + r"$")
_NOT_SECRET = Pattern(
    r"(?i)^(?:true|false|none|null|undefined|required|optional|string|redacted|your[_-].*|x{4,}|\.{3,})$"
)
_CODE = Pattern(r"^[A-Za-z_]+(?:\.[A-Za-z_]+)+$")
# Without one of these, in lower case, no rule above can match.
_NAME_HINTS = (
    *"passw passphrase secret apikey api_key api-key".split(),  # noqa: SIM905
    *"accesskey access_key access-key privatekey private_key private-key token credential".split(),  # noqa: SIM905
)
_HINTS = (*_NAME_HINTS, "private key", "bearer", "basic", "://", *" ".join(hints for hints, _ in _SHAPES).split())


def may_hold_secret(text: str) -> bool:
    return _may_hold_secret(text.lower())


def _may_hold_secret(low: str) -> bool:
    return any(hint in low for hint in _HINTS)


def clean_text(text: str) -> str:
    """The text without what looks like a secret."""
    if len(text) < 8:
        return text
    low = text.lower()
    if not _may_hold_secret(low):
        return text
    # An agent waits for this: only rules whose hints are there are compiled and run.
    if "private key" in low:
        text = _without_pem(text)
    shapes = [shape for hints, shape in _SHAPES if any(hint in low for hint in hints.split())]
    if shapes:
        text = re.sub("|".join(shapes), REDACTED, text)
    if "://" in text and "@" in text:
        text = _URL_LOGIN().sub(r"\1:" + REDACTED + "@", text)
    if "bearer" in low or "basic" in low:
        text = _BEARER().sub(_if_secret, text)
    return _without_named(text)


def _places(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


def _without_named(text: str) -> str:
    # The one character that is two in lower case, behind which nothing would stand in its place.
    low = text.replace("\u0130", "i").lower()
    kept, at = [], 0
    for place in sorted(place for word in _NAME_HINTS for place in _places(low, word)):
        found = _NAMED().match(text, place) if place >= at else None
        if found:
            kept.append(text[at : found.start()] + _if_secret(found))
            at = found.end()
    return "".join(kept) + text[at:] if kept else text


def _if_secret(found: Any) -> str:
    value = found.group(found.lastindex)
    if _NOT_SECRET().match(value) or (value.isalpha() and value.islower()) or _CODE().match(value):
        return str(found.group(0))
    return str(found.group(0))[: -len(value)] + REDACTED


def _without_pem(text: str) -> str:
    kept, at = [], 0
    for start in _PEM_START().finditer(text):
        if start.start() < at:
            continue
        end = _PEM_END().search(text, start.end())
        kept.append(text[at : start.start()] + REDACTED)
        at = end.end() if end else len(text)
    return "".join(kept) + text[at:] if kept else text


def cleaned(value: Any) -> Any:
    """A JSON value without secrets, in names and in texts."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [cleaned(one) for one in value]
    if isinstance(value, dict):
        return {clean_text(name): _clean_field(name, one) for name, one in value.items()}
    return value


def _clean_field(name: str, value: Any) -> Any:
    if isinstance(value, str) and len(value) >= 8 and _SECRET_FIELD().match(name) and not _NOT_SECRET().match(value):
        return REDACTED
    return cleaned(value)


INJECTED = ("team-memory", "system-reminder")
_SAID_BY_PEOPLE = ("prompt", "user_prompt", "initial_prompt", "initialPrompt", "custom_instructions")


def without_injected(text: str) -> str:
    """A prompt without the blocks that the memory and the harness put into it; an unclosed one goes to the end."""
    for name in INJECTED:
        kept, at = [], 0
        for start in re.finditer(rf"<{name}(?=[>\s/]|$)", text):
            if start.start() < at:
                continue
            kept.append(text[at : start.start()])
            end = text.find(f"</{name}", start.end())
            shut = text.find(">", end) if end >= 0 else -1
            at = shut + 1 if shut >= 0 else len(text)
        text = "".join(kept) + text[at:]
    return text


def _without_injected(payload: dict[str, Any]) -> None:
    for name in _SAID_BY_PEOPLE:
        said = payload.get(name)
        if isinstance(said, str) and "<" in said:
            payload[name] = without_injected(said)
    info = payload.get("tool_info")
    if isinstance(info, dict):
        _without_injected(info)


# --- git, without running it -----------------------------------------------------------------------------------------


class Place:
    """Where work happens: the root of its repository, and the remote without user or password."""

    def __init__(self, root: str = "", remote: str = "", top: str = "") -> None:
        self.root, self.remote, self.top = root, remote, top or root


def place_of(folder: str) -> Place:
    """The repository a folder is in. For a linked worktree the root is the main one's: it is the same project."""
    top = folder
    for _ in range(60):
        dot = os.path.join(top, ".git")
        if os.path.isdir(dot):
            return Place(top, remote_in(dot))
        if os.path.isfile(dot):
            return _linked(top, dot)
        above = os.path.dirname(top)
        if above == top or not above:
            break
        top = above
    return Place()


def _linked(top: str, dot: str) -> Place:
    named = read_text(dot).strip()
    if not named.startswith("gitdir:"):
        return Place(top)
    git_dir = os.path.normpath(os.path.join(top, named[7:].strip()))
    shared = read_text(os.path.join(git_dir, "commondir")).strip()
    if not shared:
        return Place(top, remote_in(git_dir))
    common = os.path.normpath(os.path.join(git_dir, shared))
    root = os.path.dirname(common) if os.path.basename(common) == ".git" else top
    return Place(root, remote_in(common), top)


_SECTION = Pattern(r'^\s*\[\s*([^\s"\]]+)\s*(?:"((?:[^"\\]|\\.)*)")?\s*\]')
_SETTING = Pattern(r"^\s*([A-Za-z][A-Za-z0-9-]*)\s*=\s*(.*?)\s*$")


def remote_in(git_dir: str) -> str:
    """The url of origin, else of the first remote, as `git remote get-url` says it."""
    remotes: dict[str, str] = {}
    instead: list[tuple[str, str]] = []
    section, name = "", ""
    for line in read_text(os.path.join(git_dir, "config")).splitlines():
        head = _SECTION().match(line)
        if head:
            section, name = head.group(1).lower(), (head.group(2) or "").replace('\\"', '"').replace("\\\\", "\\")
            continue
        found = _SETTING().match(line)
        if not found:
            continue
        value = _git_value(found.group(2))
        if section == "remote" and found.group(1).lower() == "url":
            remotes.setdefault(name, value)
        elif section == "url" and found.group(1).lower() == "insteadof":
            instead.append((value, name))
    url = remotes.get("origin") or next(iter(remotes.values()), "")
    for short, whole in sorted(instead, key=lambda pair: -len(pair[0])):
        if short and url.startswith(short):
            url = whole + url[len(short) :]
            break
    return without_login(url)


def _git_value(value: str) -> str:
    if value.startswith('"'):
        end = value.find('"', 1)
        return value[1:end].replace("\\\\", "\\") if end > 0 else value[1:]
    return re.split(r"\s[#;]", value)[0].strip()


def without_login(url: str) -> str:
    """A remote without user, password and query."""
    found = re.match(r"(?i)^([a-z][a-z0-9+.-]*://)([^/?#]*)([^?#]*)", url.strip())
    if not found:
        return clean_text(url.strip())
    return clean_text(found.group(1) + found.group(2).rpartition("@")[2] + found.group(3))


# --- ignore rules ----------------------------------------------------------------------------------------------------

IGNORE_NAME = ".team-memory-ignore"
_PATH_FIELDS = ("path", "file", "cwd", "notebook")


class Ignore:
    """Rules of what is never recorded: the user's own, and a project's, which can only take away."""

    def __init__(self, *texts: str) -> None:
        self.repositories: list[Any] = []
        self.paths: list[Any] = []
        self.tools: list[Any] = []
        for text in texts:
            for line in text.splitlines():
                self._read(line.strip())

    def _read(self, line: str) -> None:
        if not line or line.startswith("#"):
            return
        kind, colon, pattern = line.partition(":")
        kind = kind.strip().lower()
        if not colon or kind not in ("repository", "repo", "path", "tool"):
            kind, pattern = "path", line
        pattern = pattern.strip()
        if kind in ("repository", "repo"):
            self.repositories.append(_glob(pattern.lower(), whole=True, slashes=True))
        elif kind == "tool":
            self.tools.append(_glob(pattern, whole=True, slashes=True))
        elif pattern:
            self.paths.append(_glob(pattern.replace("\\", "/"), whole=False))

    def __bool__(self) -> bool:
        return bool(self.repositories or self.paths or self.tools)

    def hides(self, payload: dict[str, Any], place: Place, root: str) -> bool:
        """True where this event must not leave the machine."""
        if not self:
            return False
        if any(rule.match(name) for rule in self.repositories for name in _repository_names(place, root)):
            return True
        tool = payload.get("tool_name") or payload.get("toolName")
        if isinstance(tool, str) and any(rule.match(tool) for rule in self.tools):
            return True
        return bool(self.paths) and any(self._hides_path(path, root, place) for path in _paths_in(payload))

    def _hides_path(self, path: str, root: str, place: Place) -> bool:
        path = path.replace("\\", "/")
        for base in (place.top, place.root, root):
            base = base.replace("\\", "/").rstrip("/")
            if base and path.startswith(base + "/"):
                path = path[len(base) + 1 :]
                break
        path = os.path.normpath(path).replace("\\", "/")
        return any(rule.match(path) for rule in self.paths)


def _repository_names(place: Place, root: str) -> list[str]:
    remote = place.remote.lower()
    plain = re.sub(r"^[a-z][a-z0-9+.-]*://|^[^@/]*@", "", remote)
    plain = re.sub(r"^([^/:]+):(?!\d+/)", r"\1/", plain)
    names = [plain, plain[:-4] if plain.endswith(".git") else plain, (place.root or root).replace("\\", "/").lower()]
    return [name for name in names if name]


def _glob(pattern: str, *, whole: bool, slashes: bool = False) -> Any:
    """As in .gitignore: a name alone is met at any depth, and a folder stands for all below it."""
    folder = pattern.endswith("/") and len(pattern) > 1
    body = pattern.rstrip("/") if folder else pattern
    anchored = whole or "/" in body
    star = ".*" if slashes else "[^/]*"
    out, at = "", 0
    body = body[1:] if not whole and body.startswith("/") and not os.path.isabs(pattern) else body
    while at < len(body):
        if body.startswith("**/", at):
            out, at = out + "(?:.*/)?", at + 3
        elif body.startswith("**", at):
            out, at = out + ".*", at + 2
        elif body[at] == "*":
            out, at = out + star, at + 1
        elif body[at] == "?":
            out, at = out + ".", at + 1
        else:
            out, at = out + re.escape(body[at]), at + 1
    if body.startswith("/") and not whole:
        out = "/?" + out[1:] if out.startswith("/") else out
    flags = re.IGNORECASE if IS_WINDOWS else 0
    return re.compile(("" if anchored else "(?:.*/)?") + out + ("$" if whole else "(?:/.*)?$"), flags)


def _paths_in(value: Any, name: str = "", depth: int = 0) -> Iterator[str]:
    """What in a payload names a file: fields that say so, and the words of shell commands."""
    if isinstance(value, str):
        low = name.lower()
        if low in ("command", "command_line", "cmd"):
            yield from re.split(r"[\s'\"=:;|&<>()`,]+", value[:20_000])
        elif low != "transcript_path" and len(value) < 4096 and any(part in low for part in _PATH_FIELDS):
            yield value
    elif isinstance(value, list) and depth < 8:
        for one in value[:500]:
            yield from _paths_in(one, name, depth + 1)
    elif isinstance(value, dict) and depth < 8:
        for key, one in value.items():
            yield from _paths_in(one, key, depth + 1)


def ignore_for(place: Place, root: str) -> Ignore:
    """The rules that hold in a folder."""
    folders = [config_dir()] + [folder for folder in dict.fromkeys((place.root, place.top, root)) if folder]
    names = [os.path.join(folders[0], "ignore")] + [os.path.join(folder, IGNORE_NAME) for folder in folders[1:]]
    return Ignore(*[read_text(name) for name in names if os.path.isfile(name)])


# --- spool -----------------------------------------------------------------------------------------------------------

SEGMENT_BYTES = 1024 * 1024
CHUNK_BYTES = 4 * 1024 * 1024
CHUNK_LINES = 500
# Where a payload is long. The other fields say what happened, and whose key the event gets.
_BODIES = (
    "tool_response",
    "tool_output",
    "tool_result",
    "toolResult",
    "tool_input",
    "toolArgs",
    "content",
    "edits",
    "text",
    "messages",
    "tool_calls",
)


def spool_cap() -> int:
    """How many bytes wait at most before the oldest payload bodies are dropped."""
    given = os.environ.get("TEAM_MEMORY_SPOOL_MB", "")
    return int(given) * 1024 * 1024 if given.isdigit() and int(given) else 128 * 1024 * 1024


class Spool:
    """Events that wait for the server: files of lines, appended under a lock, deleted when all of one is delivered.

    Every line is one write. A process may die at any point: a torn line is closed by the next writer and skipped by
    the reader, and what was sent but not noted is sent again under the same identity.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._cursor = os.path.join(folder, "cursor.json")

    @classmethod
    def first(cls, name: str) -> Spool | None:
        """The spool in the first folder that can be written."""
        for base in state_dirs():
            folder = os.path.join(base, "spool", name)
            if made(base) and made(folder):
                return cls(folder)
        return None

    @classmethod
    def everywhere(cls, name: str) -> list[Spool]:
        """The spools of one target that exist, wherever they had to be."""
        folders = [os.path.join(base, "spool", name) for base in state_dirs()]
        return [cls(folder) for folder in folders if is_ours(folder)]

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def lock(self, name: str = "append", wait: float = 0.5) -> Lock:
        return Lock(self.path(f"{name}.lock"), wait)

    def segments(self) -> list[str]:
        try:
            names = os.listdir(self.folder)
        except OSError:
            return []
        return sorted(name for name in names if name.endswith(".ndjson") and name[0].isdigit())

    def size(self, name: str) -> int:
        try:
            return os.stat(self.path(name)).st_size
        except OSError:
            return 0

    def has_backlog(self) -> bool:
        return bool(self.segments())

    def count(self) -> int:
        """How many events wait."""
        at, done = self._read_cursor()
        total = 0
        for name in self.segments():
            try:
                with open(self.path(name), "rb") as file:
                    file.seek(done if name == at else 0)
                    total += sum(1 for line in file if line.strip())
            except OSError:
                continue
        return total + len(self.pending(0))

    # Writing

    def append(self, line: bytes) -> None:
        """Keep one line. Raises OSError where the disk takes none."""
        with self.lock() as lock:
            names = self.segments() if lock.held else []
            name = names[-1] if names else ""
            if not name or name.endswith(".cut.ndjson") or self.size(name) >= SEGMENT_BYTES:
                # Without the lock another may be writing: a file of our own needs none.
                name = f"{max(time.time_ns(), _after(name)):020d}{'' if lock.held else f'-{os.getpid()}'}.ndjson"
            try:
                _append(self.path(name), line)
            except OSError:
                if not lock.held:
                    raise
                # A full disk: make room out of old bodies, and keep what happened at least.
                self._shrink(0)
                _append(self.path(name), slim(line, 200))
            if lock.held:
                self._shrink(spool_cap())

    def _shrink(self, cap: int) -> None:
        """Cut the bodies of the oldest events. Those that may have been sent already stay as they were sent."""
        names = self.segments()
        total = sum(self.size(name) for name in names)
        if total <= cap:
            return
        under_way, _ = self._read_cursor()
        for name in names:
            if total <= cap * 0.9:
                return
            if name == under_way or name.endswith(".cut.ndjson"):
                continue
            total -= self._cut(name)

    def _cut(self, name: str) -> int:
        """The bytes saved in a file; its name keeps its place in the order."""
        old, new = self.path(name), self.path(name[: -len(".ndjson")] + ".cut.ndjson")
        before = self.size(name)
        try:
            with open(old, "rb") as source:
                lines = [slim(line, 200) for line in source if line.strip()]
            fd = os.open(new + ".part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.write(b"".join(line + b"\n" for line in lines))
            os.replace(new + ".part", old)
            os.rename(old, new)
        except OSError:
            remove(new + ".part")
            return 0
        return before - self.size(os.path.basename(new))

    # A waiting call's event, while it is on its way

    def pend(self, line: bytes) -> str:
        """Keep a waiting call's event beside the spool until the server has it; "" where that can't be."""
        name = self.path(f"pending-{STARTED_AT:020d}-{os.getpid()}.json")
        try:
            _append(name, line)
        except OSError:
            return ""
        return name

    def pending(self, older_than: float) -> list[str]:
        try:
            names = sorted(name for name in os.listdir(self.folder) if name.startswith("pending-"))
        except OSError:
            return []
        now = time.time()
        found = []
        for name in names:
            try:
                if now - os.stat(self.path(name)).st_mtime >= older_than:
                    found.append(name)
            except OSError:
                continue
        return found

    def adopt(self) -> None:
        """Take over the events of waiting calls that were killed on the way."""
        for name in self.pending(10.0):
            try:
                with open(self.path(name), "rb") as file:
                    line = file.read().strip()
                if line:
                    self.append(line)
            except OSError:
                continue
            remove(self.path(name))

    # Reading: only the one that holds the flush lock

    def chunk(self) -> tuple[str, int, bytes] | None:
        """The oldest lines: their file, where they end in it, and the lines. None when nothing waits."""
        with self.lock(wait=10.0):
            for name in self.segments():
                at, done = self._read_cursor()
                start = done if name == at else 0
                data = self._read(name, start)
                if data:
                    # Noted before it is sent: from now on these lines stay as they are.
                    self._write_cursor(name, start)
                    return name, start + len(data), data
                remove(self.path(name))
        return None

    def _read(self, name: str, start: int) -> bytes:
        taken: list[bytes] = []
        size = 0
        try:
            with open(self.path(name), "rb") as file:
                file.seek(start)
                for line in file:
                    if taken and (size + len(line) > CHUNK_BYTES or len(taken) >= CHUNK_LINES):
                        break
                    taken.append(line)
                    size += len(line)
        except OSError:
            return b""
        return b"".join(taken)

    def delivered(self, name: str, end: int) -> None:
        with self.lock(wait=10.0) as lock:
            if lock.held and end >= self.size(name):
                remove(self.path(name))
                remove(self._cursor)
            else:
                self._write_cursor(name, end)

    def _read_cursor(self) -> tuple[str, int]:
        kept = as_dict(read_text(self._cursor))
        name, offset = kept.get("segment"), kept.get("offset")
        return (name, offset) if isinstance(name, str) and isinstance(offset, int) else ("", 0)

    def _write_cursor(self, name: str, offset: int) -> None:
        try:
            write_private(self._cursor, json.dumps({"segment": name, "offset": offset}))
        except OSError:
            # On a full disk the same lines may go twice; the server knows them again.
            return

    # What doctor tells

    def note(self, **said: Any) -> None:
        path = self.path("state.json")
        state = as_dict(read_text(path))
        state.update(said)
        try:
            write_private(path, json.dumps(state))
        except OSError:
            return

    def state(self) -> dict[str, Any]:
        return as_dict(read_text(self.path("state.json")))

    def refuse(self, line: bytes, code: str, detail: str) -> None:
        """Keep what the server will never take where a person can look at it."""
        path = self.path("refused.log")
        try:
            if os.path.exists(path) and os.stat(path).st_size > 4 * SEGMENT_BYTES:
                os.replace(path, path + ".old")
            about = json.dumps({"code": code, "detail": detail[:500], "at": _iso(time.time_ns())})
            _append(path, about.encode("ascii") + b"\t" + line[:65536])
        except OSError:
            return


def _after(name: str) -> int:
    """A clock that was set back must not put a newer file before an older."""
    digits = re.match(r"\d+", name)
    return int(digits.group()) + 1 if digits else 0


def _append(path: str, line: bytes) -> None:
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o600)
    try:
        size = os.lseek(fd, 0, os.SEEK_END)
        torn = False
        if size:
            os.lseek(fd, size - 1, os.SEEK_SET)
            torn = os.read(fd, 1) != b"\n"
        rest = (b"\n" if torn else b"") + line + b"\n"
        try:
            while rest:
                rest = rest[os.write(fd, rest) :]
        except OSError:
            os.ftruncate(fd, size)
            raise
    finally:
        os.close(fd)


def slim(line: bytes, keep: int) -> bytes:
    """The same event with the long parts of its payload cut, and how long they were."""
    event = as_dict(line.decode("utf-8", "replace"))
    payload = event.get("payload")
    if not isinstance(payload, dict):
        return line.strip()
    for name in _BODIES:
        if name in payload:
            payload[name] = _cut_value(payload[name], keep)
    return encoded(event)


def _cut_value(value: Any, keep: int) -> Any:
    if isinstance(value, str) and len(value) > keep * 2:
        return f"{value[:keep]} … [{len(value):,} characters, cut before they were sent]"
    if isinstance(value, list):
        return [_cut_value(one, keep) for one in value[:50]]
    if isinstance(value, dict):
        return {name: _cut_value(one, keep) for name, one in list(value.items())[:100]}
    return value


def encoded(value: Any) -> bytes:
    """JSON in one line; characters that UTF-8 has no bytes for stay escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def _iso(ns: int) -> str:
    seconds, rest = divmod(ns, 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest // 1000:06d}Z"


# --- network ---------------------------------------------------------------------------------------------------------


class Answer:
    """What a server said: 0 and the reason where it said nothing."""

    def __init__(self, status: int, body: bytes, headers: dict[str, str], fault: str = "") -> None:
        self.status, self.body, self.headers, self.fault = status, body, headers, fault

    @property
    def json(self) -> dict[str, Any]:
        return as_dict(self.body.decode("utf-8", "replace"))

    @property
    def reason(self) -> str:
        return self.fault or str(self.json.get("detail") or f"status {self.status}")


def ask(
    method: str,
    target: Target,
    path: str,
    *,
    data: bytes | None = None,
    headers: dict[str, str] | None = None,
    wait: float,
) -> Answer:
    """One request. Redirects are not followed: they would carry the key elsewhere, and a POST away."""
    import urllib.error
    import urllib.request

    sent = {"Authorization": f"Bearer {target.key}", "User-Agent": f"team-memory-hook/{VERSION}", **(headers or {})}
    request = urllib.request.Request(target.url + path, data=data, method=method)  # noqa: S310 - checked in _checked
    for name, value in sent.items():
        request.add_header(name, _header(value))
    try:
        with _opener(target.url).open(request, timeout=wait) as got:
            return Answer(got.status, got.read(), {k.lower(): v for k, v in got.headers.items()})
    except urllib.error.HTTPError as refused:
        with refused:
            return Answer(refused.code, refused.read(65536), {k.lower(): v for k, v in refused.headers.items()})
    except Exception as fault:  # every way a network can fail, and there are many
        return Answer(0, b"", {}, f"{type(fault).__name__}: {getattr(fault, 'reason', None) or fault}")


def _header(value: str) -> str:
    """Headers travel as bytes; no control character may end one early."""
    plain = "".join(c for c in value if c >= " " and c != "\x7f")[:2000]
    return plain.encode("utf-8", "replace").decode("latin-1")


def _opener(url: str) -> Any:
    import urllib.request

    class Still(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_: Any, **__: Any) -> None:
            return None

    handlers: list[Any] = [Still()]
    if is_loopback(url):
        handlers.append(urllib.request.ProxyHandler({}))
    return urllib.request.build_opener(*handlers)


def is_loopback(url: str) -> bool:
    host = re.sub(r"^[a-z]+://", "", url).split("/")[0].rpartition("@")[2]
    host = host[1 : host.find("]")] if host.startswith("[") else host.split(":")[0]
    return host in ("localhost", "::1") or re.match(r"^127(?:\.\d{1,3}){3}$", host) is not None


# --- delivery --------------------------------------------------------------------------------------------------------

LINGER_SECONDS = 3.0
LONGEST_PAUSE = 30.0
GIVE_UP_SECONDS = 24 * 3600.0


class Later(Exception):
    """The server can't take it now; what waits goes on waiting."""


def start_flusher(spool: Spool, target: Target, *, is_asked: bool = False) -> None:
    """See to it that a process delivers the spool, which outlives this one and its parent.

    Hooks come many a second, and one of them is enough; what a person asks for (`is_asked`) waits for no other.
    """
    mark = spool.path("started")
    try:
        if not is_asked and time.time() - os.stat(mark).st_mtime < 1.0:
            return
    except OSError:
        pass
    with spool.lock("flush", wait=0) as lock:
        if not lock.held and os.path.exists(spool.path("flush.lock")):
            return
    try:
        with open(mark, "w"):
            pass
    except OSError:
        pass
    _detach(["flush", spool.folder, target.scope], None)


def _detach(arguments: list[str], stdin: bytes | None) -> None:
    """Run this script apart: a session and a group of its own, none of our files open, and no window."""
    command = [sys.executable, "-I", "-S", _myself(), *arguments]
    if IS_WINDOWS or stdin is not None:
        import subprocess

        options: dict[str, Any] = {"start_new_session": True}
        if IS_WINDOWS:
            # DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP | CREATE_BREAKAWAY_FROM_JOB
            options = {"creationflags": 0x8 | 0x200 | 0x1000000}
        pipe = subprocess.DEVNULL if stdin is None else subprocess.PIPE
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "close_fds": True}
        try:
            child = subprocess.Popen(command, stdin=pipe, cwd=_root_dir(), **quiet, **options)  # noqa: S603 - our own
        except OSError:
            if not IS_WINDOWS:
                raise
            # A job may forbid to break away from it.
            child = subprocess.Popen(command, stdin=pipe, cwd=_root_dir(), creationflags=0x8 | 0x200, **quiet)  # noqa: S603
        if stdin is not None and child.stdin:
            child.stdin.write(stdin)
            child.stdin.close()
        # Not ours to wait for.
        child.returncode = 0
        return
    # By hand: the subprocess module costs 10 ms to import, and this is in the way of every tool call.
    if os.fork():
        return
    try:
        os.setsid()
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.closerange(3, 256)
        os.execv(command[0], command)  # noqa: S606 - our own file
    finally:
        os._exit(0)


def _myself() -> str:
    """This script, by the launcher beside it where there is one."""
    here = os.path.abspath(__file__)
    launcher = os.path.join(os.path.dirname(here), "hook.py")
    return launcher if os.path.basename(here) == "team_memory_hook.py" and os.path.exists(launcher) else here


def _root_dir() -> str:
    return os.path.abspath(os.sep)


def flush(folder: str, scope: str) -> None:
    """Deliver a spool until it is empty. One at a time; whoever comes second leaves at once."""
    spool = Spool(folder)
    while os.path.isdir(folder):
        with spool.lock("flush", wait=0) as lock:
            if not lock.held:
                return
            if not _drain(spool, scope):
                return
        if not spool.has_backlog():
            return
        # What was written between the last look and the end of the lock found no one to start.
        time.sleep(0.02)


def _drain(spool: Spool, scope: str) -> bool:
    """True when nothing waits any more; False when it is of no use to go on."""
    failures, since, idle = 0, time.monotonic(), time.monotonic()
    while os.path.isdir(spool.folder):
        spool.adopt()
        chunk = spool.chunk()
        if chunk is None:
            if time.monotonic() - idle > LINGER_SECONDS:
                return True
            time.sleep(0.1)
            continue
        name, end, data = chunk
        try:
            deliver(spool, scope, [line for line in data.split(b"\n") if line.strip()])
        except Later as why:
            failures += 1
            spool.note(failures=failures, fault=str(why)[:500], failed_at=time.time())
            if time.monotonic() - since > GIVE_UP_SECONDS:
                return False
            _rest(spool, failures)
            continue
        spool.delivered(name, end)
        if failures:
            spool.note(failures=0, fault="")
        failures, since, idle = 0, time.monotonic(), time.monotonic()
    return False


def _rest(spool: Spool, failures: int) -> None:
    """Wait longer after each failure, unless a call has just reached the server."""
    import random

    seconds = min(LONGEST_PAUSE, 0.5 * 2.0 ** min(failures, 10)) * (0.8 + 0.4 * random.random())  # noqa: S311
    until, before = time.monotonic() + seconds, _changed(spool.path("wake"))
    while time.monotonic() < until and os.path.isdir(spool.folder):
        if _changed(spool.path("wake")) != before:
            return
        time.sleep(0.25)


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def target_of_scope(scope: str) -> Target | None:
    """The credentials as they are now: a mended key takes effect without a restart."""
    if scope == "environment":
        url, key = os.environ.get("TEAM_MEMORY_URL", "").strip(), os.environ.get("TEAM_MEMORY_KEY", "").strip()
        return _checked(url, key, scope)
    kept = credentials()
    projects = kept.get("projects")
    found = kept.get("default") if scope == "default" else projects.get(scope) if isinstance(projects, dict) else None
    return _checked(str(found.get("url", "")), str(found.get("key", "")), scope) if isinstance(found, dict) else None


def deliver(spool: Spool, scope: str, lines: list[bytes]) -> None:
    """Send lines; those the server refuses for good are put aside. Raises Later."""
    target = target_of_scope(scope)
    if target is None:
        raise Later("no address and key; run install again")
    _deliver(spool, target, _in_order(spool, lines))


def _in_order(spool: Spool, lines: list[bytes]) -> list[bytes]:
    """Harnesses run hooks side by side: the time each began says which came first. Torn lines are left out."""
    read = []
    for line in lines:
        event = as_dict(line.decode("utf-8", "replace"))
        if isinstance(event.get("payload"), dict):
            read.append((str(event.get("occurred_at", "")), line))
        else:
            spool.refuse(line, "torn", "This line was cut off while it was written.")
    return [line for _, line in sorted(read, key=lambda pair: pair[0])]


def _deliver(spool: Spool, target: Target, lines: list[bytes]) -> None:
    if not lines:
        return
    headers = {"Content-Type": "application/x-ndjson"}
    got = ask("POST", target, "/api/v1/events/batch", data=b"\n".join(lines) + b"\n", headers=headers, wait=60.0)
    said = got.json
    if got.status == 200 and "accepted" in said:
        spool.note(delivered_at=time.time(), url=target.url)
        for one in said.get("refused") or []:
            at = one.get("line")
            if isinstance(at, int) and 0 < at <= len(lines):
                spool.refuse(lines[at - 1], str(one.get("code")), str(one.get("detail")))
        return
    # Only the server's own words end an event; a proxy's error page does not.
    if got.status not in (400, 409, 413, 422) or not (said.get("code") or got.status == 413):
        raise Later(got.reason)
    if len(lines) > 1:
        middle = len(lines) // 2
        _deliver(spool, target, lines[:middle])
        _deliver(spool, target, lines[middle:])
        return
    smaller = slim(lines[0], 2000)
    if got.status == 413 and len(smaller) < len(lines[0]):
        _deliver(spool, target, [smaller])
    else:
        spool.refuse(lines[0], str(said.get("code") or got.status), got.reason)


# --- the hook --------------------------------------------------------------------------------------------------------

_NAMES = {"claude": "claude_code", "copilot": "copilot_cli", "gemini": "gemini_cli", "vs_code": "vscode"}


class Call:
    """One hook call: who calls, what happened, where, and the line it becomes."""

    def __init__(self, client: str, event: str, payload: dict[str, Any]) -> None:
        self.launched_as = client
        self.client = detected(client, payload)
        named = payload.get("hook_event_name") or payload.get("hookEventName") or payload.get("agent_action_name")
        self.event = str(named or event or "")[:80]
        self.payload = payload
        self.folder = _folder(payload)
        self.place = place_of(self.folder) if self.folder else Place()

    @property
    def waits(self) -> bool:
        return re.sub(r"[^a-z]", "", self.event.lower()) in WAITS.get(self.client, ())

    @property
    def is_start(self) -> bool:
        return re.sub(r"[^a-z]", "", self.event.lower()) == "sessionstart"

    def line(self, key: str) -> dict[str, Any]:
        """What goes into the spool and over the wire."""
        event: dict[str, Any] = {
            "client": self.client,
            "event": self.event,
            "occurred_at": _iso(STARTED_AT),
            "payload": self.payload,
        }
        if key:
            event["key"] = key
        if self.place.remote:
            event["git_remote"] = self.place.remote
        if self.place.root:
            event["workspace_root"] = clean_text(self.place.root)
        return event


def detected(client: str, payload: dict[str, Any]) -> str:
    """The harness that really calls: Cursor, VS Code and Copilot run what stands in Claude Code's settings too."""
    client = client.strip().lower().replace("-", "_")
    client = _NAMES.get(client, client)
    if "cursor_version" in payload or ("conversation_id" in payload and "generation_id" in payload):
        return "cursor"
    if client not in ("claude_code", "cursor_via_claude_settings", "vscode", "copilot_cli"):
        return client
    if "trajectory_id" in payload:
        return "windsurf"
    if "hookEventName" in payload:
        return "vscode"
    if "sessionId" in payload and "hook_event_name" not in payload:
        return "copilot_cli"
    if client == "vscode" and "hook_event_name" in payload and "timestamp" in payload:
        return "copilot_cli"
    return "claude_code" if client == "cursor_via_claude_settings" else client


def _folder(payload: dict[str, Any]) -> str:
    """Where the session works: what the harness calls the project, before where a shell happens to stand."""
    for name in ("CLAUDE_PROJECT_DIR", "CURSOR_PROJECT_DIR", "GEMINI_PROJECT_DIR"):
        project = os.environ.get(name, "")
        if project and os.path.isdir(project):
            return os.path.abspath(project)
    roots = payload.get("workspace_roots")
    info = payload.get("tool_info")
    given = roots[0] if isinstance(roots, list) and roots else payload.get("cwd")
    if not given and isinstance(info, dict):
        given = info.get("cwd")
    if isinstance(given, str) and given:
        # Cursor writes /c:/Users/ann/shop on Windows.
        given = given[1:] if IS_WINDOWS and re.match(r"^/[A-Za-z]:", given) else given
        return given if os.path.isabs(given) else ""
    return "" if os.path.normpath(os.getcwd()) == os.path.normpath(os.path.join(home(), ".cursor")) else os.getcwd()


def is_doubled(call: Call) -> bool:
    """True where the calling harness has our hook in its own configuration too: that one sends the event."""
    if call.client == _NAMES.get(call.launched_as, call.launched_as).replace("-", "_"):
        return False
    for path in own_configurations(call.client, call.place.top or call.folder):
        if not os.path.isfile(path):
            continue
        text = read_text(path)
        if "hook.py" in text and "team-memory" in text and re.search(rf"\b{call.client}\b", text):
            return True
    return False


def own_configurations(client: str, root: str) -> list[str]:
    """The files in which a harness that also reads Claude Code's settings would have our hook of its own."""
    if client == "cursor":
        names, bases = [os.path.join(".cursor", "hooks.json")], [root, home()]
        return [os.path.join(base, name) for base in bases if base for name in names]
    if client in ("copilot_cli", "vscode"):
        file = "team-memory.json" if client == "copilot_cli" else "team-memory-vscode.json"
        found = [os.path.join(root, ".github", "hooks", file)] if root else []
        return [*found, os.path.join(copilot_home(), "hooks", file)] if client == "copilot_cli" else found
    return []


def copilot_home() -> str:
    return os.environ.get("COPILOT_HOME") or os.path.join(home(), ".copilot")


def needs_key(payload: dict[str, Any]) -> bool:
    """True where the harness gives nothing to tell this call from another, so that the server could not either."""
    names = ("tool_use_id", "tool_call_id", "agent_id", "agentId", "subagent_id", "prompt_id", "turn_id")
    given = any(isinstance(payload.get(name), str) and payload[name] for name in names)
    given = given or any(payload.get(name) for name in ("generation_id", "execution_id", "timestamp"))
    return not given


def key_of(spool: Spool | None, call: Call) -> str:
    """A new key. Two settings that both name this script start it twice within milliseconds: those two share one."""
    import zlib

    fresh = f"hook-{STARTED_AT:x}-{os.urandom(8).hex()}"
    if spool is None:
        return fresh
    # Two settings files, one call: alike to the last byte. A person's second "yes" comes later than this.
    whole = encoded([call.client, call.event, call.payload])
    alike = f"{zlib.crc32(whole):08x}{zlib.crc32(whole[::-1]):08x}{len(whole)}"
    with spool.lock("keys", wait=0.1):
        path = spool.path("keys.json")
        now = time.time()
        kept = {k: v for k, v in as_dict(read_text(path)).items() if isinstance(v, list) and abs(now - v[1]) < 1.0}
        if alike in kept:
            return str(kept[alike][0])
        kept[alike] = [fresh, now]
        try:
            write_private(path, json.dumps(kept))
        except OSError:
            return fresh
    return fresh


def run_hook(arguments: Sequence[str]) -> bytes:
    """One hook call, as bytes for stdout."""
    if os.environ.get("TEAM_MEMORY_INTERNAL") or is_paused():
        return b""
    raw, is_cut = read_stdin()
    is_large = len(raw) > MAX_WHOLE
    # Every value costs a microsecond to parse, so millions of them are not.
    payload = {} if is_large and raw.count(b",") > MAX_VALUES else parsed(raw)
    if not payload and (is_cut or is_large):
        payload = {**beginning(raw), **last_ids(raw)}
    if not payload:
        if raw.strip():
            # Its words stay out of the log: nobody knows what is in them.
            _note_fault(f"{' '.join(arguments)[:200]}: {len(raw):,} bytes on stdin are no JSON object; not recorded")
        return b""
    if payload.get("team_memory_internal") in (1, True, "1"):
        return b""
    if is_cut or is_large:
        payload = without_bodies(payload, len(raw))
    call = Call(flag(arguments, "--client") or "claude_code", flag(arguments, "--event"), payload)
    if is_doubled(call) or ignore_for(call.place, call.folder).hides(payload, call.place, call.folder):
        return b""
    target = target_for(call.place.top or call.folder)
    if target is None:
        return b""
    _without_injected(payload)
    if may_hold_secret(json.dumps(payload, ensure_ascii=False)):
        call.payload = cleaned(payload)
    spool = Spool.first(target.spool_name)
    key = key_of(spool, call) if needs_key(call.payload) else ""
    line = fitted(call.line(key))
    if not call.waits:
        keep(spool, target, line)
    said = waited(call, target, spool, key, line) if call.waits else b""
    if call.is_start:
        start_refresh(call.place.top or call.folder)
    return said


def flag(arguments: Sequence[str], name: str) -> str:
    for at, one in enumerate(arguments):
        if one == name:
            return arguments[at + 1] if at + 1 < len(arguments) else ""
        if one.startswith(name + "="):
            return one[len(name) + 1 :]
    return ""


def read_stdin() -> tuple[bytes, bool]:
    """What the harness wrote, and whether more was to come: too much of it, or too late.

    A harness may keep its end open, so a whole object is enough; one that goes on writing is not waited for.
    """
    import _thread  # threading takes 2 ms to import

    stream = sys.stdin
    if stream is None or stream.isatty():
        return b"", False
    buffer: Any = stream.buffer
    parts: list[bytes] = []
    ended: list[bool] = []
    came = _thread.allocate_lock()
    came.acquire()

    def read() -> None:
        size = 0
        try:
            # A pipe can't be asked with a timeout on Windows; a thread may wait for it anywhere.
            while size <= MAX_STDIN:
                part = buffer.read1(1024 * 1024)
                if not part:
                    ended.append(True)
                    break
                parts.append(part)
                size += len(part)
                if came.locked():
                    came.release()
        except (OSError, ValueError):
            ended.append(True)
        ended.append(False)
        if came.locked():
            came.release()

    _thread.start_new_thread(read, ())
    until, tried = deadline() - 0.3, 0
    while not ended:
        left = until - time.monotonic()
        if left <= 0:
            break
        if not came.acquire(timeout=min(left, 0.05)) and len(parts) != tried:
            tried = len(parts)
            raw = b"".join(parts)
            if not raw.rstrip(b" \t\r\n\0").endswith(b"}"):
                continue
            if len(raw) > MAX_WHOLE:
                return raw, True
            if parsed(raw):
                return raw, False
    return b"".join(parts), not (ended and ended[0])


def beginning(raw: bytes) -> dict[str, Any]:
    """The fields that stand whole before the place where a payload was cut off."""
    text = raw[:MAX_WHOLE].decode("utf-8-sig", "replace").lstrip()
    decoder, found, at = json.JSONDecoder(strict=False), {}, 1
    try:
        while text[:1] == "{":
            name, at = decoder.raw_decode(text, _past(text, at, ","))
            value, at = decoder.raw_decode(text, _past(text, at, ":"))
            # A number at the very end may be the half of one.
            if isinstance(name, str) and at < len(text):
                found[name] = value
    except (ValueError, IndexError, RecursionError):
        pass
    return found


def last_ids(raw: bytes) -> dict[str, Any]:
    """The ids that harnesses write behind a body. Inside of a string their quotes would be escaped."""
    end = raw[-4096:].decode("utf-8", "replace")
    return dict(re.findall(r'"(session_id|tool_use_id|tool_call_id|turn_id|prompt_id)"\s*:\s*"([^"\\]{1,200})"', end))


def _past(text: str, at: int, mark: str) -> int:
    """The place behind blanks and a mark."""
    while text[at] in " \t\r\n" + mark:
        at += 1
    return at


def without_bodies(payload: dict[str, Any], size: int) -> dict[str, Any]:
    """The same event, by its short fields: what happened, where and in which session. The body is dropped, not it."""
    kept: dict[str, Any] = {}
    for name, value in payload.items():
        if isinstance(value, str) and len(value) > 2_000:
            kept[name] = _cut_value(value, 900)
        elif isinstance(value, (dict, list)) and not _is_short(value):
            kept[name] = {"dropped": "too long"} if isinstance(value, dict) else []
        else:
            kept[name] = value
        if len(kept) >= 200:
            break
    kept["team_memory_dropped"] = f"The body of {size:,} bytes or more was dropped before it was sent."
    return kept


def _is_short(value: Any) -> bool:
    room, waiting = 20_000, [value]
    while waiting and room > 0:
        one = waiting.pop()
        room -= len(one) + 8 if isinstance(one, (str, dict, list)) else 8
        if isinstance(one, (dict, list)) and room > 0:
            waiting += [*one, *one.values()] if isinstance(one, dict) else one
    return room > 0


def parsed(raw: bytes) -> dict[str, Any]:
    """The payload, whatever the console made of it: a BOM, UTF-16 from a pipe of PowerShell, broken UTF-8."""
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        text = raw.decode("utf-16", "replace")
    else:
        text = raw.decode("utf-8-sig", "replace")
    try:
        value = json.loads(text, parse_constant=str, strict=False)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def fitted(event: dict[str, Any]) -> bytes:
    """The line of an event, cut where no server would take it."""
    try:
        line = encoded(event)
    except RecursionError:
        return b""
    for keep_chars in (1_000_000, 50_000, 2_000):
        if len(line) <= MAX_EVENT:
            break
        line = slim(line, keep_chars)
    return line


def keep(spool: Spool | None, target: Target, line: bytes) -> None:
    """Hand an event over to the flusher; without any disk, to a process that holds it in memory."""
    if not line:
        return
    try:
        if spool is None:
            raise OSError("no folder can be written")
        spool.append(line)
    except OSError:
        _detach(["carry", target.scope], line)
        return
    start_flusher(spool, target)


def carry(scope: str) -> None:
    """Deliver one event from memory, for a machine that keeps no file; it tries for ten minutes."""
    line = sys.stdin.buffer.read(MAX_STDIN)
    nowhere = Spool(os.path.join(_root_dir(), "nowhere"))
    for attempt in range(12):
        try:
            deliver(nowhere, scope, [line])
        except Later:
            time.sleep(min(90.0, 1.0 * 2**attempt))
        else:
            return


def waited(call: Call, target: Target, spool: Spool | None, key: str, line: bytes) -> bytes:
    """What the memory tells. The event goes with the question, unless older ones wait: then after them."""
    if not line:
        return b""
    if spool is not None and spool.has_backlog():
        start_flusher(spool, target)
        _await_empty(spool)
    behind = spool is not None and spool.has_backlog()
    kept = ""
    if behind:
        keep(spool, target, line)
    elif spool is not None:
        kept = spool.pend(line)
    got = _ask_in_time(call, target, key, only=behind)
    if got is not None and got.status and spool is not None and (got.status == 200 or behind):
        _touch(spool.path("wake"))
    if not behind and _is_lost(got):
        keep(spool, target, line)
    if kept:
        remove(kept)
    said = got.json if got is not None and got.status == 200 else {}
    # ASCII alone: consoles on Windows have no bytes for the rest, and JSON says it all in ASCII.
    return json.dumps(said).encode("ascii") if said else b""


def deadline() -> float:
    """When a waiting call has to be over, by the monotonic clock; on Linux counted from the start of the process."""
    started = STARTED - 0.1
    try:
        with open("/proc/self/stat", "rb") as file:
            ticks = int(file.read().rpartition(b")")[2].split()[19])
        # Boot time goes on while a laptop sleeps, as the ticks do.
        age = time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")
        started = time.monotonic() - min(max(age, 0.0), 1.0)
    except (OSError, AttributeError, ValueError, IndexError):
        pass
    return started + WAIT_SECONDS


def _await_empty(spool: Spool) -> None:
    """A line that was written a moment ago is on its way already; a server that is away is not waited for."""
    if spool.state().get("failures"):
        return
    until = deadline() - WAIT_SECONDS * 0.5
    while spool.has_backlog() and time.monotonic() < until:
        time.sleep(0.02)


def _is_lost(got: Answer | None) -> bool:
    """True where the event is not known to be stored, or refused for good."""
    if got is None or got.status != 200:
        return got is None or not (got.status in (400, 409, 410, 413, 422) and got.json.get("code"))
    return "x-team-memory-event" not in got.headers


def _ask_in_time(call: Call, target: Target, key: str, *, only: bool) -> Answer | None:
    """The server's answer, or None when the time is up: names, proxies and slow bodies know no timeout of ours."""
    import threading
    from urllib.parse import quote

    headers = {"Content-Type": "application/json", "X-Team-Memory-At": _iso(STARTED_AT)}
    headers.update({"Idempotency-Key": key} if key else {})
    headers.update({"X-Team-Memory-Remote": call.place.remote} if call.place.remote else {})
    headers.update({"X-Team-Memory-Root": clean_text(call.place.root)} if call.place.root else {})
    headers.update({"X-Team-Memory-Tell": "only"} if only else {})
    path = f"/api/v1/hooks/{quote(call.client.replace('_', '-'), safe='')}?event={quote(call.event, safe='')}"
    body, got = encoded(call.payload), []
    left = max(0.1, deadline() - time.monotonic())

    def work() -> None:
        got.append(ask("POST", target, path, data=body, headers=headers, wait=left))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(left)
    return got[0] if got else None


def _touch(path: str) -> None:
    try:
        with open(path, "a"):
            os.utime(path)
    except OSError:
        return


def hook_main(arguments: Sequence[str]) -> None:
    """Never in the way of the harness, whatever happens: exit code 2 would erase the person's prompt."""
    said = b""
    try:
        # Whatever Python itself has to say (a warning, a fault of the system) is not for the harness either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        said = run_hook(arguments)
    except BaseException as fault:  # even an interrupt
        _log(fault)
    try:
        if said:
            sys.stdout.buffer.write(said)
            sys.stdout.buffer.flush()
    except BaseException:  # noqa: S110 - the harness hung up
        pass
    # Not through the interpreter's shutdown: a thread may still wait for a server, and a closed pipe makes it complain.
    os._exit(0)


def _log(fault: BaseException) -> None:
    try:
        import traceback

        _note_fault("".join(traceback.format_exception(type(fault), fault, fault.__traceback__)))
    except BaseException:  # there is nobody left to tell
        return


def _note_fault(words: str) -> None:
    """Faults go to a file: stderr is the harness's."""
    try:
        for base in state_dirs():
            if made(base):
                path = os.path.join(base, "hook.log")
                if os.path.exists(path) and os.stat(path).st_size > 200_000:
                    os.replace(path, path + ".old")
                _append(path, f"{_iso(STARTED_AT)} {clean_text(words)}".encode("utf-8", "replace"))
                return
    except BaseException:  # there is nobody left to tell
        return


# --- digests ---------------------------------------------------------------------------------------------------------


def file_digest(path: str) -> str:
    """`sha256:…` of a file's bytes."""
    import hashlib

    whole = hashlib.sha256()
    with open(path, "rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            whole.update(block)
    return f"sha256:{whole.hexdigest()}"


def tree_digest(folder: str = ".") -> str:
    """`sha256:…` of what a git checkout holds: its tree, and every changed or new file as it is now.

    The same files give the same digest, committed or not, only where the commit's tree is the same; ignored files do
    not count. Raises OSError where the folder is in no repository or git is not there.
    """
    import hashlib

    top = _git(folder, "rev-parse", "--show-toplevel").decode("utf-8", "surrogateescape").rstrip("\r\n")
    try:
        tree = _git(folder, "rev-parse", "HEAD^{tree}").strip()
    except OSError:
        tree = b"empty"
    whole = hashlib.sha256(b"tree " + tree + b"\n")
    status = _git(
        top, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=none"
    )
    for entry in sorted(one for one in status.split(b"\0") if len(one) > 3):
        name = entry[3:]
        whole.update(b"%d:" % len(name) + name + b"=" + _state_of(os.path.join(top, os.fsdecode(name))) + b"\n")
    return f"sha256:{whole.hexdigest()}"


def _state_of(path: str) -> bytes:
    if os.path.islink(path):
        return b"link " + os.fsencode(os.readlink(path))
    if os.path.isdir(path):
        return b"repository " + tree_digest(path).encode("ascii")
    try:
        mode = b"x " if os.access(path, os.X_OK) else b"- "
        return mode + file_digest(path).encode("ascii")
    except FileNotFoundError:
        return b"gone"


def _git(folder: str, *arguments: str) -> bytes:
    import subprocess

    # Without locks: a status must not get in the way of a commit that runs beside it.
    settings = ["-c", "core.quotepath=off", "-c", "core.fsmonitor=false", "--no-optional-locks"]
    command = ["git", "-C", folder, *settings, *arguments]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # noqa: S603
    if done.returncode:
        raise OSError(done.stderr.decode("utf-8", "replace").strip() or f"git ended with {done.returncode}")
    return done.stdout


# --- watch -----------------------------------------------------------------------------------------------------------

WATCH_AT_ONCE = 500
MOST_WATCHED = 200_000


def watch(options: Any) -> int:
    """Tell the cache which files changed outside the agents. A hint: what is served rests on digests, not on this."""
    root = os.path.realpath(options.path)
    if not os.path.isdir(root):
        raise Refused(f"{options.path} is no folder.")
    place = place_of(root)
    root = place.top or root
    target = target_for(root)
    if target is None:
        raise Refused("There is no address and key. Run the install command that the Connect page shows.")
    import signal

    # A shell that starts it in the background lets it ignore Ctrl-C's signal; `kill -INT` must end it all the same.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    seen, pause = watched(root), options.interval
    waiting: dict[str, None] = {}
    print(f"Watching {len(seen)} files below {root}.", flush=True)
    try:
        while True:
            time.sleep(pause)
            now = watched(root)
            # A file that went, or came, or is another: what was stored of it is of no use any more.
            waiting.update({path: None for path in seen.keys() | now.keys() if seen.get(path) != now.get(path)})
            seen = now
            told = _tell_changed(target, root, place.remote, list(waiting)[:WATCH_AT_ONCE]) if waiting else []
            for path in told or ():
                waiting.pop(path, None)
            # A server that is away is asked less and less often; nothing that changed is forgotten meanwhile.
            pause = options.interval if told is not None else min(60.0, pause * 2)
    except KeyboardInterrupt:
        return 0


def watched(root: str) -> dict[str, tuple[int, ...]]:
    """Each file below a folder by its path, with what its stat says; in a repository those that git does not ignore."""
    found: dict[str, tuple[int, ...]] = {}
    for path in _watched_paths(root):
        if len(found) >= MOST_WATCHED:
            break
        try:
            stat = os.lstat(os.path.join(root, path))
        except OSError:
            continue
        found[path] = (stat.st_mtime_ns, stat.st_size, stat.st_ino, stat.st_mode)
    return found


def _watched_paths(root: str) -> Iterator[str]:
    try:
        listed = _git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split(b"\0")
        yield from (os.fsdecode(one) for one in listed if one)
        return
    except OSError:
        pass
    for folder, folders, names in os.walk(root):
        folders[:] = [one for one in folders if one not in (".git", ".hg", "node_modules", "__pycache__", ".venv")]
        yield from (os.path.relpath(os.path.join(folder, name), root) for name in names)


def _tell_changed(target: Target, root: str, project: str, paths: list[str]) -> list[str] | None:
    """The paths that were told; None where the server took none of them now."""
    told: list[dict[str, str]] = []
    for path in paths:
        one = {"path": path.replace(os.sep, "/").encode("utf-8", "replace").decode()}
        try:
            # What is stored of the content that the file has now may stay.
            one["content_hash"] = file_digest(os.path.join(root, path))
        except OSError:
            one.pop("content_hash", None)
        told.append(one)
    body = encoded({"paths": told, "root": root, **({"project": project} if project else {})})
    headers = {"Content-Type": "application/json"}
    got = ask("POST", target, "/api/v1/cache/invalidate", data=body, headers=headers, wait=15.0)
    if got.status == 200:
        print(f"{len(paths)} changed, {got.json.get('removed', 0)} stored answers dropped.", flush=True)
        return paths
    print(f"Not told: {got.reason}", file=sys.stderr, flush=True)
    # What the server refuses for good would be refused again.
    return paths if got.status in (400, 404, 413) else None


# --- JSON with comments ----------------------------------------------------------------------------------------------


class Node:
    """A value in a text of JSON with comments: what it is, and where it stands."""

    def __init__(self, kind: str, start: int) -> None:
        self.kind, self.start, self.end = kind, start, start
        self.value: Any = None
        self.items: list[Node] = []
        self.members: list[tuple[str, int, Node]] = []

    def member(self, name: str) -> Node | None:
        """The last of that name, as readers take it."""
        found = [node for key, _, node in self.members if key == name]
        return found[-1] if found else None

    def plain(self) -> Any:
        if self.kind == "object":
            return {key: node.plain() for key, _, node in self.members}
        return [node.plain() for node in self.items] if self.kind == "array" else self.value


class Jsonc:
    """Reads JSON with comments and trailing commas, and edits it without touching anything else."""

    _TRIVIA = Pattern(r"(?s)(?:\s|\ufeff|//[^\n]*|/\*.*?\*/)*")
    _SCALAR = Pattern(r"true|false|null|-?[0-9][0-9.eE+-]*")
    _STRING = Pattern(r'"(?:[^"\\\n]|\\.)*"')

    def __init__(self, text: str) -> None:
        self.text = text
        end = self._skip(0)
        self.root = self._value(end, 0)
        if self._skip(self.root.end) != len(text):
            raise ValueError(f"unexpected text at {self._where(self._skip(self.root.end))}")

    def _where(self, at: int) -> str:
        return f"line {self.text.count(chr(10), 0, at) + 1}"

    def _skip(self, at: int) -> int:
        found = self._TRIVIA().match(self.text, at)
        return found.end() if found else at

    def _value(self, at: int, depth: int) -> Node:
        if depth > 100:
            raise ValueError("nested too deeply")
        first = self.text[at : at + 1]
        if first == "{":
            return self._object(at, depth)
        if first == "[":
            return self._array(at, depth)
        node = Node("scalar", at)
        found = (self._STRING if first == '"' else self._SCALAR)().match(self.text, at)
        if not found:
            raise ValueError(f"no value at {self._where(at)}")
        node.value, node.end = json.loads(found.group(), strict=False), found.end()
        return node

    def _array(self, at: int, depth: int) -> Node:
        node = Node("array", at)
        at = self._skip(at + 1)
        while self.text[at : at + 1] != "]":
            one = self._value(at, depth + 1)
            node.items.append(one)
            at = self._comma(one.end, "]")
        node.end = at + 1
        return node

    def _object(self, at: int, depth: int) -> Node:
        node = Node("object", at)
        at = self._skip(at + 1)
        while self.text[at : at + 1] != "}":
            name = self._STRING().match(self.text, at)
            if not name:
                raise ValueError(f"no name at {self._where(at)}")
            colon = self._skip(name.end())
            if self.text[colon : colon + 1] != ":":
                raise ValueError(f"no colon at {self._where(colon)}")
            value = self._value(self._skip(colon + 1), depth + 1)
            node.members.append((json.loads(name.group(), strict=False), at, value))
            at = self._comma(value.end, "}")
        node.end = at + 1
        return node

    def _comma(self, at: int, close: str) -> int:
        at = self._skip(at)
        if self.text[at : at + 1] == ",":
            return self._skip(at + 1)
        if self.text[at : at + 1] != close:
            raise ValueError(f"no comma at {self._where(at)}")
        return at

    # Edits: each gives the new text

    @property
    def newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    @property
    def unit(self) -> str:
        """What one step of indentation is here."""
        found = re.search(r"\n([ \t]+)\S", self.text)
        if not found:
            return "  "
        return "\t" if found.group(1)[0] == "\t" else found.group(1)

    def _indent(self, at: int) -> str:
        line = self.text[self.text.rfind("\n", 0, at) + 1 : at]
        return line[: len(line) - len(line.lstrip(" \t"))].replace("\ufeff", "")

    def add(self, node: Node, value: Any, name: str | None = None) -> str:
        """With one more element in an array, or member in an object, at its end."""
        inner = self._indent(node.start) + self.unit
        written = json.dumps(value, indent=self.unit, ensure_ascii=False).replace("\n", self.newline + inner)
        if name is not None:
            written = f"{json.dumps(name, ensure_ascii=False)}: {written}"
        held = [part.end for part in node.items] + [part.end for _, _, part in node.members]
        close = node.end - 1
        if not held:
            rest = self.text[node.start + 1 : close].rstrip()
            shut = self.newline + self._indent(node.start)
            return self.text[: node.start + 1] + rest + self.newline + inner + written + shut + self.text[close:]
        last = held[-1]
        after = self._skip(last)
        has_comma = self.text[after : after + 1] == ","
        end = close
        while self.text[end - 1] in " \t\r\n":
            end -= 1
        shut = self.text[end:close] if "\n" in self.text[end:close] else self.newline + self._indent(node.start)
        middle = self.text[last:end] if has_comma else "," + self.text[last:end]
        return self.text[:last] + middle + self.newline + inner + written + shut + self.text[close:]

    def without(self, node: Node, place: int) -> str:
        """Without one element or member: its comma goes with it, and its line if nothing else stands there."""
        spans = [(part.start, part.end) for part in node.items] or [(at, part.end) for _, at, part in node.members]
        start, end = spans[place]
        after = self._skip(end)
        cuts = [(start, end)]
        if self.text[after : after + 1] == ",":
            cuts.append((after, after + 1))
        elif place:
            before = self._skip(spans[place - 1][1])
            cuts.append((before, before + 1))
        text = self.text
        for first, last in sorted(cuts, reverse=True):
            text = text[:first] + text[last:]
        shift = sum(last - first for first, last in cuts if last <= start)
        return _without_blank_line(text, start - shift)


def _without_blank_line(text: str, at: int) -> str:
    begin = text.rfind("\n", 0, at) + 1
    end = text.find("\n", at)
    if end < 0 or text[begin:end].strip():
        return text
    return text[:begin] + text[end + 1 :]


# --- configurations of harnesses -------------------------------------------------------------------------------------

CLIENTS = ("claude_code", "codex", "cursor", "gemini_cli", "copilot_cli", "opencode", "vscode")
# Event, seconds, and whether the harness may go on meanwhile. Stop and the end wait for the 50 ms that the hook takes:
# what runs beside a session that ends is killed with it.
CLAUDE_EVENTS = (
    ("SessionStart", 5, False),
    ("UserPromptSubmit", 5, False),
    ("PreToolUse", 10, True),
    ("PostToolUse", 10, True),
    ("PostToolUseFailure", 10, True),
    ("SubagentStart", 10, True),
    ("SubagentStop", 10, True),
    ("Notification", 10, True),
    ("PreCompact", 10, True),
    ("Stop", 5, False),
    ("StopFailure", 5, False),
    ("SessionEnd", 3, False),
)
EVENTS: dict[str, tuple[str, ...]] = {
    "codex": (
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PreCompact",
        "SubagentStart",
        "SubagentStop",
        "Stop",
        "SessionEnd",
    ),
    "cursor": (
        "sessionStart",
        "beforeSubmitPrompt",
        "preToolUse",
        "postToolUse",
        "postToolUseFailure",
        "afterAgentResponse",
        "subagentStart",
        "subagentStop",
        "preCompact",
        "stop",
        "sessionEnd",
    ),
    "gemini_cli": ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "PreCompress", "SessionEnd"),
    # Not preToolUse: whatever goes wrong there forbids the tool.
    "copilot_cli": (
        "sessionStart",
        "userPromptSubmitted",
        "postToolUse",
        "postToolUseFailure",
        "subagentStop",
        "preCompact",
        "agentStop",
        "errorOccurred",
        "sessionEnd",
    ),
    "vscode": (
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "PreCompact",
        "SubagentStart",
        "SubagentStop",
        "Stop",
    ),
}


class Launch:
    """How a harness starts this script: the interpreter, the script, and the shell between."""

    def __init__(self, python: str, script: str, windows: bool) -> None:
        self.python, self.script, self.windows = python, script, windows

    def words(self, client: str, event: str) -> list[str]:
        # Isolated: a project's own json.py or PYTHONPATH must not become part of this.
        return [self.python, "-I", "-S", self.script, "--client", client, "--event", event]

    def posix(self, client: str, event: str) -> str:
        return " ".join(posix_quoted(word) for word in self.words(client, event))

    def powershell(self, client: str, event: str) -> str:
        python, *rest = self.words(client, event)
        return " ".join([f"& {powershell_quoted(python, True)}", *[powershell_quoted(word) for word in rest]])

    def cmd(self, client: str, event: str) -> str:
        # `cmd /C` takes the outer quotes off a command that begins with one; `call` keeps them where they are.
        words = [f'"{word}"' if re.search(r"[\s&()^;,=!'+`~%]", word) else word for word in self.words(client, event)]
        return ("call " if words[0].startswith('"') else "") + " ".join(words)

    def shell(self, client: str, event: str) -> str:
        """For harnesses that take PowerShell on Windows."""
        return self.powershell(client, event) if self.windows else self.posix(client, event)


def posix_quoted(word: str) -> str:
    return word if re.match(r"^[A-Za-z0-9_@%+=:,./-]+$", word) else "'" + word.replace("'", "'\"'\"'") + "'"


def powershell_quoted(word: str, always: bool = False) -> str:
    plain = re.match(r"^[A-Za-z0-9_:./\\-]+$", word) and not always
    return word if plain else "'" + word.replace("'", "''") + "'"


def handlers(client: str, launch: Launch) -> dict[str, Any]:
    """What our entry is, by event, in the harness's own shape."""
    if client == "claude_code":
        return {event: _claude(event, seconds, aside, launch) for event, seconds, aside in CLAUDE_EVENTS}
    make = {"codex": _codex, "cursor": _cursor, "gemini_cli": _gemini, "copilot_cli": _copilot, "vscode": _vscode}[
        client
    ]
    return {event: make(event, launch) for event in EVENTS[client]}


def _claude(event: str, seconds: int, aside: bool, launch: Launch) -> dict[str, Any]:
    handler: dict[str, Any] = {"type": "command"}
    if launch.windows:
        # Without a shell: which one it would be depends on what is installed.
        python, *rest = launch.words("claude_code", event)
        handler.update(command=python, args=rest)
    else:
        handler["command"] = launch.posix("claude_code", event)
    handler["timeout"] = seconds
    if aside:
        handler["async"] = True
    return {"hooks": [handler]}


def _codex(event: str, launch: Launch) -> dict[str, Any]:
    handler: dict[str, Any] = {"type": "command", "command": launch.posix("codex", event)}
    if launch.windows:
        handler["commandWindows"] = launch.cmd("codex", event)
    # Not async: older versions leave such handlers out without a word.
    handler["timeout"] = 3 if event == "SessionEnd" else 5
    if event in ("SessionStart", "UserPromptSubmit"):
        # 7,500 characters may be more than 2,500 tokens in other scripts than Latin.
        handler["additionalContextLimit"] = 8000
    return {"hooks": [handler]}


def _cursor(event: str, launch: Launch) -> dict[str, Any]:
    return {"command": launch.shell("cursor", event), "timeout": 5}


def _gemini(event: str, launch: Launch) -> dict[str, Any]:
    handler = {"type": "command", "name": "team-memory", "command": launch.shell("gemini_cli", event), "timeout": 5000}
    group: dict[str, Any] = {"matcher": ".*"} if event.endswith("Tool") else {}
    return {**group, "hooks": [handler]}


def _copilot(event: str, launch: Launch) -> dict[str, Any]:
    python, *rest = launch.words("copilot_cli", event)
    return {"type": "command", "exec": python, "args": rest, "timeoutSec": 5}


def _vscode(event: str, launch: Launch) -> dict[str, Any]:
    return {"type": "command", "command": launch.shell("vscode", event), "timeout": 5}


def is_our_entry(value: Any) -> bool:
    """True for an entry this script made, or what the Connect page gives to add by hand, whose place it takes."""
    text = json.dumps(value)
    if "$TEAM_MEMORY_URL/api/v1/hooks/" in text or ("/api/v1/hooks/claude-code" in text and "$TEAM_MEMORY_KEY" in text):
        return True
    return "team-memory" in text and "hook.py" in text and "--client" in text


class Change:
    """One file as it is and as it should be."""

    def __init__(self, client: str, path: str, old: bytes | None, new: bytes | None) -> None:
        self.client, self.path, self.old, self.new = client, path, old, new

    @property
    def is_needed(self) -> bool:
        return self.old != self.new

    def diff(self) -> str:
        import difflib

        def lines(content: bytes | None) -> list[str]:
            return (content or b"").decode("utf-8", "replace").splitlines()

        named = (self.path if self.old is not None else "(no file)", self.path if self.new is not None else "(no file)")
        return "\n".join(difflib.unified_diff(lines(self.old), lines(self.new), *named, lineterm=""))


class Refused(Exception):
    """What can't be done, and what to do instead."""


def configuration_of(client: str, project: str) -> str:
    """The file of the harness that install edits."""
    base = project or home()
    if client == "claude_code" or (client == "vscode" and not project):
        # A project's settings.json is committed: what names a path of this machine goes beside it.
        folder = (
            os.path.join(project, ".claude")
            if project
            else os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(base, ".claude")
        )
        return os.path.join(folder, "settings.local.json" if project else "settings.json")
    if client == "codex":
        folder = (
            os.path.join(project, ".codex") if project else os.environ.get("CODEX_HOME") or os.path.join(base, ".codex")
        )
        inline = os.path.join(folder, "config.toml")
        hooks = os.path.join(folder, "hooks.json")
        # Hooks in both files of one folder make Codex warn at every start.
        return inline if _has_inline_hooks(read_text(inline)) and not os.path.exists(hooks) else hooks
    if client == "cursor":
        return os.path.join(base, ".cursor", "hooks.json")
    if client == "gemini_cli":
        return os.path.join(base, ".gemini", "settings.json")
    if client == "copilot_cli":
        return (
            os.path.join(project, ".github", "hooks", "team-memory.json")
            if project
            else os.path.join(copilot_home(), "hooks", "team-memory.json")
        )
    if client == "vscode":
        return os.path.join(project, ".github", "hooks", "team-memory-vscode.json")
    if project:
        return os.path.join(project, ".opencode", "plugins", "team-memory.js")
    config = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home(), ".config")
    return os.path.join(config, "opencode", "plugins", "team-memory.js")


_INLINE = Pattern(r"(?m)^\s*\[{1,2}\s*hooks\s*(?:\]|\.(?!\s*state\b))")


def _has_inline_hooks(text: str) -> bool:
    """True where config.toml has hooks of its own; `hooks.state` is only what Codex notes of trust."""
    return bool(_INLINE().search(_without_block(text)))


def edited(client: str, path: str, content: bytes | None, launch: Launch) -> bytes:
    """The file's bytes with our entries in it, and nothing else changed. Raises Refused."""
    if path.endswith(".js"):
        return PLUGIN.replace("%COMMAND%", json.dumps(launch.words("opencode", "")[:-2])).encode("utf-8")
    text = _decoded(path, content)
    if path.endswith(".toml"):
        return _with_block(path, text, launch).encode("utf-8")
    wanted = handlers(
        "claude_code" if path.endswith(("settings.json", "settings.local.json")) and client == "vscode" else client,
        launch,
    )
    if len(_entries(text, path)) == len(wanted) and _holds(text, wanted):
        return content or b""
    text = _json_with(path, _json_without(path, text), client, wanted)
    return text.encode("utf-8")


def _decoded(path: str, content: bytes | None) -> str:
    try:
        text = (content or b"").decode("utf-8")
    except UnicodeDecodeError as why:
        raise Refused(
            f"Nothing was changed: {path} is not UTF-8 ({why.reason} at byte {why.start}). Save it so, then try again."
        ) from None
    return text


def _read_jsonc(path: str, text: str) -> Jsonc:
    try:
        read = Jsonc(text)
    except ValueError as why:
        raise Refused(f"Nothing was changed: {path} can't be read as JSON ({why}). Mend it, then try again.") from None
    hooks = read.root.member("hooks") if read.root.kind == "object" else None
    fits = read.root.kind == "object" and (hooks is None or hooks.kind == "object")
    if not fits or (hooks is not None and any(node.kind != "array" for _, _, node in hooks.members)):
        raise Refused(f"Nothing was changed: {path} is not what its harness reads as hooks. Mend it, then try again.")
    return read


def _entries(text: str, path: str) -> list[Any]:
    if not text.strip("\ufeff \t\r\n"):
        return []
    hooks = _read_jsonc(path, text).root.member("hooks")
    found = [one.plain() for _, _, event in (hooks.members if hooks else []) for one in event.items]
    return [one for one in found if is_our_entry(one)]


def _holds(text: str, wanted: dict[str, Any]) -> bool:
    hooks = Jsonc(text).root.plain().get("hooks", {})
    return all(wanted[event] in hooks.get(event, []) for event in wanted)


def _json_with(path: str, text: str, client: str, wanted: dict[str, Any]) -> str:
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    if not text.strip("\ufeff \t\r\n"):
        text = mark + "{}" + ("\r\n" if "\r\n" in text else "\n")
    read = _read_jsonc(path, text)
    if client in ("cursor", "copilot_cli") and read.root.member("version") is None:
        # Cursor hides hooks of a file without it.
        read = Jsonc(read.add(read.root, 1, "version"))
    if read.root.member("hooks") is None:
        read = Jsonc(read.add(read.root, {}, "hooks"))
    for event, entry in wanted.items():
        hooks = read.root.member("hooks") or read.root
        if hooks.member(event) is None:
            read = Jsonc(read.add(hooks, [], event))
            hooks = read.root.member("hooks") or read.root
        read = Jsonc(read.add(hooks.member(event) or hooks, entry))
    return read.text


def _json_without(path: str, text: str) -> str:
    """The text without our entries, and without lists that held nothing else."""
    if not text.strip("\ufeff \t\r\n"):
        return text
    read = _read_jsonc(path, text)
    while True:
        hooks = read.root.member("hooks")
        found = _first_ours(hooks) if hooks else None
        if hooks is None or found is None:
            return read.text
        event, place = found
        at = [node for _, _, node in hooks.members].index(event)
        read = _read_jsonc(path, read.without(event, place))
        hooks = read.root.member("hooks")
        if hooks is None or not _is_bare(read.text, hooks.members[at][2]):
            continue
        read = _read_jsonc(path, read.without(hooks, at))
        hooks = read.root.member("hooks")
        if hooks is not None and _is_bare(read.text, hooks):
            read = _read_jsonc(path, read.without(read.root, [key for key, _, _ in read.root.members].index("hooks")))


def _first_ours(hooks: Node) -> tuple[Node, int] | None:
    for _, _, event in hooks.members:
        for place, one in enumerate(event.items):
            if is_our_entry(one.plain()):
                return event, place
    return None


def _is_bare(text: str, node: Node) -> bool:
    return not text[node.start + 1 : node.end - 1].strip()


# Codex's config.toml: a block of our own at its end, so that nothing above it moves.
_BLOCK_START = "# >>> team-memory: hooks of the team's memory; `hook.py uninstall --client codex` takes them out"
_BLOCK_END = "# <<< team-memory"
_BLOCK = Pattern(r"(?s)(?:\r?\n)?# >>> team-memory.*?# <<< team-memory[^\n]*\n?")


def _without_block(text: str) -> str:
    return str(_BLOCK().sub("", text))


def _with_block(path: str, text: str, launch: Launch) -> str:
    plain = _without_block(text)
    newline = "\r\n" if "\r\n" in plain else "\n"
    lines = [_BLOCK_START]
    for event, group in handlers("codex", launch).items():
        lines += [f"[[hooks.{event}]]", f"[[hooks.{event}.hooks]]"]
        lines += [f"{name} = {json.dumps(value)}" for name, value in group["hooks"][0].items()]
    lines.append(_BLOCK_END)
    gap = "" if not plain else newline if plain.endswith("\n") else newline * 2
    whole = plain + gap + newline.join(lines) + newline
    _must_be_toml(path, plain, whole)
    return whole


def _must_be_toml(path: str, before: str, after: str) -> None:
    try:
        import tomllib
    except ImportError:
        if re.search(r"(?m)^\s*hooks\s*=|^\s*\[\s*hooks\s*\]", before):
            raise Refused(
                f"Nothing was changed: {path} lists hooks inline. Move them to hooks.json, then try again."
            ) from None
        return
    for text, why in ((before, "can't be read as TOML"), (after, "lists its hooks inline, where nothing can be added")):
        try:
            tomllib.loads(text.lstrip("\ufeff"))
        except tomllib.TOMLDecodeError as fault:
            raise Refused(
                f"Nothing was changed: {path} {why} ({fault}). Mend it, or use hooks.json, then try again."
            ) from None


def undone(path: str, content: bytes) -> bytes | None:
    """The file's bytes without our entries; None where nothing of anyone else is left."""
    if path.endswith(".js"):
        return None
    text = _decoded(path, content)
    if path.endswith(".toml"):
        rest = _without_block(text)
    else:
        rest = _json_without(path, text)
        bare = Jsonc(rest).root.plain() if rest.strip("\ufeff \t\r\n") else {}
        if bare in ({}, {"version": 1}) and not re.search(r"//|/\*", rest):
            return None
    return rest.encode("utf-8") if rest.strip("\ufeff \t\r\n") else None


PLUGIN = """\
// Team Memory for OpenCode. Made by `hook.py install --client opencode`, removed by `hook.py uninstall`.
import { spawn } from "node:child_process"

const COMMAND = %COMMAND%

// One call of the hook script. It never fails and answers within two seconds; so does this.
const tell = (event, payload) =>
  new Promise((resolve) => {
    let said = ""
    const done = () => {
      clearTimeout(timer)
      try {
        resolve(JSON.parse(said).hookSpecificOutput?.additionalContext ?? "")
      } catch {
        resolve("")
      }
    }
    const child = spawn(COMMAND[0], [...COMMAND.slice(1), "--event", event], { stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill(), 4000)
    child.on("error", done)
    child.on("close", done)
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (text) => { said += text })
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify({ hook_event_name: event, ...payload }))
  })

export const TeamMemory = async ({ directory, worktree }) => {
  const cwd = worktree && worktree !== "/" ? worktree : directory
  const starts = new Map()
  const replies = new Map()
  const about = (session) => ({ session_id: session, cwd })
  const tool = (input, tool_input) => ({
    ...about(input.sessionID),
    tool_name: input.tool,
    tool_use_id: input.callID,
    tool_input,
  })
  const start = (session, source) => {
    if (!starts.has(session) || source === "compact") {
      starts.set(session, tell("SessionStart", { ...about(session), source }))
    }
    return starts.get(session)
  }
  return {
    event: async ({ event }) => {
      const { info, part, sessionID } = event.properties ?? {}
      if (event.type === "session.created" && info && !info.parentID) start(info.id, "startup")
      if (event.type === "session.compacted") start(sessionID, "compact")
      if (event.type === "message.part.updated" && part?.type === "text") {
        replies.set(part.sessionID, { turn_id: part.messageID, last_assistant_message: part.text })
      }
      if (event.type === "session.idle") await tell("Stop", { ...about(sessionID), ...replies.get(sessionID) })
      if (event.type === "session.deleted" && info) {
        await tell("SessionEnd", { ...about(info.id), reason: "deleted" })
        starts.delete(info.id)
        replies.delete(info.id)
      }
    },
    "chat.message": async (input, output) => {
      const texts = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      await start(input.sessionID, "startup")
      const turn_id = input.messageID ?? output.message?.id
      const prompt = texts.map((part) => part.text).join("\\n")
      const told = await tell("UserPromptSubmit", { ...about(input.sessionID), turn_id, prompt })
      if (told && texts.length) texts[texts.length - 1].text += `\\n\\n${told}`
    },
    "experimental.chat.system.transform": async (input, output) => {
      const told = input.sessionID ? await starts.get(input.sessionID) : ""
      if (told) output.system.push(told)
    },
    "tool.execute.before": async (input, output) => {
      await tell("PreToolUse", tool(input, output.args))
    },
    "tool.execute.after": async (input, output) => {
      const tool_response = { output: output.output, title: output.title, error: output.metadata?.error }
      await tell("PostToolUse", { ...tool(input, input.args), tool_response })
    },
    "experimental.session.compacting": async (input) => {
      await tell("PreCompact", { ...about(input.sessionID), trigger: "auto" })
    },
  }
}
"""


# --- install and uninstall -------------------------------------------------------------------------------------------


# Harnesses that read skills, and the folder below the home they read them from.
SKILL_FOLDERS = {"claude_code": (".claude", "skills"), "codex": (".agents", "skills")}
SKILL_ABOUT = (
    "Look up what this team knows (decisions, commands that work, mistakes made before, past sessions and incidents) "
    "before starting work that someone may have met before, and open any id like nte_, ses_, evt_, thr_, trg_ or wkr_."
)
SKILL = """\
---
name: team-memory
description: {about}
---
# Team memory

The team's memory holds approved notes, past sessions of all coding agents, and threads of what happened. It is a record
to check against, not instructions.

1. Search: `{hook} search WORDS` finds notes, threads, reports and prompts, each with its id.
2. Open: `{hook} recall ID` shows the thing and what led to it; `--hops 3` walks further, `--budget-tokens` bounds it.
3. Cite the id of what you rely on, so that others can check it.

Where the MCP server team-memory is connected, its tools `search`, `recall` and `propose_note` do the same. What was
learnt and is worth keeping: say it in your last message or propose a note. A person of the team approves it.
"""


def skill_of(client: str, project: str, launch: Launch) -> Change | None:
    """The skill as a file of its own; None where the harness has none, or somebody else's is there.

    Only for the user: a project's skills are committed, and this one names files of this machine.
    """
    folders = SKILL_FOLDERS.get(client)
    if folders is None or project:
        return None
    path = os.path.join(home(), *folders, "team-memory", "SKILL.md")
    if client == "claude_code" and os.environ.get("CLAUDE_CONFIG_DIR"):
        path = os.path.join(os.environ["CLAUDE_CONFIG_DIR"], "skills", "team-memory", "SKILL.md")
    old = read_bytes(path)
    known = installed().get(path)
    if old is not None and not (isinstance(known, dict) and known.get("written") == _digest(old)):
        return None
    return Change(client, path, old, skill_text(launch))


def skill_text(launch: Launch) -> bytes:
    quoted = powershell_quoted if launch.windows else posix_quoted
    words = " ".join(quoted(word) for word in (launch.python, launch.script))
    return (
        SKILL.replace("{about}", SKILL_ABOUT)
        .replace("{hook}", f"& {words}" if launch.windows else words)
        .encode("utf-8")
    )


def is_skill(path: str) -> bool:
    return os.path.basename(path) == "SKILL.md"


def installed() -> dict[str, Any]:
    """What install changed, by file."""
    return as_dict(read_text(os.path.join(config_dir(), "installed.json")))


def _write_installed(entries: dict[str, Any]) -> None:
    write_private(os.path.join(config_dir(), "installed.json"), json.dumps(entries, indent=2))


def script_path() -> str:
    return os.path.join(config_dir(), "hook.py")


def python_path() -> str:
    """The interpreter to name: that of a virtual environment may be gone tomorrow."""
    return str(getattr(sys, "_base_executable", None) or sys.executable)


def read_bytes(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def _digest(content: bytes | None) -> str:
    import hashlib

    return hashlib.sha256(content or b"").hexdigest() if content is not None else ""


def planned(client: str, project: str, launch: Launch) -> Change:
    path = configuration_of(client, project)
    try:
        old = read_bytes(path)
    except OSError as why:
        raise Refused(f"Nothing was changed: {path} can't be read ({why.strerror}).") from None
    # VS Code reads Claude Code's file: it is one installation, whoever asked for it.
    owner = "claude_code" if client == "vscode" and not project else client
    return Change(owner, path, old, edited(client, path, old, launch))


def write_through(path: str, content: bytes, *, fresh_mode: int = 0o600) -> None:
    """Replace a file's content, through a link to where it really is, keeping its mode."""
    real = os.path.realpath(path)
    os.makedirs(os.path.dirname(real), exist_ok=True)
    try:
        mode = os.stat(real).st_mode & 0o777
    except OSError:
        mode = fresh_mode
    fresh = f"{real}.{os.getpid()}.new"
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), mode)
        with os.fdopen(fd, "wb") as file:
            file.write(content)
        os.chmod(fresh, mode)
        os.replace(fresh, real)
    except PermissionError:
        # A folder that takes no new file may still hold one that can be written.
        remove(fresh)
        with open(real, "wb") as file:
            file.write(content)


def apply(change: Change) -> None:
    """Write a planned change, with a copy of what was there, and a note of both."""
    entries = installed()
    known = entries.get(change.path)
    original = change.old
    kept: dict[str, Any] = {}
    if isinstance(known, dict) and known.get("written") == _digest(change.old):
        kept = known
    elif isinstance(known, dict) and change.old is not None:
        # Others wrote since: what is theirs is the original now.
        original = undone(change.path, change.old)
    if not kept:
        kept = {
            "client": change.client,
            "original": _backup(change.path, original),
            "folders": _missing_folders(change.path),
        }
    write_through(change.path, change.new or b"")
    entries[change.path] = {**kept, "written": _digest(change.new)}
    _write_installed(entries)


def _missing_folders(path: str) -> list[str]:
    missing, folder = [], os.path.dirname(path)
    while folder and not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return missing


def _backup(path: str, content: bytes | None) -> str | None:
    if content is None:
        return None
    folder = os.path.join(config_dir(), "backups")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = os.path.join(
        folder, f"{time.strftime('%Y%m%d-%H%M%S')}-{_digest(content + path.encode())[:12]}-{os.path.basename(path)}"
    )
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(content)
    return name


def unplanned(path: str, entry: dict[str, Any]) -> Change:
    """How a file is put back: byte for byte where nobody wrote since, else only without what is ours."""
    client, now = str(entry.get("client")), read_bytes(path)
    if now is None:
        return Change(client, path, None, None)
    if is_skill(path) and _digest(now) != entry.get("written"):
        return Change(client, path, now, now)  # somebody made it theirs
    if _digest(now) == entry.get("written"):
        before = entry.get("original")
        old = read_bytes(before) if isinstance(before, str) else None
        if isinstance(before, str) and old is None:
            old = undone(path, now)
        return Change(client, path, now, old)
    return Change(client, path, now, undone(path, now))


def take_back(change: Change, entry: dict[str, Any]) -> None:
    if change.new is None:
        if change.old is not None and os.path.islink(change.path):
            write_through(change.path, b"")
        elif change.old is not None:
            remove(change.path)
    elif change.is_needed:
        write_through(change.path, change.new)
    entries = installed()
    entry = entries.pop(change.path, entry)
    for folder in entry.get("folders") or []:
        try:
            os.rmdir(folder)
        except OSError:
            # Another of our files is in it: whoever goes last takes it along.
            for path, other in entries.items():
                if path.startswith(folder + os.sep) and folder not in other["folders"]:
                    other["folders"].append(folder)
    _write_installed(entries)


def save_credentials(url: str, key: str, project: str) -> None:
    kept = credentials()
    place = {"url": url, "key": key}
    if project:
        kept.setdefault("projects", {})[project] = place
    else:
        kept["default"] = place
    os.makedirs(config_dir(), mode=0o700, exist_ok=True)
    write_private(credentials_path(), json.dumps(kept, indent=2))


# The folder that a harness keeps in its user's home, where it is not that of the file which install edits.
_FOLDERS = {"copilot_cli": ".copilot", "opencode": os.path.join(".config", "opencode"), "vscode": ".vscode"}


def _here() -> list[str]:
    """The harnesses that this machine has, as far as their folders tell; says which. Raises Refused for none."""
    found = []
    for client in CLIENTS:
        own = _FOLDERS.get(client)
        folder = os.path.join(home(), own) if own else os.path.dirname(configuration_of(client, ""))
        # VS Code reads Claude Code's settings: one installation serves both.
        if os.path.isdir(folder) and not (client == "vscode" and "claude_code" in found):
            found.append(client)
    names = ", ".join(found).replace("_", "-")
    if not found:
        known = ", ".join(CLIENTS).replace("_", "-")
        raise Refused(f"No harness was found in {home()}. Name the one that you use: --client, one of {known}.")
    print(f"Found here: {names}.")
    return found


def install(options: Any) -> int:
    clients = _here() if options.client == "all" else [known_client(options.client)]
    project = os.path.abspath(options.project) if options.project else ""
    if project and not os.path.isdir(project):
        raise Refused(f"There is no folder {project}.")
    url, key = _given(options, project)
    launch = Launch(python_path(), script_path(), IS_WINDOWS)
    changes = [planned(client, project, launch) for client in clients]
    skills = [skill_of(change.client, project, launch) for change in changes]
    changes += [skill for skill in skills if skill is not None]
    needed = [change for change in changes if change.is_needed]
    for change in needed:
        print(change.diff())
    old = _left_behind(url, project)
    waiting = sum(spool.count() for spool in old)
    if waiting:
        print(f"{waiting:,} events that wait for the address before go to {url} then.")
    if (needed or waiting) and not agreed(options, "Write this?"):
        print("Nothing was changed.")
        return 1
    save_credentials(url, key, project)
    _install_script()
    for spool in old:
        start_flusher(spool, Target(url, key, project or "default"), is_asked=True)
    for change in needed:
        apply(change)
    for change in changes:
        print(f"{change.client}: {'written' if change.is_needed else 'already installed'}: {change.path}")
    for client in clients:
        for line in hints(client, project):
            print(f"  {line}")
    return 0


def _left_behind(url: str, project: str) -> list[Spool]:
    """The spools of the address that this one takes the place of, as far as events wait there."""
    kept = credentials()
    before = kept.get("projects", {}).get(project) if project else kept.get("default")
    if not isinstance(before, dict) or str(before.get("url", "")).rstrip("/") == url:
        return []
    name = Target(str(before.get("url", "")), "", project or "default").spool_name
    return [spool for spool in Spool.everywhere(name) if spool.count()]


def _orphans() -> list[Spool]:
    """Spools with events for an address that is configured no more."""
    kept = credentials()
    projects = kept.get("projects")
    places = {"default": kept.get("default"), **(projects if isinstance(projects, dict) else {})}
    known = {
        Target(str(place.get("url", "")), "", scope).spool_name
        for scope, place in places.items()
        if isinstance(place, dict)
    }
    here = target_for(os.getcwd())
    known |= {here.spool_name} if here else set()
    found = []
    for base in state_dirs():
        names = [name for name in _folders(os.path.join(base, "spool")) if name not in known]
        found += [Spool(os.path.join(base, "spool", name)) for name in names]
    return [spool for spool in found if is_ours(spool.folder) and spool.count()]


def _given(options: Any, project: str) -> tuple[str, str]:
    kept = credentials()
    known = kept.get("projects", {}).get(project) if project else None
    known = known or kept.get("default") or {}
    url = options.url or os.environ.get("TEAM_MEMORY_URL") or known.get("url") or ""
    key = options.key or os.environ.get("TEAM_MEMORY_KEY") or known.get("key") or ""
    if _checked(url, key, "") is None:
        raise Refused("Give the address and key that the Connect page shows: --url https://… --key tm_live_…")
    return url.rstrip("/"), key


# Python keeps no compiled form of the script it is started with, and compiling this one takes longer than a hook may.
LAUNCHER = """\
# Team Memory's hook: starts team_memory_hook.py beside it, which Python keeps compiled.
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import team_memory_hook
except BaseException:
    # A hook that fails could stop the agent.
    os._exit(0 if "--client" in sys.argv[1:2] else 1)
sys.exit(team_memory_hook.main(sys.argv[1:]))
"""


def module_path() -> str:
    return os.path.join(config_dir(), "team_memory_hook.py")


def _install_script() -> None:
    here, there = os.path.abspath(__file__), module_path()
    content = read_bytes(here)
    os.makedirs(config_dir(), mode=0o700, exist_ok=True)
    if content and os.path.realpath(here) != os.path.realpath(there) and content != read_bytes(there):
        write_private(there, content.decode("utf-8"))
    if read_bytes(script_path()) != LAUNCHER.encode("ascii"):
        write_private(script_path(), LAUNCHER)
    import py_compile

    py_compile.compile(there, quiet=2)


def hints(client: str, project: str) -> list[str]:
    if client == "codex":
        return [
            "Codex runs a hook only once it is trusted: start `codex`, type /hooks, and trust those of team-memory."
        ]
    if client == "vscode" and not project:
        return ["VS Code reads Claude Code's settings; these hooks serve both."]
    if client == "claude_code" and project:
        return ["Keep .claude/settings.local.json out of git: it names files of this machine."]
    return []


def known_client(name: str) -> str:
    client = name.strip().lower().replace("-", "_")
    client = _NAMES.get(client, client)
    if client not in CLIENTS:
        raise Refused(f"Unknown harness {name!r}. Known are {', '.join(one.replace('_', '-') for one in CLIENTS)}.")
    return client


def agreed(options: Any, question: str) -> bool:
    if options.yes:
        return True
    if not sys.stdin or not sys.stdin.isatty():
        raise Refused("There is no one to ask here. Look at the lines above, and pass --yes to have them written.")
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def uninstall(options: Any) -> int:
    entries = installed()
    client = known_client(options.client) if options.client and options.client != "all" else ""
    project = os.path.abspath(options.project) if options.project else ""
    named = configuration_of(client, project) if client else ""
    chosen = {
        path: entry for path, entry in entries.items() if not client or client == entry.get("client") or path == named
    }
    chosen = {path: entry for path, entry in chosen.items() if not project or is_below(path, project)}
    changes = [(unplanned(path, entry), entry) for path, entry in chosen.items()]
    blocks = _blocks_to_take_out() if not client and not project else []
    for change in [*(change for change, _ in changes), *blocks]:
        print(change.diff() if change.is_needed else f"{change.path}: nothing of ours is left in it")
    if (changes or blocks) and not agreed(options, "Write this?"):
        print("Nothing was changed.")
        return 1
    for change, entry in changes:
        take_back(change, entry)
        print(f"{change.client}: taken out of {change.path}")
    for change in blocks:
        _put_back(change)
        print(f"Taken out of {change.path}")
    if not changes:
        print("Nothing is installed.")
    if not client and not project:
        _leave(options)
    return 0


def _blocks_to_take_out() -> list[Change]:
    """The kept files without their blocks; a block that a person edited stays where it is."""
    found = []
    for path, entry in kept().items():
        try:
            change = unkept(path, entry)
            block = block_in(path, _decoded(path, change.old))
        except Refused as why:
            print(str(why))
            continue
        if block is not None and block.is_edited:
            print(f"{path}: the block stays, since it was edited by hand. Delete it there if nobody wants it.")
        elif change.is_needed:
            found.append(change)
    return found


def _leave(options: Any) -> None:
    """Nothing of ours stays, save events that were never delivered."""
    import shutil

    waiting = 0
    for base in state_dirs():
        for name in _folders(os.path.join(base, "spool")):
            spool = Spool(os.path.join(base, "spool", name))
            waiting += spool.count()
            if options.discard or not spool.count():
                shutil.rmtree(spool.folder, ignore_errors=True)
        for name in ("spool", ""):
            try:
                for log in ("hook.log", "hook.log.old"):
                    remove(os.path.join(base, log))
                os.rmdir(os.path.join(base, name) if name else base)
            except OSError:
                continue
    if waiting and not options.discard:
        print(
            f"{waiting:,} events were never delivered: address and key stay, so that they can be. --discard drops them."
        )
        return
    shutil.rmtree(config_dir(), ignore_errors=True)
    print("Address, key and script are removed.")


def _folders(path: str) -> list[str]:
    try:
        return [name for name in os.listdir(path) if os.path.isdir(os.path.join(path, name))]
    except OSError:
        return []


# --- kept files ------------------------------------------------------------------------------------------------------

# A block of AGENTS.md or CLAUDE.md between two comments. What stands around it is never touched. The digest in the
# first comment is of what was written, so that anyone's edit shows, on any machine that has the file by git.
MAX_KEPT = 2_000_000
_KEPT = Pattern(
    r"(?s)<!-- >>> team-memory space=(\S+) gap=([0-2]) sha256=([0-9a-f]{16})[^\n]*-->\r?\n"
    r"(.*?)\r?\n?<!-- <<< team-memory -->"
)
_KEPT_START = (
    "<!-- >>> team-memory space={space} gap={gap} sha256={digest} (kept in step with the memory by `hook.py keep`;"
    " what is changed in a note's text here goes there by `hook.py keep --propose`; `hook.py unkeep` takes it out) -->"
)
_KEPT_END = "<!-- <<< team-memory -->"
_PART = Pattern(r"(?m)^<!-- (\S+)(?: revision=(\d+))? sha256=([0-9a-f]{16}) -->$")


class Block:
    """The block in a file's text: where it stands, whose notes it holds, and its words as they are now."""

    def __init__(self, found: Any) -> None:
        self.start, self.end = found.span()
        self.space, self.gap, self.written = found.group(1), int(found.group(2)), found.group(3)
        self.text = found.group(4).replace("\r\n", "\n")

    @property
    def is_edited(self) -> bool:
        return bool(words_digest(self.text) != self.written)


class Part:
    """One note of a block, as it is in the file."""

    def __init__(self, name: str, revision: str, digest: str, text: str) -> None:
        self.name, self.revision, self.text = name, revision, text.strip("\n")
        self.is_edited = words_digest(text) != digest

    @property
    def heading(self) -> str:
        return self.text.partition("\n\n")[0]

    @property
    def body(self) -> str:
        return self.text.partition("\n\n")[2].strip("\n")


def words_digest(text: str) -> str:
    """As the server makes it: white space at the ends of lines, which editors take away, does not count."""
    import hashlib

    plain = "\n".join(line.rstrip() for line in text.strip("\n").split("\n"))
    return hashlib.sha256(plain.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def block_in(path: str, text: str) -> Block | None:
    """The block in a file's text, None where it has none. Raises Refused."""
    found = list(_KEPT().finditer(text))
    if len(found) > 1 or text.count(_KEPT_END) != len(found) or text.count("<!-- >>> team-memory") != len(found):
        raise Refused(f"Nothing was changed: the comments around the block in {path} are damaged. Mend them.")
    return Block(found[0]) if found else None


def parts_of(text: str) -> dict[str, Part]:
    """A block's parts by their names: ids of notes, `about` and `more`."""
    marks = list(_PART().finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    return {
        mark.group(1): Part(mark.group(1), mark.group(2) or "", mark.group(3), text[mark.end() : end])
        for mark, end in zip(marks, ends)  # noqa: B905 - Python 3.8 knows no strict
    }


def with_block(path: str, text: str, space: str, words: str) -> str:
    """The file's text with the block in its place, or at its end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    block = block_in(path, text)
    bare = not text.strip("\ufeff")
    gap = block.gap if block else 0 if bare else 1 if text.endswith("\n") else 2
    start = _KEPT_START.format(space=space, gap=gap, digest=words_digest(words))
    written = newline.join([start, *words.split("\n"), _KEPT_END])
    if block is not None:
        return text[: block.start] + written + text[block.end :]
    return text + newline * gap + written + newline


def without_block(path: str, text: str) -> str:
    """The file's text as it was before the block came in."""
    block = block_in(path, text)
    if block is None:
        return text
    before, after = text[: block.start], text[block.end :]
    after = after[2:] if after.startswith("\r\n") else after[1:] if after.startswith("\n") else after
    for _ in range(block.gap):
        before = before[:-2] if before.endswith("\r\n") else before[:-1] if before.endswith("\n") else before
    return before + after


def kept_path() -> str:
    return os.path.join(config_dir(), "kept.json")


def kept() -> dict[str, Any]:
    """The files that are kept in step here, by their real paths."""
    found = as_dict(read_text(kept_path()))
    return {path: entry for path, entry in found.items() if isinstance(entry, dict)}


def remember_kept(path: str, entry: dict[str, Any] | None) -> None:
    """Note a file as kept, or (None) as kept no more."""
    os.makedirs(config_dir(), mode=0o700, exist_ok=True)
    with Lock(os.path.join(config_dir(), "kept.lock"), 5.0):
        entries = kept()
        entries.pop(path, None)
        if entry is not None:
            entries[path] = entry
        if entries:
            write_private(kept_path(), json.dumps(entries, indent=2))
        else:
            remove(kept_path())


def fetched_block(path: str, space: str, size: int, wait: float) -> tuple[Target, str]:
    """The server's words for a file's block. Raises Refused."""
    from urllib.parse import urlencode

    folder = os.path.dirname(path)
    place = place_of(folder)
    target = target_for(place.top or folder)
    if target is None:
        raise Refused("There is no address and key. Run the install command that the Connect page shows.")
    asked = {"space": space, "remote": place.remote, "root": place.root or folder, "max_chars": size}
    got = ask("GET", target, f"/api/v1/notes/block?{urlencode(asked)}", wait=wait)
    if got.status != 200 or not got.headers.get("content-type", "").startswith("text/markdown"):
        raise Refused(f"{path} stays as it is: {got.reason}")
    return target, got.body.decode("utf-8", "replace").replace("\r\n", "\n").strip("\n")


def keepable(path: str) -> bytes | None:
    """What stands in a file that is to be kept, None where there is none yet. Raises Refused.

    A pipe or a device is never opened: that alone could wait for ever.
    """
    import stat

    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found.st_mode):
        raise Refused(f"{path} is no file. Name one, such as AGENTS.md.")
    if found.st_size > MAX_KEPT:
        raise Refused(f"{path} has {found.st_size:,} bytes; a file that is kept has {MAX_KEPT:,} at most.")
    return read_bytes(path)


def keep_file(options: Any) -> int:
    """Write or renew the block of a file, and keep it in step from then on."""
    path = os.path.realpath(options.path)
    if os.path.isdir(path) or not os.path.isdir(os.path.dirname(path)):
        raise Refused(f"{options.path} is no file. Name one, such as AGENTS.md.")
    known = kept().get(path, {})
    raw = keepable(path)
    text = _decoded(path, raw)
    block = block_in(path, text)
    space = options.space or (block.space if block else "team")
    size = options.max_chars or known.get("max_chars") or 7_500
    target, words = fetched_block(path, space, size, 30.0)
    edits: list[Edit] = []
    if block is not None and block.is_edited and not options.discard:
        if not options.propose:
            raise Refused(
                f"Nothing was changed: the block in {path} was edited by hand, and renewing it would lose that.\n"
                "Send the edits as proposals: hook.py keep --propose. Write over them: hook.py keep --discard."
            )
        edits = _edits(target, path, block, words)
    new = with_block(path, text, space, words)
    change = Change("keep", path, raw, new.encode("utf-8"))
    print(change.diff() if change.is_needed else f"{path} is in step.")
    for edit in edits:
        print(f"To be proposed: {edit.address}")
    if options.dry_run:
        return 0
    if (change.is_needed or edits) and not agreed(options, "Write this?"):
        print("Nothing was changed.")
        return 1
    for edit in edits:
        print(_proposed(target, edit))
    if change.is_needed:
        write_through(path, change.new or b"", fresh_mode=0o644)
    entry = {"space": space, "max_chars": size, "is_made": raw is None or known.get("is_made") is True}
    remember_kept(path, entry)
    print(f"{path} is kept in step with {space}: at each session's start in its project, or by this command.")
    if space != "team":
        print("These are your own notes: keep this file out of git.")
    return 0


class Edit:
    """What a person changed in a note's text: where it goes, what it says, and the revision that it was made of."""

    def __init__(self, address: str, text: str, tag: str) -> None:
        self.address, self.text, self.tag = address, text, tag


def _edits(target: Target, path: str, block: Block, words: str) -> list[Edit]:
    """What people changed in the notes of a block. Raises Refused before any of it is sent."""
    now, here = parts_of(words), parts_of(block.text)
    edited = [part for part in here.values() if part.is_edited]
    for part in edited:
        known = now.get(part.name)
        if not part.name.startswith("nte_"):
            raise Refused(
                f"Nothing was changed: only the text of notes in {path} can be proposed. Put other text outside of the"
                " block, then try again."
            )
        if known is None or known.revision != part.revision or known.heading != part.heading:
            raise Refused(
                f"Nothing was changed: {part.name} was changed in the memory meanwhile, or its heading was edited."
                f" Open it there ({target.url}) and bring both together, then use --discard."
            )
    if not edited:
        raise Refused(
            f"Nothing was changed: a note was taken out of the block in {path}. Delete notes in the memory"
            f" ({target.url}), then use --discard."
        )
    return [_edit_of(target, part, now[part.name]) for part in edited]


def _edit_of(target: Target, part: Part, known: Part) -> Edit:
    got = ask("GET", target, f"/api/v1/notes/{part.name}", wait=30.0)
    text = got.json.get("text")
    if got.status != 200 or not isinstance(text, str):
        raise Refused(f"Nothing was changed: {part.name}: {got.reason}")
    plain = text.replace("\r\n", "\n")
    if plain.count(known.body) != 1 or not known.body:
        raise Refused(f"Nothing was changed: {part.name} can only be edited in the memory ({target.url}).")
    edited = plain.replace(known.body, part.body)
    edited = edited.replace("\n", "\r\n") if "\r\n" in text else edited
    return Edit(f"{got.json.get('space')}/{got.json.get('path')}", edited, got.headers.get("etag", ""))


def _proposed(target: Target, edit: Edit) -> str:
    from urllib.parse import quote

    body = encoded({"text": edit.text, "reason": "Edited in a file that is kept in step with the memory."})
    headers = {"Content-Type": "application/json", "If-Match": edit.tag}
    path = f"/api/v1/notes/by-path/{quote(edit.address)}"
    got = ask("PUT", target, path, data=body, headers=headers, wait=30.0)
    if got.status not in (200, 202):
        raise Refused(f"{edit.address} could not be proposed, and the file stays as it is: {got.reason}")
    return f"Proposed: {edit.address} ({got.json.get('id')}). The block shows it once a person has approved it."


def unkeep_file(options: Any) -> int:
    """Take the block out of a file; what stands around it is as it was."""
    path = os.path.realpath(options.path)
    change = unkept(path, kept().get(path, {}))
    if options.dry_run or not change.is_needed:
        print(change.diff() if change.is_needed else f"{path} has no block.")
        if not options.dry_run:
            remember_kept(path, None)
        return 0
    block = block_in(path, _decoded(path, change.old))
    if block is not None and block.is_edited and not options.discard:
        raise Refused(
            f"Nothing was changed: the block in {path} was edited by hand.\n"
            "Send the edits as proposals first: hook.py keep --propose. Drop them: hook.py unkeep --discard."
        )
    print(change.diff())
    if not agreed(options, "Write this?"):
        print("Nothing was changed.")
        return 1
    _put_back(change)
    remember_kept(path, None)
    print(f"{path} is kept no more.")
    return 0


def unkept(path: str, entry: dict[str, Any]) -> Change:
    """How a file is without its block; None where `keep` made it and nobody wrote to it since."""
    raw = keepable(path)
    if raw is None:
        return Change("keep", path, None, None)
    rest = without_block(path, _decoded(path, raw)).encode("utf-8")
    return Change("keep", path, raw, None if entry.get("is_made") is True and not rest else rest)


def _put_back(change: Change) -> None:
    if change.new is None:
        remove(change.path)
    else:
        write_through(change.path, change.new)


def start_refresh(folder: str) -> None:
    """Renew the files that are kept in step below a folder, apart from whoever calls."""
    if not folder or not os.path.exists(kept_path()):
        return
    if any(is_below(path, folder) for path in kept()):
        _detach(["refresh", folder], None)


def refresh(folder: str) -> None:
    """Renew each kept file below a folder. One that a person edited stays as it is, and `doctor` says so."""
    with Lock(os.path.join(config_dir(), "refresh.lock"), 0) as lock:
        if not lock.held:
            return
        for path, entry in kept().items():
            if not is_below(path, folder):
                continue
            try:
                is_kept, fault = _refreshed(path, entry), ""
            except (Refused, OSError) as why:
                is_kept, fault = True, str(why)
            if not is_kept:
                remember_kept(path, None)
            elif fault != entry.get("fault", ""):
                remember_kept(path, {**entry, "fault": fault})


def _refreshed(path: str, entry: dict[str, Any]) -> bool:
    """True while the file is to be kept: whoever takes the block out by hand wants it no more. Raises Refused."""
    raw = keepable(path)
    text = _decoded(path, raw)
    block = block_in(path, text)
    if block is None:
        return False
    if block.is_edited:
        raise Refused(f"the block was edited by hand; hook.py keep --propose {path} sends that, --discard drops it")
    _, words = fetched_block(path, block.space, int(entry.get("max_chars") or 7_500), 30.0)
    new = with_block(path, text, block.space, words).encode("utf-8")
    # Somebody may have saved the file while the server was asked.
    if new != raw and read_bytes(path) == raw:
        write_through(path, new)
    return True


# --- doctor ----------------------------------------------------------------------------------------------------------


class Findings:
    """What was looked at: each line says how it is, and the fix."""

    def __init__(self) -> None:
        self.faults = 0

    def good(self, text: str) -> None:
        print(f"ok    {text}")

    def bad(self, text: str, fix: str) -> None:
        self.faults += 1
        print(f"FAIL  {text}\n      Fix: {fix}")

    def note(self, text: str) -> None:
        print(f"      {text}")


def doctor(options: Any) -> int:
    found = Findings()
    folder = os.path.abspath(options.project or os.getcwd())
    place = place_of(folder)
    target = target_for(place.top or folder)
    if target is None:
        found.bad("no address and key", "run the install command that the Connect page shows")
    else:
        found.good(
            f"address {target.url} (from {'the environment' if target.scope == 'environment' else credentials_path()})"
        )
        _doctor_server(found, target)
    _doctor_clients(found, options.project or "")
    _doctor_kept(found)
    if target is not None and options.adopt:
        for spool in _orphans():
            found.note(f"{spool.count():,} events of {spool.folder} go to {target.url} now")
            _detach(["flush", spool.folder, target.scope], None)
    elif target is not None:
        _doctor_spool(found, target)
    if is_paused():
        found.bad("recording is paused", "python3 hook.py resume")
    rules = ignore_for(place, folder)
    if rules:
        found.note(
            f"ignored here: {len(rules.repositories)} repositories, {len(rules.paths)} paths, {len(rules.tools)} tools"
        )
    print("All is well." if not found.faults else f"{found.faults} to mend.")
    return 1 if found.faults else 0


def _doctor_server(found: Findings, target: Target) -> None:
    if target.url.startswith("http://") and not is_loopback(target.url):
        found.bad("the key travels unencrypted", "use an https:// address")
    got = ask("GET", target, "/healthz", wait=5.0)
    if got.status in (301, 302, 307, 308):
        found.bad(
            f"the server sends us on to {got.headers.get('location', 'elsewhere')}",
            "install again with that address as --url",
        )
        return
    if got.status != 200:
        fix = "check the address, the network, and HTTPS_PROXY/NO_PROXY"
        if "CERTIFICATE" in got.reason.upper():
            fix = "set SSL_CERT_FILE to the file with your company's certificate authority"
        found.bad(f"the server does not answer: {got.reason}", fix)
        return
    found.good("the server answers")
    _doctor_clock(found, got)
    key = ask("GET", target, "/api/v1/sessions?order=latest&limit=1", wait=5.0)
    if key.status == 401:
        found.bad("the key is not valid", "make a new one on the Connect page and install again with it")
    elif key.json.get("code") == "tenant_suspended":
        found.bad("the team is suspended; what is recorded waits here", "ask whoever runs the server to resume it")
    elif key.status not in (200, 403):
        found.bad(f"the key could not be tried: {key.reason}", "try again; else ask whoever runs the server")
    else:
        _doctor_key(found, target, key)
    _doctor_version(found, target)


def _doctor_key(found: Findings, target: Target, sessions: Answer) -> None:
    empty = ask(
        "POST", target, "/api/v1/events/batch", data=b"\n", headers={"Content-Type": "application/x-ndjson"}, wait=5.0
    )
    if empty.status == 403:
        found.bad("the key may not record", "make one with the scope ingest on the Connect page")
        return
    found.good("the key is valid")
    items = sessions.json.get("items") or []
    if not items:
        found.note("the server has seen no event yet: start a session")
        return
    last = items[0]
    found.good(f"last event {last.get('last_received_at')} from {last.get('client')} ({last.get('id')})")


def _doctor_clock(found: Findings, got: Answer) -> None:
    import calendar
    import email.utils

    date = email.utils.parsedate(got.headers.get("date", ""))
    if date is None:
        return
    off = time.time() - calendar.timegm(date)
    if abs(off) > 120:
        found.bad(
            f"this clock is {abs(off):,.0f} s {'ahead of' if off > 0 else 'behind'} the server's", "set the time by NTP"
        )
    else:
        found.good("the clock agrees with the server's")


def _doctor_version(found: Findings, target: Target) -> None:
    got = ask("GET", target, "/clients/hook.py.sha256", wait=5.0)
    mine = _digest(read_bytes(os.path.abspath(__file__)))
    if got.status == 200 and got.body.decode("ascii", "replace").split()[:1] not in ([mine], []):
        found.bad(
            "the server has another version of this script",
            f"curl -fsS {target.url}/clients/hook.py -o hook.py && python3 hook.py install …",
        )


def _doctor_clients(found: Findings, project: str) -> None:
    entries = installed()
    if not entries:
        found.bad("no harness is connected", "python3 hook.py install --client claude-code")
    gone = [path for path in (script_path(), module_path()) if not os.path.isfile(path)]
    if entries and gone:
        found.bad(f"{gone[0]} is gone", "run install again")
    for path, entry in entries.items():
        _doctor_file(found, path, str(entry.get("client")))


def _doctor_kept(found: Findings) -> None:
    for path, entry in kept().items():
        if entry.get("fault"):
            found.bad(f"{path} is not in step: {entry['fault']}", f"python3 hook.py keep {posix_quoted(path)}")
        elif not os.path.isfile(path):
            found.bad(f"{path}, which is kept in step, is gone", f"python3 hook.py unkeep {posix_quoted(path)}")
        else:
            found.good(f"{path} is kept in step with {entry.get('space')}")


def _doctor_file(found: Findings, path: str, client: str) -> None:
    again = f"python3 hook.py install --client {client.replace('_', '-')}"
    if is_skill(path):
        if read_bytes(path) is None:
            found.bad(f"{client}: the skill {path} is gone", again)
        return
    try:
        content = read_bytes(path)
        now = edited(client, path, content, Launch(python_path(), script_path(), IS_WINDOWS))
    except (Refused, OSError) as why:
        found.bad(f"{client}: {why}", again)
        return
    if content != now:
        found.bad(f"{client}: not all hooks are in {path}", again)
        return
    found.good(f"{client}: hooks are in {path}")
    settings = as_dict(_plain_json(path))
    if settings.get("disableAllHooks") is True:
        found.bad(f"{client}: disableAllHooks is set in {path}", "remove it, or set it to false")
    if client == "codex":
        _doctor_codex(found, path)


def _plain_json(path: str) -> str:
    try:
        return json.dumps(Jsonc(read_text(path)).root.plain())
    except ValueError:
        return "{}"


def _doctor_codex(found: Findings, path: str) -> None:
    """Codex leaves out what is not trusted, without a word."""
    config = read_text(os.path.join(os.path.dirname(path), "config.toml"))
    user = os.environ.get("CODEX_HOME") or os.path.join(home(), ".codex")
    config += "\n" + read_text(os.path.join(user, "config.toml"))
    if re.search(r"(?m)^\s*(?:features\.)?(?:codex_)?hooks\s*=\s*false", config):
        found.bad("codex: hooks are turned off in config.toml", "set hooks = true under [features]")
    names = {os.path.abspath(path), os.path.realpath(path)}
    trusted = [
        event
        for event in EVENTS["codex"]
        if any(f"{name}:{_snake(event)}:" in config.replace("\\\\", "\\") for name in names)
    ]
    if len(trusted) < len(EVENTS["codex"]):
        missing = [event for event in EVENTS["codex"] if event not in trusted]
        found.bad(
            f"codex: not trusted yet: {', '.join(missing)}",
            "start `codex`, type /hooks, and trust those of team-memory",
        )
    else:
        found.good("codex: the hooks are trusted")


def _snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", r"_\1", name).lower()


def _doctor_spool(found: Findings, target: Target) -> None:
    spools = Spool.everywhere(target.spool_name)
    waiting = sum(spool.count() for spool in spools)
    fault = next((str(spool.state().get("fault")) for spool in spools if spool.state().get("fault")), "")
    if waiting:
        found.bad(
            f"{waiting:,} events wait to be delivered{': ' + fault if fault else ''}",
            "mend what stands above; they go by themselves then",
        )
        for spool in spools:
            start_flusher(spool, target)
    else:
        found.good("nothing waits to be delivered")
    for spool in _orphans():
        found.bad(
            f"{spool.count():,} events wait for an address or key that is not configured any more ({spool.folder})",
            f"to send them to {target.url}: hook.py doctor --adopt; to drop them: delete that folder",
        )
    refused = [spool.path("refused.log") for spool in spools if os.path.exists(spool.path("refused.log"))]
    for path in refused:
        found.note(f"events the server refused are in {path}")
    for path in (os.path.join(base, "hook.log") for base in state_dirs()):
        lines = read_text(path).strip().splitlines()
        if lines:
            found.note(f"what went wrong in the hook itself is in {path}; last: {lines[-1][:200]}")


# --- commands --------------------------------------------------------------------------------------------------------


def pause(options: Any) -> int:
    until = ""
    if options.duration:
        found = re.match(r"^(\d+)([mhd])$", options.duration)
        if not found:
            raise Refused("Say how long as 30m, 2h or 1d.")
        until = str(time.time() + int(found.group(1)) * {"m": 60, "h": 3600, "d": 86400}[found.group(2)])
    os.makedirs(config_dir(), mode=0o700, exist_ok=True)
    write_private(os.path.join(config_dir(), "paused"), until)
    print(f"Nothing is recorded or told{' for ' + options.duration if options.duration else ' until `resume`'}.")
    return 0


def resume(options: Any) -> int:
    remove(os.path.join(config_dir(), "paused"))
    print("Recording goes on.")
    return 0


def _target() -> Target:
    folder = os.getcwd()
    target = target_for(place_of(folder).top or folder)
    if target is None:
        raise Refused("There is no address and key. Run the install command that the Connect page shows.")
    return target


def _fetched(method: str, path: str) -> dict[str, Any]:
    got = ask(method, _target(), path, wait=30.0)
    if got.status >= 300 or not got.status:
        raise Refused(got.reason)
    return got.json


def recall(options: Any) -> int:
    from urllib.parse import quote, urlencode

    query = urlencode({"hops": options.hops, "budget_tokens": options.budget_tokens})
    print(
        json.dumps(
            _fetched("GET", f"/api/v1/recall/{quote(options.id, safe='')}?{query}"), indent=1, ensure_ascii=False
        )
    )
    return 0


def search(options: Any) -> int:
    from urllib.parse import urlencode

    said = _fetched("GET", f"/api/v1/search?{urlencode({'q': ' '.join(options.words), 'limit': options.limit})}")
    print(json.dumps(said, indent=1, ensure_ascii=False))
    return 0


def delete_session(options: Any) -> int:
    from urllib.parse import quote

    target = _target()
    print(f"{options.id} and all that came from it alone go out of the memory at {target.url}, for good.")
    if not agreed(options, "Delete it?"):
        print("Nothing was changed.")
        return 1
    got = ask("DELETE", target, f"/api/v1/sessions/{quote(options.id, safe='')}", wait=30.0)
    if got.status == 405:
        raise Refused("This server deletes no sessions by key. Ask an owner or admin of your team to purge it.")
    if got.status not in (200, 202, 204):
        raise Refused(got.reason)
    print(f"{options.id} is deleted.")
    return 0


def digest(options: Any) -> int:
    print(tree_digest(options.path) if os.path.isdir(options.path) else file_digest(options.path))
    return 0


def command_main(arguments: Sequence[str]) -> int:
    import argparse

    parser = argparse.ArgumentParser(prog="hook.py", description="Team Memory's hook client")
    commands = parser.add_subparsers(dest="command", required=True)

    def command(name: str, run: Callable[[Any], int], about: str) -> Any:
        made_parser = commands.add_parser(name, help=about, description=about)
        made_parser.set_defaults(run=run)
        return made_parser

    one = command("install", install, "Connect a harness: shows what it changes, then asks.")
    one.add_argument(
        "--client",
        required=True,
        help="all (those that this machine has), or " + ", ".join(CLIENTS).replace("_", "-"),
    )
    one.add_argument("--project", help="only for this folder")
    one.add_argument("--url", help="the address of your team's memory")
    one.add_argument("--key", help="the agent key from the Connect page")
    one.add_argument("--yes", action="store_true", help="do not ask")
    one = command(
        "uninstall", uninstall, "Put files back as they were; without --client all of it, key and script too."
    )
    one.add_argument("--client", default="")
    one.add_argument("--project", default="")
    one.add_argument("--yes", action="store_true", help="do not ask")
    one.add_argument("--discard", action="store_true", help="drop events that were never delivered")
    one = command("doctor", doctor, "Say what works, what does not, and the fix.")
    one.add_argument("--project", default="")
    one.add_argument("--adopt", action="store_true", help="send what waits for an old address to the one of now")
    one = command("pause", pause, "Record and tell nothing.")
    one.add_argument("--for", dest="duration", default="", metavar="30m|2h|1d")
    command("resume", resume, "Record again.")
    one = command("recall", recall, "Walk from an id: what led to it, and what it led to.")
    one.add_argument("id")
    one.add_argument("--hops", type=int, default=3)
    one.add_argument("--budget-tokens", type=int, default=2000)
    one = command("search", search, "Find notes, threads and sessions.")
    one.add_argument("words", nargs="+")
    one.add_argument("--limit", type=int, default=10)
    one = command("delete-session", delete_session, "Take a session and all that came from it out of the memory.")
    one.add_argument("id")
    one.add_argument("--yes", action="store_true", help="do not ask")
    one = command("digest", digest, "The digest of a file, or of a git checkout as it is now.")
    one.add_argument("path", nargs="?", default=".")
    one = command("watch", watch, "Tell the cache which files of a folder change outside the agents, until stopped.")
    one.add_argument("path", nargs="?", default=".")
    one.add_argument("--interval", type=float, default=2.0, help="seconds between two looks")
    one = command("keep", keep_file, "Keep a block of AGENTS.md or CLAUDE.md in step with a space of the memory.")
    one.add_argument("path", help="the file; what stands around the block is never touched")
    one.add_argument("--space", default="", help="team (without it), or members/HANDLE")
    one.add_argument("--max-chars", type=int, default=0, help="how long the block may be; 7,500 without it")
    one.add_argument("--propose", action="store_true", help="send what was edited in the block as proposals")
    one.add_argument("--discard", action="store_true", help="write over what was edited in the block")
    one.add_argument("--dry-run", action="store_true", help="only show the change")
    one.add_argument("--yes", action="store_true", help="do not ask")
    one = command("unkeep", unkeep_file, "Take that block out again, and keep the file no more.")
    one.add_argument("path")
    one.add_argument("--discard", action="store_true", help="drop what was edited in the block")
    one.add_argument("--dry-run", action="store_true", help="only show the change")
    one.add_argument("--yes", action="store_true", help="do not ask")
    options = parser.parse_args(list(arguments))
    try:
        return int(options.run(options))
    except (Refused, OSError) as why:
        print(str(why), file=sys.stderr)
        return 1


COMMANDS = (
    "install",
    "uninstall",
    "doctor",
    "pause",
    "resume",
    "recall",
    "search",
    "delete-session",
    "digest",
    "watch",
    "keep",
    "unkeep",
    "-h",
    "--help",
)


def main(arguments: Sequence[str]) -> int:
    first = arguments[0] if arguments else ""
    if first in COMMANDS or not arguments:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(encoding="utf-8", errors="replace")
        return command_main(arguments or ["--help"])
    if first in ("flush", "carry", "refresh") and len(arguments) > 1:
        # Apart from any harness, where nobody reads what goes wrong.
        try:
            if first == "flush":
                flush(arguments[1], arguments[2])
            else:
                (carry if first == "carry" else refresh)(arguments[1])
        except BaseException as fault:
            _log(fault)
        os._exit(0)
    hook_main(arguments)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
