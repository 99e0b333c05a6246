"""Stored bytes as an answer: whole, a byte range, some lines, or the lines that match."""

from typing import Final

import orjson
from django.http import HttpRequest, HttpResponse

from memory.graph import content, slices

# Strangers' bytes: never run, never shown inside a page of ours.
SAFE: Final = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Accept-Ranges": "bytes",
}


def piece_of(request: HttpRequest, raw: bytes, sha256: str, media_type: str, disposition: str) -> HttpResponse:
    """Stored bytes as a download: whole, a range, some lines, or the lines that match as JSON."""
    tag = f'"{sha256}"'
    headers = {**SAFE, "ETag": tag, "Content-Disposition": disposition}
    lines, pattern = request.GET.get("lines"), request.GET.get("grep")
    first_line = 1
    if lines is not None:
        piece = slices.lines(raw, lines)
        raw, first_line = piece.raw, piece.first
        headers["X-Lines"] = f"{piece.first}-{piece.last}/{piece.whole}"
    if pattern is not None:
        return HttpResponse(
            orjson.dumps(slices.grep(raw, pattern, first_line=first_line)), content_type=content.JSON, headers=headers
        )
    if tag in [one.strip().removeprefix("W/") for one in request.headers.get("If-None-Match", "").split(",")]:
        return HttpResponse(status=304, headers=headers)
    wanted = request.headers.get("Range", "")
    if lines is None and wanted and request.headers.get("If-Range", tag) == tag:
        part = slices.byte_range(raw, wanted)
        if part is not None:
            headers["Content-Range"] = f"bytes {part.first}-{part.last}/{part.whole}"
            return HttpResponse(part.raw, status=206, content_type=media_type, headers=headers)
    return HttpResponse(raw, content_type=media_type, headers=headers)
