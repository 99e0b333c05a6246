"""Sessions for the tests of the dream: a recorded excerpt, and made-up logs written line by line."""

from __future__ import annotations

import gzip
import json
from datetime import datetime
from pathlib import Path
from typing import Any

from dream.distill import Draft, SeenEvent, distill, render

EXCERPT = Path(__file__).parents[1] / "data" / "sessions" / "attio-excerpt.jsonl.gz"
NAMES = {"UserPromptSubmit": "prompt", "PreToolUse": "tool_before", "PostToolUse": "tool_after", "Stop": "stop"}


def recorded() -> list[SeenEvent]:
    lines = [json.loads(line) for line in gzip.decompress(EXCERPT.read_bytes()).decode().splitlines()]
    return [
        SeenEvent(
            id=f"evt_{number:05d}",
            session=f"ses_{line['payload']['session_id']}",
            seq=line["seq"],
            client="claude-code",
            name=NAMES.get(line["payload"]["hook_event_name"], "other"),
            at=datetime.fromisoformat(line["ts"]) if line["ts"] else None,
            member="alice",
            agent_id=None,
            tool=line["payload"].get("tool_name"),
            payload=line["payload"],
        )
        for number, line in enumerate(lines)
    ]


class Log:
    """A made-up session: each call adds an event with the next seq."""

    def __init__(self, session: str = "ses_a", *, member: str | None = "an", client: str = "claude-code") -> None:
        self.session, self.member, self.client = session, member, client
        self.events: list[SeenEvent] = []

    def add(self, name: str, *, tool: str | None = None, agent: str | None = None, **payload: Any) -> str:
        seq = len(self.events) + 1
        event_id = f"evt_{self.session[4:]}{seq:04d}"
        self.events.append(
            SeenEvent(
                event_id,
                self.session,
                seq,
                self.client,
                name,
                None,
                self.member,
                agent,
                tool,
                {"cwd": "/home/an/shop", **payload},
            )
        )
        return event_id

    def prompt(self, text: str, **kwargs: Any) -> str:
        return self.add("prompt", prompt=text, **kwargs)

    def before(self, command: str) -> str:
        return self.add("tool_before", tool="Bash", tool_input={"command": command})

    def after(self, command: str, stdout: str = "", **response: Any) -> str:
        answer = {"stdout": stdout, "stderr": "", "interrupted": False, **response}
        return self.add("tool_after", tool="Bash", tool_input={"command": command}, tool_response=answer)

    def ran(self, command: str, stdout: str = "", **response: Any) -> str:
        self.before(command)
        return self.after(command, stdout, **response)

    def edited(self, path: str) -> None:
        given = {"file_path": f"/home/an/shop/{path}", "old_string": "a", "new_string": "b"}
        self.add("tool_before", tool="Edit", tool_input=given)
        self.add("tool_after", tool="Edit", tool_input=given, tool_response={"filePath": given["file_path"]})

    def read(self, path: str, content: str) -> None:
        given = {"file_path": f"/home/an/shop/{path}"}
        lines = content.count("\n")
        shown = {"content": content, "startLine": 1, "numLines": lines, "totalLines": lines}
        self.add("tool_before", tool="Read", tool_input=given)
        self.add("tool_after", tool="Read", tool_input=given, tool_response={"file": shown})

    def notes(self) -> dict[str, str]:
        return texts(distill(self.events, project="shop", slug="shop").drafts)


def texts(drafts: list[Draft]) -> dict[str, str]:
    return {draft.path: render(draft) for draft in drafts}


def everything(notes: dict[str, str]) -> str:
    return "\n".join(notes.values())
