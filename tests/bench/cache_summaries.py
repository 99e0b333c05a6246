"""How much shorter summaries are: `python tests/bench/cache_summaries.py LOGS SESSIONS`.

LOGS holds *.log.gz with the error lines of each in *.logview.json; SESSIONS a folder per project of hook logs. Prints
the reduction in tokens by kind, and the error lines that are no longer there (none).
"""

import gzip
import json
import sys
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cache_admin.policy import SEEDS  # noqa: E402
from cache_admin.summaries import summarise  # noqa: E402
from memory import tokens  # noqa: E402


def logs(folder: Path) -> int:
    """Prints each log's reduction; gives how many error lines were lost."""
    lost = 0
    for path in sorted(folder.glob("*.log.gz")):
        with gzip.open(path, "rt", errors="replace") as file:
            text = file.read()
        began = time.perf_counter()
        made = summarise(text)
        taken = time.perf_counter() - began
        errors = json.loads((folder / path.name.replace(".log.gz", ".logview.json")).read_text())["errors"]
        gone = [error for error in errors if error["line"].strip() not in made.text]
        lost += len(gone)
        share = 1 - tokens.count(made.text) / tokens.count(text)
        print(f"{path.name:32} {made.summariser:8} {len(text):9} characters  -{share:.1%}  errors lost {len(gone)} of"
              f" {len(errors)}  {taken:.1f} s")  # fmt: skip
    return lost


def results(folder: Path) -> None:
    """Prints the reduction by tool and summariser over the real outputs of tools."""
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for path in sorted(folder.glob("*/*.gz")):
        for line in gzip.decompress(path.read_bytes()).decode().splitlines():
            payload = json.loads(line)["payload"]
            if payload["hook_event_name"] != "PostToolUse":
                continue
            answer, tool = payload["tool_response"], payload["tool_name"]
            text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
            name = str(payload["tool_input"].get("file_path", "")) if isinstance(payload["tool_input"], dict) else ""
            made = summarise(text, str(SEEDS.get(tool, {}).get("summariser", "auto")), kind=name)
            row = sums[(tool, made.summariser)]
            row[0] += 1
            row[1] += tokens.count(text)
            row[2] += tokens.count(made.text)
    for (tool, kind), (count, before, after) in sorted(sums.items()):
        print(f"{tool[:40]:40} {kind:8} {count:4}x {before:8} -> {after:7}  -{1 - after / max(1, before):.1%}")


if __name__ == "__main__":
    lost = logs(Path(sys.argv[1]))
    results(Path(sys.argv[2]))
    sys.exit(1 if lost else 0)
