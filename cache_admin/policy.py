"""What may be cached, for how long, and for whom. Unknown tools never, side effects never, errors never.

A team's own row decides; without one the usual tools have the policies below; without those, the hints of an MCP
server count for little, since nobody vouches for them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.utils.translation import gettext

from cache_admin.normalize import Rules, rules_of

MODES: Final = ("off", "observe", "serve")
SCOPES: Final = ("member", "thread", "project", "team")
SUMMARISERS: Final = ("auto", "whole", "code", "logs", "tests", "json", "list", "diff", "markdown", "plain")
OUTCOMES: Final = ("", "nothing", "time", "money", "customer", "safety")
DANGEROUS: Final = frozenset({"money", "customer", "safety"})
DANGEROUS_TTL: Final = 60
MAX_TTL: Final = 30 * 24 * 3600
HINTED_TTL: Final = 60
DEFAULT_THRESHOLD: Final = 0.92


class InvalidPolicy(ValueError):
    """The policy would serve stale or foreign answers; the message says what to change."""


@dataclass(frozen=True)
class Policy:
    """How one tool's results are kept."""

    tool: str
    mode: str = "off"
    scope: str = "project"
    ttl_s: int | None = None
    by_content: bool = False
    read_only: bool = False
    has_effects: bool = False
    rules: Rules = field(default_factory=Rules)
    summariser: str = "auto"
    empty_ttl_s: int = 0
    lease_s: int = 60
    shadow_percent: int = 0
    semantic: bool = False
    threshold: float = DEFAULT_THRESHOLD
    worst_outcome: str = ""
    invalidates: bool = False
    salt: int = 0
    source: str = "unknown"

    def bypass(self, *, content_hash: str) -> str:
        """Why a call goes past the cache; empty where it does not."""
        if self.source == "unknown":
            return "unknown_tool"
        if self.has_effects:
            return "side_effects"
        if self.mode == "off":
            return "off"
        if self.by_content and not content_hash:
            return "no_content_hash"
        return ""


_FILE: Final = {"paths": ["path", "file_path", "file", "filename", "notebook_path", "paths", "files"]}
_TREE: Final = {"paths": ["path", "directory", "dir", "root", "paths"]}


def _content(
    mode: str, rules: Mapping[str, Any], *, read_only: bool = True, summariser: str = "auto"
) -> dict[str, Any]:
    return {
        "mode": mode,
        "by_content": True,
        "read_only": read_only,
        "rules": rules_of(rules),
        "summariser": summariser,
    }


def _timed(ttl_s: int, rules: Mapping[str, Any]) -> dict[str, Any]:
    # What changes by itself is only watched until a person of the team says that its age does no harm.
    return {"mode": "observe", "ttl_s": ttl_s, "read_only": True, "scope": "team", "rules": rules_of(rules)}


_NEVER: Final[dict[str, Any]] = {"mode": "off", "has_effects": True}
SEEDS: Final[dict[str, dict[str, Any]]] = {
    "read_file": _content("serve", _FILE, summariser="code"),
    "Read": _content("serve", {**_FILE, "numbers": ["offset", "limit"]}, summariser="code"),
    "Grep": _content("serve", {**_TREE, "defaults": {"output_mode": "files_with_matches"}}, summariser="list"),
    "Glob": _content("serve", _TREE, summariser="list"),
    "LS": _content("serve", _TREE, summariser="list"),
    "run_static_analysis": _content("serve", _FILE),
    "analyze_dependencies": _content("serve", _TREE),
    "lint": _content("observe", _FILE, read_only=False, summariser="logs"),
    "build": _content("observe", _TREE, read_only=False, summariser="logs"),
    "run_tests": _content("observe", _TREE, read_only=False, summariser="tests"),
    "get_exchange_rate": _timed(300, {}),
    "search_web": _timed(900, {"queries": ["query", "q"]}),
    "WebSearch": _timed(900, {"queries": ["query"]}),
    "WebFetch": _timed(900, {"urls": ["url"]}),
    "lookup_company": _timed(3600, {"queries": ["name", "query"]}),
    **dict.fromkeys(
        (
            *("get_current_time", "send_email", "create_order", "get_inventory_level"),
            *("Bash", "Edit", "Write", "MultiEdit", "NotebookEdit", "Task", "TodoWrite"),
        ),
        _NEVER,
    ),
}


# The same of other harnesses: what a server says about its tool must not make a shell one that only reads.
_ELSEWHERE: Final = frozenset(
    """bash sh shell Shell exec exec_command local_shell run_command execute_command run_shell_command run_terminal_cmd
    run_in_terminal terminal PowerShell powershell apply_patch edit_file write_file replace create_file delete_file
    str_replace_editor""".split()  # noqa: SIM905 - a list would take 22 lines
)


def default_policy(tool: str, *, hints: Mapping[str, Any] | None = None) -> Policy:
    """The policy of a tool for which the team has no row."""
    if tool in SEEDS:
        return Policy(tool, **SEEDS[tool], source="seed")
    if tool in _ELSEWHERE:
        return Policy(tool, **_NEVER, source="seed")
    return _hinted(tool, hints) if hints else Policy(tool)


def _hinted(tool: str, hints: Mapping[str, Any]) -> Policy:
    """What an MCP server says about its tool. Nobody vouches for it, so results stay with the member who asked."""
    if hints.get("readOnlyHint") is not True or hints.get("destructiveHint") is True:
        return Policy(tool, has_effects=True, source="hints")
    if hints.get("openWorldHint") is False:
        return Policy(tool, mode="serve", scope="member", by_content=True, read_only=True, source="hints")
    return Policy(tool, mode="observe", scope="member", ttl_s=HINTED_TTL, read_only=True, source="hints")


def check(policy: Policy) -> None:
    """Raises InvalidPolicy where the policy could serve what is stale, or what has effects."""
    _check_words(policy)
    if policy.mode == "off":
        return
    if policy.has_effects:
        raise InvalidPolicy(gettext("A tool with side effects is never cached: the second call must act too."))
    if policy.ttl_s is None and not policy.by_content:
        raise InvalidPolicy(
            gettext("Without a lifetime, calls must carry a content hash. Give ttl_s, or set by_content.")
        )
    if policy.ttl_s is None:
        return
    if not 1 <= policy.ttl_s <= MAX_TTL:
        raise InvalidPolicy(gettext("ttl_s is 1 to %(most)s seconds.") % {"most": MAX_TTL})
    if not policy.worst_outcome:
        raise InvalidPolicy(gettext("Say what the worst outcome of a ten-minute-old answer is: worst_outcome."))
    if policy.worst_outcome in DANGEROUS and not (policy.ttl_s <= DANGEROUS_TTL and policy.invalidates):
        raise InvalidPolicy(
            gettext(
                "Where an old answer may cost %(worst_outcome)s, the tool is off, or lives at most %(dangerous_ttl)s s"
                " with active invalidation (invalidates)."
            )
            % {"worst_outcome": policy.worst_outcome, "dangerous_ttl": DANGEROUS_TTL}
        )


def _check_words(policy: Policy) -> None:
    for name, value, known in (
        ("mode", policy.mode, MODES),
        ("scope", policy.scope, SCOPES),
        ("summariser", policy.summariser, SUMMARISERS),
        ("worst_outcome", policy.worst_outcome, OUTCOMES),
    ):
        if value not in known:
            raise InvalidPolicy(
                gettext("%(name)s is one of %(value)s.") % {"name": name, "value": ", ".join(filter(None, known))}
            )
    if not 0 < policy.threshold <= 1:
        raise InvalidPolicy(gettext("threshold is above 0 and at most 1."))
    if not 1 <= policy.lease_s <= 600 or not 0 <= policy.shadow_percent <= 100 or policy.empty_ttl_s < 0:
        raise InvalidPolicy("lease_s is 1 to 600, shadow_percent 0 to 100, empty_ttl_s not below 0.")


def place_ref(scope: str, *, project: str, content_hash: str, is_limited: bool) -> str:
    """The project that has to stand in the key beside a member or a thread; empty where it need not.

    A member has several projects, and so may a thread. Only a content hash tells apart what they hold at one path.
    """
    return project if scope in ("member", "thread") and (is_limited or not content_hash) else ""


def scope_ref(scope: str, *, member: str, thread: str, project: str) -> str:
    """What stands in the key for the audience. Raises InvalidPolicy where the call does not say where it belongs."""
    if scope == "team":
        return "team"
    value = {"member": member, "thread": thread, "project": project}[scope]
    if not value:
        raise InvalidPolicy(f"no_{scope}")
    return f"{scope}:{value}"
