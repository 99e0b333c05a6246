"""How Claude Code is connected without installing anything: hooks that post by curl. Text in, text out."""

import json
from typing import Any, Final

# Start and prompt wait for what the memory tells; nothing else may hold the agent up.
TOLD: Final = ("SessionStart", "UserPromptSubmit")
WATCHED: Final = (
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "SubagentStart",
    "SubagentStop",
    "Notification",
    "PreCompact",
    "Stop",
    "SessionEnd",
)
# -f keeps an error's body off stdout, where the agent would read it; `|| true` keeps the exit code 0, since 2 would
# erase the person's prompt.
COMMAND: Final = (
    'curl -sf -m 1.5 -H "Authorization: Bearer $TEAM_MEMORY_KEY" -H "Content-Type: application/json"'
    ' -H "X-Team-Memory-Root: $CLAUDE_PROJECT_DIR"'
    ' -H "X-Team-Memory-Remote: $(git -C "$CLAUDE_PROJECT_DIR" remote get-url origin 2>/dev/null)"'
    ' --data-binary @- "$TEAM_MEMORY_URL/api/v1/hooks/claude-code" 2>/dev/null || true'
)

MERGE: Final = """python3 - <<'TEAM_MEMORY'
import json, pathlib, shutil, sys
new = json.loads(r'''%s''')
path = pathlib.Path.home() / ".claude" / "settings.json"
path.parent.mkdir(exist_ok=True)
try:
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
except (OSError, ValueError) as why:
    sys.exit(f"Nothing was changed: {path} can't be read as JSON ({why}). Mend it, then paste again.")
groups = old.get("hooks", {}) if isinstance(old, dict) else None
if (
    not isinstance(groups, dict)
    or not all(isinstance(listed, list) for listed in groups.values())
    or not isinstance(old.get("env", {}), dict)
):
    sys.exit(f"Nothing was changed: {path} is not what Claude Code reads as settings. Mend it, then paste again.")
# Run again, the copy of the file as it was before must stay what it is.
if path.exists() and "TEAM_MEMORY_URL" not in json.dumps(old):
    shutil.copy2(path, path.with_suffix(".json.before-team-memory"))
old.setdefault("env", {}).update(new["env"])
for event, groups in new["hooks"].items():
    kept = [g for g in old.setdefault("hooks", {}).get(event, []) if "TEAM_MEMORY_URL" not in json.dumps(g)]
    old["hooks"][event] = kept + groups
path.touch(0o600)
path.write_text(json.dumps(old, indent=2, ensure_ascii=False) + "\\n", encoding="utf-8")
path.chmod(0o600)
print("Team Memory is connected: start a new Claude Code session.")
TEAM_MEMORY
"""


def claude_code(address: str, secret: str) -> dict[str, Any]:
    """What goes into Claude Code's settings.json: the address and key as environment, and the hooks."""
    hooks = {}
    for event in (*TOLD, *WATCHED):
        handler: dict[str, Any] = {"type": "command", "command": COMMAND, "timeout": 5}
        if event in WATCHED:
            handler["async"] = True
        hooks[event] = [{"hooks": [handler]}]
    return {"env": {"TEAM_MEMORY_URL": address, "TEAM_MEMORY_KEY": secret}, "hooks": hooks}


def snippet(address: str, secret: str) -> str:
    """The same as indented JSON, to add by hand."""
    return json.dumps(claude_code(address, secret), indent=2)


def paste(address: str, secret: str) -> str:
    """A command for a terminal: it backs the settings up, keeps what is there, and may be run again."""
    return MERGE % json.dumps(claude_code(address, secret))
