"""Whether a tool's answer is one to keep. An error that is kept for an hour is an hour of failures."""

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

# An answer in words that is a refusal: what servers and CLIs really say, at the very start.
_ERROR_TEXT: Final = re.compile(
    r"\s*(?:(?:HTTP(?:/[\d.]+)?|status(?: code)?:?)\s*[45]\d\d\b|[45]\d\d\s+(?:Too Many|Service Un|Internal Server|"
    r"Bad Gateway|Gateway Time|Forbidden|Not Found|Unauthorized|Bad Request)|(?:fatal|error|exception|panic)\s*[:\[]|"
    r"[A-Za-z]*(?:Error|Exception):|Traceback \(most recent|rate limit|too many requests|"
    r"request timed out|timed? ?out\b|<tool_use_error>|command (?:failed|timed out)|permission denied|"
    r"(?:internal server error|service (?:temporarily )?unavailable|bad gateway|gateway time-?out)\b|"
    r"connection (?:refused|reset)\b|"
    r"(?:E(?:CONNREFUSED|CONNRESET|NOENT|ACCES|TIMEDOUT|NOTFOUND|AI_AGAIN)\b)|curl: \(\d+\)|npm ERR!|"
    r"(?:/bin/)?(?:ba|z|da)?sh: (?:(?:line )?(?:\d+: )?[^\n]{1,200}: (?:command )?not found|command not found)|"
    # What a proxy says in the place of the page.
    r"(?:<!doctype html[^>]*>\s*)?<html[^>]*>\s*<head[^>]*>(?:\s*<meta[^>]*>)*\s*<title>\s*[45]\d\d\b)",
    re.IGNORECASE,
)
# An empty list in words: all that the answer says.
_EMPTY_TEXT: Final = re.compile(
    r"\s*(?:\(?(?:no|0|zero) (?:matching |search |such |new )?"
    r"(?:matches|results?|files?|hits?|entries|records?|rows|data|output|content|items?|documents?|lines)"
    r"(?: (?:were|was))?(?: (?:found|returned|available))?(?: (?:for|in|matching) [^\n,;]{1,200})?\)?"
    r"|(?:nothing|none|not) found|null|undefined|none|n/a)\s*[.!]?\s*",
    re.IGNORECASE,
)
_LONGEST_ANSWER: Final = 4_000
_MOST_FIELDS: Final = 8
_FLAGS: Final = ("isError", "is_error", "interrupted", "timed_out", "timedOut", "truncated", "isTruncated")
_CODES: Final = ("exit_code", "exitCode", "returncode", "return_code")
_LISTS: Final = ("results", "items", "matches", "hits", "data", "content", "files", "filenames", "rows")
_WORDS: Final = ("content", "text", "result", "stdout", "answer", "summary", "analysis", "output")


def unfit(result: Any, *, is_error: bool = False, exit_code: Any = None) -> str:
    """Why an answer is not kept: `error`, `truncated` or `empty`; empty where it is kept."""
    if is_error or _failed_code(exit_code):
        return "error"
    return _unfit(result)


def _unfit(result: Any) -> str:
    if isinstance(result, str):
        return _unfit_text(result)
    if isinstance(result, Mapping):
        return _unfit_object(result)
    if isinstance(result, list):
        blocks = [one for one in result if isinstance(one, Mapping) and one.get("type") == "text"]
        if not result or (len(blocks) == len(result) and not any(str(one.get("text", "")).strip() for one in blocks)):
            return "empty"
        return _unfit(blocks[0].get("text", "")) if len(blocks) == len(result) else ""
    return "empty" if result is None else ""


def _unfit_text(text: str) -> str:
    if not text.strip() or (len(text) <= _LONGEST_ANSWER and _EMPTY_TEXT.fullmatch(text)):
        return "empty"
    if _ERROR_TEXT.match(text):
        return "error"
    # Many tools answer their JSON as a text. A long one is a document, whatever fields it has.
    if len(text) <= _LONGEST_ANSWER and text.lstrip()[:1] in ("{", "["):
        with suppress(ValueError, RecursionError):
            value = json.loads(text)
            is_small = not isinstance(value, Mapping) or len(value) <= _MOST_FIELDS
            return _unfit(value) if is_small and not isinstance(value, str) else ""
    return ""


def _is_set(value: Any) -> bool:
    return value is True or (isinstance(value, str) and value.lower() == "true") or (type(value) is int and value == 1)


def _is_refused(value: Any) -> bool:
    return value is False or (isinstance(value, str) and value.lower() == "false")


def _unfit_object(result: Mapping[str, Any]) -> str:
    for flag in _FLAGS:
        if _is_set(result.get(flag)):
            return "truncated" if "runcated" in flag else "error"
    if _is_refused(result.get("success")) or _is_refused(result.get("ok")) or result.get("error"):
        return "error"
    # A linter's findings are its answer; errors and nothing beside them are none.
    if result.get("errors") and not any(value for name, value in result.items() if name != "errors"):
        return "error"
    if any(_failed_code(result.get(name)) for name in _CODES) or _failed_status(result):
        return "error"
    lists = [result[name] for name in _LISTS if isinstance(result.get(name), list)]
    if not result or (lists and not any(lists) and not any(str(result.get(name) or "").strip() for name in _WORDS)):
        return "empty"
    content = result.get("content")
    return _unfit(content) if isinstance(content, list) else ""


def _failed_code(code: Any) -> bool:
    return isinstance(code, int) and not isinstance(code, bool) and code != 0


def _failed_status(result: Mapping[str, Any]) -> bool:
    """An HTTP status that is none of success; a word where one stands for it."""
    for name in ("status", "status_code", "statusCode", "code"):
        value = result.get(name)
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
            return True
        if isinstance(value, str) and value.lower() in ("error", "failed", "failure", "timeout"):
            return True
    return False
