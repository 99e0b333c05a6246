"""What people said: prompts without what was injected into them, the asks, the rules and the preferences in them."""

from __future__ import annotations

import re

MAX_QUOTE = 160

_INJECTED = (
    "system-reminder", "team-memory", "command-name", "command-message", "command-args", "command-contents",
    "local-command-stdout", "local-command-stderr", "local-command-caveat", "bash-input", "bash-stdout",
    "bash-stderr", "ide_selection", "ide_opened_file", "ide_diagnostics", "user-prompt-submit-hook",
    "task-notification", "environment_context", "user_instructions", "attached_files", "system",
    "function_results", "memory", "persisted-output", "new-diagnostics",
)  # fmt: skip
_BLOCK = re.compile(rf"<((?:{'|'.join(_INJECTED)})[\w-]*)\b[^>]*>.*?(?:</\1\s*>|\Z)", re.S | re.I)
_CAVEAT = re.compile(r"^Caveat: The messages below were generated.*?$", re.M)
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.S)
_PASTED = re.compile(r"\"\".*?(?:\"\"|\Z)", re.S)
_BOX = re.compile(r"[│┃╭╮╰╯─━┌┐└┘]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LOG_LINE = re.compile(
    r"^\s*(?:\d{4}-\d\d-\d\d[T ]|\[?\d\d:\d\d:\d\d|at \S+ \(|Traceback|File \"|npm (?:ERR!|error|warn)|"
    r"\S+\.\w+:\d+:\d+|"
    r"Error:|error\b.*:|--- FAIL|FAIL\b|=== RUN|[✓×✗] )"
)
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+|\s+(?=- )")
_SMALL = re.compile(
    r"n?(?:con)*contin(?:ue|ua|uer|uez)?(?: to next)?|continue|go on|ok(?:ay)?|yes|no|y|n|all|next|go|sim|oui|"
    r"có|tiếp(?: tục)?|"
    r"please|pls|thanks?|thank you|start|stop|done|polish|proceed|do it|go ahead|fix (?:it|them)|"
    r"yes but still fix them"
)

_CUES = (
    r"always|never|must(?: not|n't)?|make sure|ensure|do not|don['’]?t|dont|avoid|from now on|only use|no more|"
    r"instead of|"
    r"rather than|be sure to|required to|not allowed|(?:should|shall) (?:also )?(?:not|always|never|only)|"
    r"luôn(?: luôn)?|không bao giờ|đừng|không được|phải|hãy dùng|thay vì|nhớ|"
    r"sempre|nunca|jamais|não (?:use|usa|faça|altere|mexa|apague|crie)|deve(?:m)?|evite|evita|certifique-se|"
    r"em vez de|"
    r"toujours|il faut|évite[rz]?|assure[- ]toi|assurez[- ]vous|n['e] ?utilise[rz]? pas|ne \w+ (?:pas|jamais)|"
    r"au lieu de|plutôt que"
)
_STANDING = re.compile(
    r"(?<![\w-])(?:always|never|from now on|do not|don['’]?t|dont|must(?: not|n't)?|only use|no more|every time|"
    r"instead of|rather than|avoid|not allowed|required to|luôn|không bao giờ|đừng|không được|"
    r"sempre|nunca|jamais|toujours|"
    r"n['e] ?utilise[rz]? pas|ne \w+ (?:pas|jamais)|não use)(?![\w-])",
    re.I,
)
_RULE = re.compile(rf"(?<![\w-])(?:{_CUES})(?![\w-])", re.I)
_PURPOSE = re.compile(r"\w\s+(?<!need )(?<!needs )(?<!have )(?<!has )(?<!try )(?<!sure )(?<!remember )to $", re.I)
_USE_NOT = re.compile(r"\buse\s+[\w@./`-]+(?:\s+[\w@./`-]+){0,3},?\s+not\s+\w", re.I)
_STRICT = re.compile(r"\bbe (?:strict|careful|thorough|concise|brief)\b", re.I)
_REMOVE = re.compile(
    r"^(?:please |pls )?(?:remove|drop|delete|stop)\b.{0,60}\b(?:all|any|every|backward|deprecated|"
    r"depreciated)\b",
    re.I,
)
_QUESTION = re.compile(
    r"\?\s*$|^(?:do|does|did|is|are|can|could|should|would|will|why|what|how|when|where|who|right)\b", re.I
)
_TALE = re.compile(
    r"\b(?:i|you|we|he|she|they|it) (?:always|never|don['’]?t|dont|must have|had to)\b(?! (?:use|commit|push|touch))",
    re.I,
)
_DECISION = re.compile(
    r"^(?:ok(?:ay)?,?\s+|yes,?\s+|now\s+|please\s+|pls\s+)*(?:provided .{0,60}?,\s*)?"
    r"(?:delete|remove|drop|revert|rename|migrate|switch|release|publish|deploy|"
    r"go with|we (?:have )?decided|let['’]?s (?:use|go|drop|keep)|use (?!@)\S+ (?:for|to)|avoid)\b",
    re.I,
)
# "Delete them": nobody who was not there knows what.
_POINTING = re.compile(
    r"\b(?:delete|remove|drop|revert|rename|migrate|switch|release|deploy) (?:it|them|this|that|these|those)\b", re.I
)
_PREFERENCE = re.compile(
    r"\b(?:I (?:always |never |only |usually )?(?:use|prefer|like|want|hate|dislike|work (?:in|on|with))|"
    r"my preferred|call me)\b"
    r"(?! (?:you|to (?:see|know|help|fix|add|check|ask|understand))\b)[^.;!?\n]{2,100}",
)
_ANSWER_IN = re.compile(
    r"\b(?:please )?(?:answer|reply|respond|write|speak)(?: to)?(?: me)? in ([A-Z][a-zà-ỹ]+|[a-z]+ese)\b", re.I
)
_TONGUES = {
    "english", "vietnamese", "portuguese", "french", "german", "spanish", "italian", "chinese", "japanese",
    "korean", "dutch", "polish", "russian", "ukrainian", "turkish", "swedish", "danish", "norwegian", "finnish",
    "czech", "greek", "hindi", "arabic",
}  # fmt: skip
_LINK = re.compile(r"https://[\w.-]+/[\w.-]+/[\w.-]+/(pull|issues)/(\d+)(#\S+)?")
_SECRET = re.compile(
    r"\b(?:sk|pk|rk)[-_][\w-]{16,}|\bgh[pousr]_\w{16,}|\bgithub_pat_\w+|\bAKIA[0-9A-Z]{12,}|\bxox[abprs]-[\w-]+|"
    r"://[^\s/:@]+:[^\s/@]+@|"
    r"PRIVATE KEY|\beyJ[\w-]{10,}\.[\w-]{10,}|\b(?:password|passwd|secret|token|"
    r"api[_-]?key)\s*[=:]\s*[\"']?[^\s\"'$<\[{(.]{8,}",
    re.I,
)


def spoken(prompt: str) -> str:
    """The prompt as the person wrote it: injected blocks, fenced code and terminal drawing taken out."""
    text = _BLOCK.sub(" ", prompt)
    text = _CAVEAT.sub(" ", text)
    text = _FENCE.sub(" ", text)
    text = _PASTED.sub(" ", text)
    text = _BOX.sub(" ", _CONTROL.sub("", text))
    lines = [line for line in text.splitlines() if not _LOG_LINE.match(line)]
    return "\n".join(" ".join(line.split()) for line in lines).strip()


def has_secret(text: str) -> bool:
    """Whether a text looks as if it holds a secret: such a line is never stated."""
    return bool(_SECRET.search(text))


def safe(text: str) -> str:
    """Quoted text on one line that can't pass for a citation or for a tag of ours."""
    text = " ".join(_CONTROL.sub(" ", text).split())
    return text.replace("[evt_", "(evt_").replace("<", "‹").replace(">", "›").replace("`", "'")


def short(text: str, limit: int = MAX_QUOTE) -> str:
    """At most `limit` characters, cut between words and with a sign that something was cut."""
    text = safe(text)
    if len(text) <= limit:
        return text
    return text[: limit - 1].rsplit(" ", 1)[0].rstrip(" ,;:") + "…"


def is_small(text: str) -> bool:
    """A prompt that only keeps the agent going, or a command of the harness."""
    word = text.strip().strip("!.…").lower()
    return not word or word.startswith("/") or bool(_SMALL.fullmatch(word)) or len(word) < 4


def ask(text: str) -> str:
    """The sentence that asks, at most 160 characters."""
    text = _LINK.sub(lambda m: f"{'PR' if m[1] == 'pull' else 'issue'} #{m[2]}{' (comment)' if m[3] else ''}", text)
    return short(" ".join(text.split()))


def closing(text: str) -> str:
    """The first sentences of what an agent said last, without headings, lists of code and marks."""
    plain = spoken(text)
    if has_secret(plain):
        return ""
    lines = [line for line in plain.splitlines() if line and not line.startswith(("#", "|", "<"))]
    flat = " · ".join(re.sub(r"\*\*|__|^(?:[-*•]|\d+\.) +", "", line) for line in lines[:3])
    flat = re.sub(r"^(?:\w+! +)+", "", flat)
    return short(flat) if len(flat.split()) > 2 else ""


def sentences(text: str) -> list[str]:
    return [piece.strip(" -*\t") for piece in _SENTENCE.split(text) if piece and piece.strip(" -*\t")]


def rules(text: str) -> list[str]:
    """The clauses in which a person states how something is to be done, in the person's own words."""
    found = []
    for sentence in sentences(text):
        if _QUESTION.search(sentence) or len(sentence.split()) < 2:
            continue
        match = _cue(sentence) or _USE_NOT.search(sentence) or _REMOVE.search(sentence) or _STRICT.search(sentence)
        if not match or _TALE.search(sentence) or _is_cut_off(sentence, match.end()):
            continue
        found.append(_around(sentence, match.start()))
    return found


def _cue(sentence: str) -> re.Match[str] | None:
    """The word by which a sentence is a rule. “Check this plan to avoid overengineering” only says what for."""
    return next((match for match in _RULE.finditer(sentence) if not _PURPOSE.search(sentence[: match.start()])), None)


def _is_cut_off(sentence: str, end: int) -> bool:
    """A cue with hardly a word behind it: the prompt was sent half typed."""
    return len(sentence) > 60 and len(sentence[end:].split()) < 2


def _around(sentence: str, start: int) -> str:
    """The whole sentence where it is short, else from the clause that holds the cue."""
    if len(sentence) <= MAX_QUOTE:
        return safe(sentence)
    before = sentence[:start]
    cut = max(
        before.rfind(mark) + len(mark) for mark in (", ", "; ", " also ", " and ", " then ", " you ", " we ", ". ", "(")
    )
    for subject in ("you ", "we "):
        if sentence[max(0, cut - len(subject)) : cut] == subject:
            cut -= len(subject)
    return short(sentence[cut:] if cut >= 4 else sentence[start:])


def is_standing(rule: str) -> bool:
    """Whether a rule holds by its words for all work to come, not for the task in hand alone."""
    return bool(_STANDING.search(rule) or _USE_NOT.search(rule))


def common(text: str, pattern: str) -> str:
    """The rule without the one word in which those like it differ: a name, not a number, a path or a flag."""
    own, shared = text.split(), pattern.split()
    differ = [a for a, b in zip(own, shared, strict=False) if a != b]
    is_one = len(own) == len(shared) and len(differ) == 1
    return pattern if is_one and re.fullmatch(r"\W*[^\W\d_]+(?:-[^\W\d_]+)*\W*", differ[0]) else text


def decision(text: str) -> str:
    """A prompt that decides something: merge, remove, go with, in the person's own words."""
    flat = " ".join(text.split())
    if _POINTING.search(flat) or len(flat.split()) < 3:
        return ""
    return short(flat) if _DECISION.search(flat) and not _QUESTION.search(flat) else ""


def preferences(text: str) -> list[str]:
    """What the speaker says of himself and nobody else: "I use tabs", "answer in English please"."""
    found = []
    for clause in re.split(r"(?<=[.!?;])\s+|\n+|,\s+(?:but|and|while)\s+|\s+but\s+", text):
        if _QUESTION.search(clause):
            continue
        match = _PREFERENCE.search(clause)
        if match and not re.match(r"I want\b", match[0]):
            found.append(f"“{short(match[0])}”")
        tongue = _ANSWER_IN.search(clause)
        if tongue and tongue[1].lower() in _TONGUES:
            found.append(f"Answers in {tongue[1].capitalize()} (“{short(tongue[0])}”)")
    return found


def alike(text: str, count: int = 24) -> str:
    """A key under which repetitions of one prompt meet: its first words, without case and marks."""
    return " ".join(re.findall(r"\w+", text.lower())[:count])[:200]
