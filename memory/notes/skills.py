"""A note as an agent skill: a folder with a SKILL.md, whose head is what harnesses read, and back without a loss.

The note's own frontmatter rides along in the head as one quoted text, so that the note comes back byte for byte.
"""

import re
from dataclasses import dataclass
from typing import Any, Final

import yaml

from memory.notes import frontmatter, paths, yamltext

FOLDER: Final = "skills/"
MAX_NAME: Final = 64
MAX_DESCRIPTION: Final = 1024
MAX_HEAD: Final = 32 * 1024
MOST_BRACKETS: Final = 200
_HEAD = re.compile(r"\A---\n(.*?\n)---\n", re.DOTALL)
_PATH: Final = "team-memory-path"
_FRONTMATTER: Final = "team-memory-frontmatter"


@dataclass(frozen=True)
class Skill:
    """The note that a SKILL.md stands for; `path` is empty where it does not say."""

    path: str
    text: str


def is_skill(name: str) -> bool:
    return name.rsplit("/", 1)[-1] == "SKILL.md"


def name_of(path: str) -> str:
    """The name of a skill: small Latin letters, digits and single hyphens, as harnesses demand."""
    stem = path.casefold().removesuffix(".md").removeprefix("general/").removeprefix("project/")
    plain = re.sub(r"[^a-z0-9]+", "-", "-".join(paths.slug(part) for part in stem.split("/")))
    return plain.strip("-")[:MAX_NAME].strip("-") or "note"


def write(path: str, text: str, *, taken: Any) -> tuple[str, str]:
    """The file's name and content. A name that another note took gets a number."""
    stem, number = name_of(path), 2
    name = stem
    while f"{FOLDER}{name}/SKILL.md" in taken:
        tail = f"-{number}"
        name, number = stem[: MAX_NAME - len(tail)].rstrip("-") + tail, number + 1
    try:
        document = frontmatter.split(text)
    except frontmatter.InvalidFrontmatter:
        document = frontmatter.Document(None, "", text)
    described = document.field("description") or document.field("title") or f"What this team knows: {path}"
    head = {"name": name, "description": described[:MAX_DESCRIPTION]}
    lines = "".join(f"{key}: {yamltext.scalar(value)}\n" for key, value in head.items())
    more = {_PATH: path, _FRONTMATTER: document.bom + document.raw_frontmatter}
    lines += "metadata:\n" + "".join(f"  {key}: {yamltext.scalar(value)}\n" for key, value in more.items())
    return f"{FOLDER}{name}/SKILL.md", f"---\n{lines}---\n{document.body}"


def read(name: str, text: str) -> Skill:
    """The note in a SKILL.md, ours or anybody's: a foreign one becomes general/skills/NAME.md with its own head."""
    head = _HEAD.match(text)
    fields = _fields(head.group(1)) if head else {}
    metadata = fields.get("metadata")
    if head is None or not isinstance(metadata, dict) or _PATH not in metadata:
        folder = name.split("/")[-2] if "/" in name else "skill"
        return Skill(f"general/skills/{paths.slug(folder)}.md", text)
    note = _text(metadata, _FRONTMATTER) + text[head.end() :]
    return Skill(_text(metadata, _PATH), _redescribed(note, _text(fields, "description")))


def _text(fields: dict[str, Any], name: str) -> str:
    """A field that is text. Nothing else is made text: what YAML's aliases stand for can be endless."""
    value = fields.get(name, "")
    return value if isinstance(value, str) else ""


def _redescribed(note: str, description: str) -> str:
    """The note with the description of the head, where somebody changed it there."""
    try:
        document = frontmatter.split(note)
    except frontmatter.InvalidFrontmatter:
        return note
    before = document.field("description")
    if not before or before[:MAX_DESCRIPTION] == description or not description:
        return note
    return frontmatter.with_fields(note, description=description)


def _fields(head: str) -> dict[str, Any]:
    # The reader goes a level deeper at each bracket, and takes seconds to find that it can't.
    if len(head) > MAX_HEAD or head.count("[") + head.count("{") > MOST_BRACKETS:
        return {}
    try:
        fields = yaml.load(head, Loader=yaml.BaseLoader)  # noqa: S506 - builds texts, lists and mappings only
    except (yaml.YAMLError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}
