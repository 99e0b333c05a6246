"""What browsers are given as files: under names that hold their content's hash, kept for good, and packed.

No collecting step: files are found where they lie. Each is served under its plain name too, for a minute at a time. A
name with another hash, which a page of an older version asks for in the middle of an upgrade, gives the file as it is.
"""

import gzip
import hashlib
import io
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.storage import StaticFilesStorage, staticfiles_storage
from django.http import HttpRequest, HttpResponse
from django.middleware.gzip import GZipMiddleware
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import Response, StaticFile

# Below it the packed file is hardly smaller than the headers that say so.
LEAST_BYTES: Final = 600
# Everything else that we serve is packed already: pictures, fonts.
TEXTS: Final = frozenset({".css", ".js", ".mjs", ".json", ".map", ".svg", ".txt", ".html", ".md"})


class HashedNames(StaticFilesStorage):
    """Gives each file's address with a hash of its content: app.css stands at app.1f2e3d4c5b6a.css."""

    def url(self, name: str | None, force: bool = False) -> str:
        return super().url(name if settings.DEBUG or name is None else hashed(name))


@cache
def hashed(name: str) -> str:
    """The name with its content's hash; of a file that is nowhere, the name itself."""
    # Templates pass their own kind of text, which a path does not take.
    name = "".join(name)
    found = finders.find(name)
    if not isinstance(found, str) or not Path(found).is_file():
        return name
    path = PurePosixPath(name)
    digest = hashlib.sha256(Path(found).read_bytes()).hexdigest()[:12]
    return str(path.with_name(f"{path.stem}.{digest}{path.suffix}"))


class PackedFile(StaticFile):  # type: ignore[misc]
    """A file that is given packed to whoever takes that. Packed once a process, when it is first asked for."""

    def __init__(self, path: str, headers: Any, stat_cache: Any = None) -> None:
        self._path = path
        super().__init__(path, headers, stat_cache=stat_cache)

    def get_response(self, method: str, request_headers: dict[str, str]) -> Response:
        response = super().get_response(method, request_headers)
        # A part of a file is a part of its plain form. `open` has not read a byte yet.
        if response.status != 200 or not takes_gzip(request_headers.get("HTTP_ACCEPT_ENCODING", "")):
            return response
        packed = self._packed
        if packed is None:
            return response
        if response.file is not None:
            response.file.close()
        headers = [(name, value) for name, value in response.headers if name != "Content-Length"]
        headers += [("Content-Encoding", "gzip"), ("Content-Length", str(len(packed)))]
        return Response(response.status, headers, None if method == "HEAD" else io.BytesIO(packed))

    @cached_property
    def _packed(self) -> bytes | None:
        raw = Path(self._path).read_bytes()
        packed = gzip.compress(raw, 9, mtime=0) if len(raw) >= LEAST_BYTES else raw
        return packed if len(packed) < len(raw) else None


def takes_gzip(accepted: str) -> bool:
    """What Accept-Encoding says of gzip; `gzip;q=0` is a no."""
    for part in accepted.lower().split(","):
        name, _, weight = part.strip().partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


class Files(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise over the folders that files lie in, with packed files and hashed names."""

    def get_static_file(self, path: str, url: str, stat_cache: Any = None) -> StaticFile:
        plain: StaticFile = super().get_static_file(path, url, stat_cache)
        if PurePosixPath(path).suffix not in TEXTS:
            return plain
        [(_, headers)] = [(name, headers) for _, name, headers in plain.alternatives]
        return PackedFile(path, [*headers, ("Vary", "Accept-Encoding")], stat_cache)

    def add_file_to_dictionary(self, url: str, path: str, stat_cache: Any = None) -> None:
        super().add_file_to_dictionary(url, path, stat_cache)
        address = staticfiles_storage.url(url.removeprefix(self.static_prefix))
        if address != url:
            self.files[address] = self.get_static_file(path, address, stat_cache)

    def __call__(self, request: HttpRequest) -> Any:
        path = request.path_info
        if not self.autorefresh and path.startswith(self.static_prefix) and path not in self.files:
            older = self.files.get(self.get_name_without_hash(path))
            if older is not None:
                return self.serve(older, request)
        return super().__call__(request)


class PackedPages(GZipMiddleware):
    """Pages are sent packed. Django's own way adds a random number of bytes, so that sizes tell nothing of secrets.

    Nothing else is: what agents ask has doors of its own, and downloads are packed in their own way or streamed.
    """

    def process_response(self, request: HttpRequest, response: Any) -> HttpResponse:
        if response.get("Content-Type", "").startswith("text/html"):
            return super().process_response(request, response)  # type: ignore[return-value]
        return response  # type: ignore[no-any-return]
