"""Where work happens, spelt one way: git remotes and workspace roots."""

import re
from urllib.parse import unquote

from memory import redact

_SCP = re.compile(r"^(?:[^@/\s]+@)?(?P<host>[A-Za-z0-9.-]+):(?!//)(?P<path>[^\\].*)$")
_URL = re.compile(
    r"^[a-z][a-z0-9+.-]*://(?:[^@/]*@)?(?P<host>\[[^\]]+\]|[^:/?#]+)(?P<port>:\d+)?/(?P<path>[^?#]*)", re.IGNORECASE
)
_USUAL_PORTS = {":22", ":80", ":443", ":9418"}
_DRIVE = re.compile(r"^[A-Za-z]:")


def normal_remote(remote: str) -> str:
    """`host/owner/name`, the same for ssh, scp-like and https spellings, without user or password; "" for no remote.

    Hosts compare without case, and so do paths: every large forge treats them so.
    """
    remote = remote.strip()
    if not remote or remote.startswith(("/", ".", "~", "file:")) or _DRIVE.match(remote):
        return ""
    found = _URL.match(remote) or _SCP.match(remote)
    if not found:
        return ""
    port = found.groupdict().get("port") or ""
    host = found["host"].lower().removeprefix("www.") + ("" if port in _USUAL_PORTS else port)
    path = re.sub(r"/+", "/", _plain(found["path"])).strip("/").removesuffix(".git").strip("/")
    return f"{host}/{path.lower()}" if path else ""


def _plain(path: str) -> str:
    """The path without its %-codes, which may have hidden a secret, or a NUL that PostgreSQL refuses."""
    return str(redact.clean_text(unquote(path)).value) if "%" in path else path


def normal_root(root: str) -> str:
    """The folder with forward slashes and without a slash at the end; "/" stays."""
    root = root.strip().replace("\\", "/") if _DRIVE.match(root.strip()) else root.strip()
    return root.rstrip("/") or ("/" if root else "")
