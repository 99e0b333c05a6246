"""What cleaning costs, in processor time: `python tests/bench/redact.py [hook-log.jsonl.gz …]`.

The bar is 200 ms per MB. Beside it stands a floor: the Go scanner alone over the same text, in the same pieces, which
knows nothing of disguises, of pieces and of ways back.
"""

import gzip
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from memory import redact
from memory.redact import binary
from memory.redact.native import library_path, scanner
from memory.redact.scan import CHUNK

SAMPLES = Path(__file__).parents[1] / "data" / "redact"


def best_seconds(call: Callable[[], object], rounds: int = 5) -> float:
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def lines(paths: list[Path]) -> list[Any]:
    return [json.loads(line) for path in paths for line in gzip.open(path, "rt", encoding="utf-8")]


def main() -> None:
    redact.use_key(b"bench")
    paths = [Path(name) for name in sys.argv[1:]] or [SAMPLES / "hooks.jsonl.gz"]
    payloads = [line.get("payload", line) for line in lines(paths)]
    text = "\n".join(map(json.dumps, payloads))
    text = (text * (1 + 1_000_000 // len(text)))[:1_000_000]
    plain = text.replace("\\n", "\n").replace('\\"', '"')
    token = "ghp_" + "Ab3dEf6hIj" * 4
    dirty = "\n".join(
        line if place % 20 else f"{line} {token[:-6]}{place:06d}" for place, line in enumerate(plain.splitlines())
    )[:1_000_000]
    print(redact.engine())
    redact.clean_text("warm")
    show_texts({"JSON": text, "text": plain, "dirty text": dirty, "one line": text.replace("\n", " ")})
    show_events([small_event(place) for place in range(5_000)], payloads)
    worst = "".join(f'api_key="Zx81kqPmv93hfbQwe7L{place}" ' for place in range(30_000))[:1_000_000]
    print(f"worst line   {best_seconds(lambda: redact.clean_text(worst), 1):8.2f} s per MB")
    library = library_path()
    raw = library.read_bytes()[:4_000_000] if library else bytes(range(256)) * 4_000
    print(f"no text      {best_seconds(lambda: binary.masked(raw), 1) / len(raw) * 1e9:8.1f} ms per MB of a program")


def show_texts(texts: dict[str, str]) -> None:
    for name, body in texts.items():
        seconds = best_seconds(partial(redact.clean_text, body), 3)
        floor = best_seconds(partial(scanned_alone, body), 3)
        count = redact.clean_text(body).redactions
        print(f"{name:12} {seconds * 1e3:8.1f} ms per MB, {count} redactions; the scanner alone {floor * 1e3:.1f} ms")


def scanned_alone(body: str) -> int:
    engine = scanner()
    if engine is None:
        return 0
    return sum(len(engine.scan(body[start : start + CHUNK])) for start in range(0, len(body), CHUNK))


def show_events(small: list[Any], payloads: list[Any]) -> None:
    each = best_seconds(lambda: redact.clean_many(small)) / len(small)
    print(f"small events {each * 1e6:8.1f} µs each by clean_many, {len(json.dumps(small[0]))} bytes")
    each = best_seconds(lambda: [redact.clean(one) for one in small[:500]]) / 500
    print(f"             {each * 1e6:8.1f} µs each by clean")
    size = sum(len(json.dumps(one)) for one in payloads)
    seconds = best_seconds(lambda: redact.clean_many(payloads), 3)
    print(f"real events  {seconds / len(payloads) * 1e6:8.1f} µs each of {size // len(payloads)} bytes, ", end="")
    print(f"{seconds / size * 1e9:.0f} ms per MB")


def small_event(place: int) -> dict[str, Any]:
    return {
        "session_id": f"0f6b3a52-7c1d-4e7f-9a55-{place:012d}",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_use_id": f"toolu_01{place:022d}",
        "cwd": "/home/dev/project",
        "tool_input": {"command": f"pytest tests/test_{place}.py -q"},
        "tool_response": {"stdout": f"{place} passed in 0.{place}s\n", "stderr": "", "interrupted": False},
    }


if __name__ == "__main__":
    main()
