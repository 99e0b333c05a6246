"""Shell commands: their parts, their common form, what they are for, and whether they worked."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

MAX_FORM = 120
_QUOTES = "'\""
_REDIRECT = re.compile(r"\s*(?:\d?>&\d|&>\s*\S+|\d?>>?\s*/dev/null|<\s*/dev/null)")
_ENV = re.compile(r"^(?:[A-Za-z_]\w*=(?:\"[^\"]*\"|'[^']*'|\S*)\s+)+")
_HEREDOC = re.compile(r"\"\$\(cat <<-? ?[\"']?(\w+)[\"']?\n.*?\n\s*\1\s*\)\"", re.S)
_LONG_QUOTE = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'", re.S)

# The first words that say which command of a program it is.
_TWO_WORDS = {
    "go", "git", "gh", "npm", "pnpm", "yarn", "bun", "cargo", "make", "docker", "backlog", "golangci-lint",
    "uv", "poetry", "pip", "npx", "python", "python3", "terraform", "kubectl", "just", "task", "dotnet", "mvn",
    "gradle", "./gradlew", "bundle", "rake", "composer", "php", "mix", "deno", "node", "templ", "nix", "swift",
    "zig", "pre-commit",
}  # fmt: skip
_THREE_WORDS = re.compile(
    r"^(?:(?:npm|pnpm|yarn|bun) run|gh \w+|go mod|docker compose|uv run|poetry run|bundle exec|python3? -m|"
    r"backlog task) "
)
_KINDS = (
    ("test", r"\b(?:go test|cargo (?:test|nextest)|pytest|vitest|jest|mocha|rspec|phpunit|tox|nox|ctest|dotnet test|"
             r"(?:mvn|mvnw) (?:test|verify)|(?:gradle|gradlew) \S*test\S*|playwright test|(?:deno|swift|artisan) test|"
             r"(?:npm|pnpm|yarn|bun)(?: run)? test\S*|(?:make|just|task) \S*test\S*|mix test|rake test|rails test|"
             r"manage\.py test)"),
    ("lint", r"\b(?:golangci-lint|eslint|ruff check|flake8|mypy|pyright|go vet|cargo clippy|staticcheck|shellcheck|"
             r"rubocop|biome|(?:npm|pnpm|yarn|bun) run (?:\S*lint\S*|check|typecheck\S*|type-check\S*)|"
             r"(?:make|just|task) \S*(?:lint|vet|check|typecheck)\S*|deno lint|cargo check|"
             r"tsc --noEmit|pre-commit)"),
    ("format", r"\b(?:prettier|gofmt|go fmt|black|ruff format|rustfmt|cargo fmt|nix fmt|"
               r"(?:npm|pnpm|yarn|bun) run \S*(?:format|fmt)\S*|(?:make|just|task) (?:fmt|format)|deno fmt)"),
    ("generate", r"\b(?:go generate|templ generate|make generate|protoc|sqlc generate|"
                 r"(?:npm|pnpm|yarn|bun) run \S*(?:codegen|generate)\S*)"),
    ("build", r"\b(?:go build|cargo build|tsc|vite build|webpack|docker build|mvn package|gradle build|"
              r"(?:npm|pnpm|yarn|bun)(?: run)? build\S*|(?:make|just|task) (?:build\S*|all)|"
              r"(?:dotnet|zig|swift) build)"),
    ("install", r"\b(?:npm (?:install|ci|i)|pnpm (?:install|add)|yarn (?:install|add)|go mod|go get|go install|"
                r"pip install|uv (?:sync|add|pip)|poetry (?:install|add)|cargo add|bundle install)\b"),
    ("run", r"^(?:go run|cargo run|node|npm start|python3?|uv run|deno run|\./\S+|(?:npm|pnpm|yarn|bun) run|make|"
            r"nix)\b|^\./"),
)  # fmt: skip
KINDS = tuple((kind, re.compile(pattern)) for kind, pattern in _KINDS)
_WRAPPERS = re.compile(r"^(?:nix develop(?: \S*)? -c|nix-shell --run|time|timeout \S+|sudo|env|xvfb-run) +")

_FAILED = re.compile(
    r"^E +\w*(?:Error|Exception|assert)\b|^FAIL\b|^\d+ failed\b|^test result: FAILED|"
    r"^--- FAIL:|^\s+FAIL  |Tests +\d+ failed|Test Files +\d+ failed|\berror TS\d+:|\bcommand not found\b|"
    r"^npm (?:ERR!|error)|^panic:|^Traceback \(most recent|^=+ .*\d+ failed|^make: \*\*\*|^error(?:\[E\d+\])?: |"
    r"^fatal: |"
    r"\[build failed\]|ELIFECYCLE|^ERR_|^\S+\.go:\d+:\d+: ",
    re.M,
)
# Only summaries that stand at the end: `ok` of one Go package, seen through `| head`, proves nothing of the others.
_PASSED = re.compile(
    r"Test Files +\d+ passed|^\d+ passed(?:, \d+ \w+)* in |^test result: ok\.|"
    r"^0 issues\.|All matched files use Prettier|^=+ .*\d+ passed|All checks passed",
    re.M,
)
_ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True, slots=True)
class Part:
    """One simple command of a command line; `joined` is what follows it: && || ; | & or nothing."""

    text: str
    joined: str


def plain(text: str) -> str:
    """Text without terminal colours and control characters."""
    return _ANSI.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))


def parts(command: str) -> list[Part]:
    """The simple commands of a command line, quotes and here-documents kept together."""
    found: list[Part] = []
    current: list[str] = []
    quote = ""
    depth = 0
    i = 0
    while i < len(command):
        char = command[i]
        two = command[i : i + 2]
        if char == "\\" and quote != "'":
            current.append(two)
            i += 2
            continue
        if quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        elif two == "$(":
            depth += 1
        elif char == ")" and depth:
            depth -= 1
        elif depth == 0:
            if two == "<<":
                current.append(command[i:])
                break
            joined = two if two in ("&&", "||") else char if char in ";|\n" or _is_background(command, i) else ""
            if joined:
                found.append(Part("".join(current).strip(), ";" if joined == "\n" else joined))
                current = []
                i += len(joined)
                continue
        current.append(char)
        i += 1
    found.append(Part("".join(current).strip(), ""))
    return [part for part in found if part.text]


def _is_background(command: str, i: int) -> bool:
    return command[i] == "&" and command[i - 1 : i] not in (">", "<") and command[i + 1 : i + 2] != ">"


def form(text: str, *, root: str = "") -> str:
    """The command in its common form: no redirections, no long quoted text, the project's root as a dot."""
    text = _HEREDOC.sub('"…"', text)
    text = text.split("<<", 1)[0] if "$(" not in text.split("<<", 1)[0] else text
    text = _LONG_QUOTE.sub(lambda m: '"…"' if len(m[0]) > 42 or "\n" in m[0] or "$(" in m[0] else m[0], plain(text))
    text = _REDIRECT.sub("", text)
    text = _ENV.sub("", text)
    if root:
        text = text.replace(root + "/", "./").replace(root, ".")
    text = " ".join(text.split())
    return text if len(text) <= MAX_FORM else text[:MAX_FORM].rsplit(" ", 1)[0] + " …"


def bare(text: str) -> str:
    """The command below wrappers such as `nix develop -c` and `npx`."""
    before = None
    while before != text:
        before, text = text, _WRAPPERS.sub("", text)
    return text.removeprefix("npx ")


def family(text: str) -> str:
    """Which command it is: `go test`, `npm run check:format`, `gh pr create`; the wrapper stays in front."""
    wrapper = text[: len(text) - len(_unwrapped(text))]
    words = _unwrapped(text).split()
    if not words:
        return text
    count = 1
    if words[0] in _TWO_WORDS and len(words) > 1 and (not words[1].startswith("-") or words[1] == "-m"):
        count = 3 if _THREE_WORDS.match(" ".join(words) + " ") and len(words) > 2 else 2
    if words[:2] == ["backlog", "task"] and len(words) > 2 and not words[2].isalpha():
        count = 2
    if words[0] in ("node", "python", "python3") and words[1:2] != ["-m"]:
        count = min(2, len(words))
    return wrapper + " ".join(words[:count])


def _unwrapped(text: str) -> str:
    before = None
    while before != text:
        before, text = text, _WRAPPERS.sub("", text)
    return text


def kind(text: str) -> str:
    """What the command is for: test, lint, format, generate, build, install, run, or nothing of these."""
    below = _unwrapped(text)
    if below.startswith(("grep ", "cat ", "ls ", "find ", "echo ", "rm ", "git ", "gh ", "backlog ", "chmod ")):
        return ""
    if below.endswith((" --help", " -h", " --version")):
        return "run"
    return next((name for name, pattern in KINDS if pattern.search(below)), "")


_WHOLE = ("./...", ".", "--", "main.go", "src", "src/", "tests", "tests/", "test", "test/", "lib", "lib/")


def is_whole(text: str, name: str) -> bool:
    """Whether the command is about the project as a whole, not about one file, package or test."""
    rest = text[len(name) :].split()
    return all(
        word in _WHOLE or re.fullmatch(r"\d+[smh]?", word) or (word.startswith("-") and not word.startswith("-run"))
        for word in rest
    )


def named(text: str) -> dict[str, str | bool]:
    """What follows from a form alone: its family, its kind, whether it is about the whole project."""
    return {"fam": family(text), "kind": kind(text), "whole": is_whole(text, family(text))}


def checks(text: str) -> bool:
    """Whether the command's output may be read for failures: that of `cat` or `gh run view` holds those of others."""
    return kind(form(text)) in ("test", "build", "lint", "format", "generate", "install")


def flags(text: str) -> list[str]:
    """The flags of a command, with their value where it is written with `=`."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return [word for word in words if word.startswith("-") and len(word) > 1 and len(word) <= 40]


def outcomes(found: list[Part], *, ended_well: bool, output: str, background: bool = False) -> list[str]:
    """For each part: "ok", "failed" or "" for not known.

    A command line that ended well proves its last part and what `&&` led to it. Before a pipe the exit code is lost,
    so only what the output itself says counts.
    """
    if background or not ended_well or any(part.joined in ("||", "&") for part in found):
        return [""] * len(found)
    result = []
    for i, part in enumerate(found):
        chained = all(later.joined in ("&&", "|", "") for later in found[i:])
        if part.joined == "|":
            result.append(said(output) if _is_first_of_pipe(found, i) and not _later_pipe(found, i) else "")
        elif part.joined == "" or (part.joined == "&&" and chained):
            result.append("" if i and found[i - 1].joined == "|" else "ok")
        else:
            result.append("")
    return result


def _is_first_of_pipe(found: list[Part], i: int) -> bool:
    return i == 0 or found[i - 1].joined != "|"


def _later_pipe(found: list[Part], i: int) -> bool:
    """Whether another pipeline or command follows this one: then the output is not this command's alone."""
    j = i
    while j < len(found) and found[j].joined == "|":
        j += 1
    return j < len(found) - 1


def said(output: str) -> str:
    """What the output itself says of the outcome: "ok", "failed" or nothing."""
    if failure_line(output):
        return "failed"
    return "ok" if _PASSED.search(plain(output)) else ""


def failure_line(output: str) -> str:
    """The first line that says that something failed, or nothing."""
    text = plain(output)
    match = _FAILED.search(text)
    if not match:
        return ""
    start = text.rfind("\n", 0, match.end() - 1 if match[0].startswith("\n") else match.start() + 1) + 1
    line = text[start : text.find("\n", start) if text.find("\n", start) > 0 else None]
    return " ".join(line.split())


def error_line(error: str) -> str:
    """The line of an error that says most: the first that names a failure, else the first after the exit code."""
    named = failure_line(error)
    if named:
        return named
    lines = [" ".join(line.split()) for line in plain(error).splitlines()]
    lines = [line for line in lines if line and not re.fullmatch(r"Exit code:? \d+|Command failed.*|>.*|Error:?", line)]
    return lines[0] if lines else ""
