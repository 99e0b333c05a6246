"""How a harness is connected: what to paste, what to watch out for, and the memory's MCP address. Text in, text out."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final


def _claude_mcp(address: str, secret: str) -> str:
    bearer = f'--header "Authorization: Bearer {secret}"'
    return f"claude mcp add --transport http --scope user team-memory {address}/mcp {bearer}"


def _codex_mcp(address: str, secret: str) -> str:
    headers = f'{{ Authorization = "Bearer {secret}" }}'
    return f'[mcp_servers.team-memory]\nurl = "{address}/mcp"\nhttp_headers = {headers}'


def _server(under: str, **fields: Any) -> Callable[[str, str], str]:
    """One server in a JSON file; `url` names the field that takes the address."""
    name = fields.pop("url", "url")

    def written(address: str, secret: str) -> str:
        server = {**fields, name: f"{address}/mcp", "headers": {"Authorization": f"Bearer {secret}"}}
        return json.dumps({under: {"team-memory": server}}, indent=2)

    return written


@dataclass(frozen=True)
class Harness:
    """A coding agent that can be connected."""

    slug: str
    name: str
    file: str  # what install changes
    mcp_file: str  # where its MCP line goes; empty for a command
    mcp: Callable[[str, str], str]
    notes: tuple[str, ...] = ()


_NO_PROMPT: Final = "It takes no text with a prompt: the memory is told when a session starts."
HARNESSES: Final = (
    Harness("claude-code", "Claude Code", "~/.claude/settings.json", "", _claude_mcp),
    Harness(
        "codex",
        "Codex",
        "~/.codex/hooks.json",
        "~/.codex/config.toml",
        _codex_mcp,
        (
            "Codex runs a hook only once it is trusted, and leaves it out without a word until then: start codex, type "
            "/hooks, and trust those of team-memory. hook.py doctor says whether that is done.",
        ),
    ),
    Harness(
        "cursor",
        "Cursor",
        "~/.cursor/hooks.json",
        "~/.cursor/mcp.json",
        _server("mcpServers"),
        (
            "Cursor also runs the hooks of Claude Code's settings. Both may be connected: each event is sent once.",
            "Cloud agents do not run hooks of this machine.",
        ),
    ),
    Harness(
        "gemini-cli",
        "Gemini CLI",
        "~/.gemini/settings.json",
        "~/.gemini/settings.json",
        _server("mcpServers", url="httpUrl"),
    ),
    Harness(
        "copilot-cli",
        "Copilot CLI",
        "~/.copilot/hooks/team-memory.json",
        "~/.copilot/mcp-config.json",
        _server("mcpServers", type="http", tools=["*"]),
        (_NO_PROMPT,),
    ),
    Harness(
        "opencode",
        "OpenCode",
        "~/.config/opencode/plugins/team-memory.js",
        "~/.config/opencode/opencode.json",
        _server("mcp", type="remote", enabled=True),
        ("OpenCode has no hooks: the command writes a small plugin that starts hook.py.",),
    ),
    Harness(
        "vscode",
        "VS Code",
        "~/.claude/settings.json",
        ".vscode/mcp.json",
        _server("servers", type="http"),
        (
            "VS Code reads Claude Code's settings: these hooks serve both, and each event is sent once.",
            "Its agent takes no text from hooks. Connect MCP as well, so that it can ask the memory.",
        ),
    ),
)
BY_SLUG: Final = {harness.slug: harness for harness in HARNESSES}


def install(harness: Harness, address: str, secret: str) -> str:
    """The one command, for a shell."""
    options = f"--client {harness.slug} --url {address} --key {secret}"
    return f"curl -fsS {address}/clients/hook.py -o hook.py && python3 hook.py install {options}"


def install_powershell(harness: Harness, address: str, secret: str) -> str:
    """The same for PowerShell, whose older versions know no `&&`."""
    options = f"--client {harness.slug} --url {address} --key {secret}"
    return f"iwr {address}/clients/hook.py -OutFile hook.py -UseBasicParsing; py -3 hook.py install {options}"


def install_again(harness: Harness) -> str:
    """For a machine that is connected already: address and key are kept there."""
    return f"python3 ~/.config/team-memory/hook.py install --client {harness.slug}"


# Claude Code posts these itself. At SessionStart it takes commands alone.
POSTED: Final = (
    "UserPromptSubmit",
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


def without_client(address: str, secret: str) -> str:
    """What goes into Claude Code's settings.json where nothing may be installed: hooks that post by themselves."""
    posts = {
        "type": "http",
        "url": f"{address}/api/v1/hooks/claude-code",
        "headers": {"Authorization": "Bearer $TEAM_MEMORY_KEY"},
        "allowedEnvVars": ["TEAM_MEMORY_KEY"],
        "timeout": 3,
    }
    hooks: dict[str, Any] = {"SessionStart": [{"hooks": [{"type": "command", "command": COMMAND, "timeout": 5}]}]}
    hooks.update({event: [{"hooks": [posts]}] for event in POSTED})
    settings = {"env": {"TEAM_MEMORY_URL": address, "TEAM_MEMORY_KEY": secret}, "hooks": hooks}
    return json.dumps(settings, indent=2)
