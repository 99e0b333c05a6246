"""What the project's own files say of it: name, version, purpose, scripts, and the rules written for agents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from dream import distill_commands as commands
from dream.distill_words import has_secret, safe, short

INSTRUCTIONS = (
    "CLAUDE.md",
    "AGENTS.md",
    "GEMINI.md",
    "CONTRIBUTING.md",
    ".cursorrules",
    ".github/copilot-instructions.md",
)
READMES = ("README.md", "README.rst", "README", "docs/README.md")
_OWN_BLOCK = re.compile(r"<!-- team-memory:start -->.*?(?:<!-- team-memory:end -->|\Z)", re.S)
_SCRIPT = re.compile(r'^\s*"([\w:.-]+)":\s*"((?:[^"\\]|\\.)*)",?\s*$', re.M)
_FIELD = r'^\s{{0,4}}"{0}":\s*"((?:[^"\\]|\\.)*)"'
_STRONG = re.compile(
    r"\b(?:NEVER|ALWAYS|MUST(?: NOT)?|REQUIRED|IMPORTANT|DO NOT|ONLY)\b|^RULE:|\bshould be run (?:using|with)\b"
)
_MILD = re.compile(r"\b(?:never|always|must|do not|don't|make sure|avoid)\b", re.I)


# `npm run check` - Full validation suite | `make lint`: Run the linter; and in a block of code: make lint   # Run it
_DESCRIBED = re.compile(r"`([^`\n]{3,60})`\*{0,2}\s*(?:-{1,2}|–|—|:)\s+([^|`\n]{4,})")
_COMMENTED = re.compile(r"^[ \t]*(?:\$ )?([a-z./][^#`\n]{2,60}?)[ \t]+#[ \t]+([^\n]{4,})$", re.M)
# In a block of code too: the line above a command, where it is a comment
_HEADED = re.compile(r"^[ \t]*#[ \t]+([^\n]{4,})\n[ \t]*(?:\$ )?([a-z./][^#`\n]{2,60}?)[ \t]*$", re.M)
_FENCED = re.compile(r"^```[a-z]*\n(.*?)^```", re.S | re.M)


@dataclass(slots=True)
class Told:
    """What one reading of one file told: of the project, of its scripts, and what its people wrote for agents."""

    facts: dict[str, str] = field(default_factory=dict)
    uses: dict[str, str] = field(default_factory=dict)
    scripts: dict[str, str] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)
    needs: list[str] = field(default_factory=list)


def told(path: str, content: str, *, from_start: bool) -> Told:
    """What a file of the project, named by its path below the root, says of the project."""
    content = _OWN_BLOCK.sub("", content)
    result = Told()
    if path == "package.json":
        _package_json(content, result)
    elif path == "Makefile":
        result.scripts = dict(_make_targets(content))
    elif path == "go.mod" and from_start:
        _go_mod(content, result)
    elif path in ("pyproject.toml", "Cargo.toml") and from_start:
        _toml(path, content, result)
    elif path in INSTRUCTIONS or path in READMES:
        if from_start:
            about = _about(content)
            if about:
                result.facts[path] = f"`{path}` says: “{about}”"
        result.uses = _described(content)
        if path in INSTRUCTIONS:
            result.rules = _written_rules(content)
            how = _how_to_run(content)
            if how:
                result.facts[f"{path}#run"] = f"`{path}` says: “{how}”"
    return result


def _package_json(content: str, result: Told) -> None:
    # Not the version: it is out of date with the next release.
    name, purpose = _json_field(content, "name"), _json_field(content, "description")
    if name:
        words = f"`package.json` names the package {safe(name)}"
        result.facts["package.json"] = words + (f": “{short(purpose)}”" if purpose else "")
    start = content.find('"scripts"')
    if start >= 0:
        block = content[start : content.find("}", start)]
        runner = "npm run "
        result.scripts = {runner + key: _unescaped(value) for key, value in _SCRIPT.findall(block)}


def _json_field(content: str, key: str) -> str:
    match = re.search(_FIELD.format(key), content, re.M)
    return _unescaped(match[1]) if match else ""


def _unescaped(value: str) -> str:
    try:
        return str(json.loads(f'"{value}"'))
    except ValueError:
        return value


def _make_targets(content: str) -> Iterator[tuple[str, str]]:
    for match in re.finditer(r"^([a-z][\w.-]*):[^=\n]*\n((?:\t[^\n]+\n?)+)", content, re.M):
        recipe = [line.strip().lstrip("@") for line in match[2].splitlines()]
        recipe = [line for line in recipe if not line.startswith(("echo", "#"))]
        if recipe:
            yield f"make {match[1]}", recipe[0] + (f" … (first of {len(recipe)} lines)" if len(recipe) > 1 else "")


def _go_mod(content: str, result: Told) -> None:
    module = re.search(r"^module (\S+)", content, re.M)
    version = re.search(r"^go (\S+)", content, re.M)
    if not module:
        return
    block = re.search(r"^require \((.*?)^\)", content, re.M | re.S)
    result.needs = re.findall(r"^\t(\S+) v\S+$", block[1], re.M) if block else []
    result.facts["go.mod"] = f"`go.mod`: module `{safe(module[1])}`" + (f", Go {version[1]}" if version else "")


def _toml(path: str, content: str, result: Told) -> None:
    name = re.search(r'^name\s*=\s*"([^"]+)"', content, re.M)
    if not name:
        return
    text = f"`{path}` names it {safe(name[1])}"
    purpose = re.search(r'^description\s*=\s*"([^"]+)"', content, re.M)
    python = re.search(r'^requires-python\s*=\s*"([^"]+)"', content, re.M)
    text += f", Python {safe(python[1])}" if python else ""
    result.facts[path] = text + (f": “{short(purpose[1])}”" if purpose else "")


def _about(content: str) -> str:
    """The first paragraph that tells what the project is: below an overview heading, else below the title."""
    lead = re.search(
        r"^#+ *(?:Project |Repository )?(?:Overview|What is [^\n]+|About[^\n]*)\n+([^#\n`|<\-*][^\n]{20,})",
        content,
        re.M | re.I,
    )
    lead = lead or re.match(r"\s*# [^\n]+\n+([A-Za-z][^\n]{15,})", content)
    if not lead or lead[1].startswith(("This file provides guidance", "[!", "All notable")):
        return ""
    text = re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", lead[1])
    first = re.split(r"(?<=[.!?])\s+", text)
    return "" if has_secret(text) else short(first[0] if len(first[0]) > 60 else " ".join(first[:2]), 240)


def _how_to_run(content: str) -> str:
    match = re.search(r"^[^\n]*\bcommands should be run (?:using|with|in)\b[^\n]*$", content, re.M | re.I)
    return short(match[0], 220) if match else ""


def _described(content: str) -> dict[str, str]:
    """The commands that a file explains, each with its explanation, in the file's own words."""
    blocks = "\n".join(_FENCED.findall(content))
    headed = [(command, said) for said, command in _HEADED.findall(blocks)]
    found = [*_DESCRIBED.findall(_FENCED.sub("", content)), *_COMMENTED.findall(blocks), *headed]
    uses: dict[str, str] = {}
    for command, said in found:
        form = commands.form(command.strip())
        if commands.kind(form) and " " in form and len(said.split()) > 1 and not has_secret(form + said):
            uses.setdefault(form, short(said.strip(" *_."), 70))
    return uses


def _written_rules(content: str) -> list[str]:
    """The lines of an instruction file that command something, strongest words first, in the file's own words."""
    content = re.sub(r"^```.*?(?:^```|\Z)", "", content, flags=re.S | re.M)
    lines = [line.strip(" -*>#\t") for line in content.splitlines()]
    lines = [line.replace("**", "") for line in lines if 20 <= len(line) <= 400 and not line.startswith(("|", "```"))]
    strong = [line for line in lines if _STRONG.search(line)]
    mild = [line for line in lines if _MILD.search(line) and line not in strong]
    return [short(line, 150) for line in [*strong, *mild][:12] if not has_secret(line)]
