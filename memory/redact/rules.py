"""Our own rules: tokens with a known beginning, credentials in URLs and headers, named values, private keys.

They run over the whole text in Python, so they hold where the wheel is missing, for secrets longer than a chunk, and
for what the scanner leaves out on purpose (low entropy, a lone AWS key id, samples like `ghp_AAAA…`).
"""

import re
import string
from collections.abc import Iterator
from typing import NamedTuple

from memory.redact import names


class Hit(NamedTuple):
    """A secret at start..end of a text, and the rule that found it."""

    start: int
    end: int
    rule: str


class Rule(NamedTuple):
    """A pattern whose first group (or whole match) is the secret; tried only where a keyword occurs."""

    id: str
    keywords: tuple[str, ...]
    pattern: re.Pattern[str]


def _rule(name: str, keywords: str, pattern: str) -> Rule:
    return Rule(name, tuple(keywords.split()), re.compile(pattern))


def table(extra: str) -> bytes:
    """For `bytes.translate`: letters, digits and the extra characters become x, all else a space."""
    kept = (string.ascii_letters + string.digits + extra).encode()
    return bytes(ord("x" if code in kept else " ") for code in range(256))


# Tokens: the keyword begins a run of at least RUN characters of [A-Za-z0-9_.-].
RUN = 16
TOKENS = (
    _rule("team-memory", "tm_", r"tm_[a-z]{2,8}_[0-9A-Za-z]{20,}"),
    _rule("github", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[0-9A-Za-z]{30,255}"),
    _rule("github", "github_pat_", r"github_pat_[0-9A-Za-z_]{22,255}"),
    _rule(
        "gitlab",
        "glpat- gldt- glrt- glcbt- glptt- glft- glagent- gloas- glsoat- glimt- glffct-",
        r"gl(?:pat|dt|rt|cbt|ptt|ft|agent|oas|soat|imt|ffct)-[\w.-]{20,}",
    ),
    _rule("slack", "xoxa- xoxb- xoxc- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe.", r"xox[abceoprs][-.][\w.%-]{10,}"),
    _rule("slack", "xapp-", r"xapp-\d-[\w-]{20,}"),
    _rule(
        "stripe", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_", r"(?:[sr]k_(?:live|test)|pk_live)_[0-9A-Za-z]{16,}"
    ),
    _rule("webhook-secret", "whsec_", r"whsec_[0-9A-Za-z+/=]{20,}"),
    _rule("anthropic", "sk-ant-", r"sk-ant-[\w-]{20,}"),
    _rule(
        "sk-key", "sk-", r"sk-(?:(?:proj|svcacct|test|live|or-v1|lf)-)?(?=[\w.-]*\d)(?=[\w.-]*[A-Z0-9]{3})[\w.-]{18,}\w"
    ),
    _rule("aws", "AKIA ASIA ABIA ACCA A3T", r"(?:AKIA|ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _rule("google", "AIza", r"AIza[\w-]{35}"),
    _rule("google", "GOCSPX-", r"GOCSPX-[\w-]{20,}"),
    _rule("google", "ya29.", r"ya29\.[\w.-]{20,}"),
    _rule("npm", "npm_", r"npm_[0-9A-Za-z]{36}"),
    _rule("pypi", "pypi-Ag", r"pypi-Ag[\w-]{40,}"),
    _rule("huggingface", "hf_ api_org_", r"(?:hf|api_org)_[A-Za-z]{30,}[0-9A-Za-z]*"),
    _rule("huggingface", "hf_", r"hf_[0-9A-Za-z]{30,}"),
    _rule("digitalocean", "dop_v1_ doo_v1_ dor_v1_", r"do[opr]_v1_[0-9a-f]{60,}"),
    _rule("sendgrid", "SG.", r"SG\.[\w-]{16,}\.[\w-]{16,}"),
    _rule("sendinblue", "xkeysib-", r"xkeysib-[\w-]{40,}"),
    _rule("mailgun", "key-", r"key-[0-9a-f]{32}(?![0-9a-f])"),
    _rule("shopify", "shpat_ shpss_ shpca_ shppa_", r"shp(?:at|ss|ca|pa)_[0-9a-fA-F]{32}"),
    _rule("square", "sq0 EAAA", r"(?:sq0(?:atp|csp)-[\w-]{22,}|EAAA[\w-]{60})"),
    _rule("databricks", "dapi", r"dapi[0-9a-f]{32}(?:-\d)?"),
    _rule("vault", "hvs. hvb. hvr.", r"hv[sbr]\.[\w-]{24,}"),
    _rule("age", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    _rule("linear", "lin_", r"lin_(?:api|oauth)_[0-9A-Za-z]{32,}"),
    _rule("notion", "ntn_", r"ntn_[0-9A-Za-z]{40,}"),
    _rule("figma", "figd_ figo_ figu_ figr_", r"fig[dour]_[\w-]{36,}"),
    _rule("grafana", "glsa_ glc_", r"(?:glsa_[0-9A-Za-z]{32}_[0-9a-fA-F]{8}|glc_[0-9A-Za-z+/=]{32,})"),
    _rule("postman", "PMAK-", r"PMAK-[0-9a-fA-F]{24}-[0-9a-fA-F]{34}"),
    _rule("rubygems", "rubygems_", r"rubygems_[0-9a-f]{48}"),
    _rule("netlify", "nfp_", r"nfp_[0-9A-Za-z]{36}"),
    _rule("sentry", "sntrys_ sntryu_ sntrya_", r"sntry[sua]_[\w+/=.-]{40,}"),
    _rule("tailscale", "tskey-", r"tskey-[a-z]+-[0-9A-Za-z-]{16,}"),
    _rule("docker", "dckr_", r"dckr_(?:pat|oat)_[\w-]{27,}"),
    _rule("contentful", "CFPAT-", r"CFPAT-[\w-]{43}"),
    _rule("atlassian", "ATATT3 ATCTT3 ATBB", r"(?:ATATT3|ATCTT3|ATBB)[\w=-]{28,}"),
    _rule("airtable", "pat", r"pat[0-9A-Za-z]{14}\.[0-9a-f]{64}"),
    _rule("replicate", "r8_", r"r8_[\w-]{37,}"),
    _rule(
        "model-provider", "xai- gsk_ pplx- nvapi- fw_ csk-", r"(?:xai-|gsk_|pplx-|nvapi-|fw_|csk-)(?=\w*\d)[\w-]{30,}"
    ),
    _rule("fly", "fo1_ fm1 fm2", r"(?:fo1_[\w-]{43}|fm[12][ar]?_[0-9A-Za-z+/=]{60,})"),
    _rule("posthog", "phx_ phs_", r"ph[xs]_[0-9A-Za-z]{36,}"),
    _rule("langsmith", "lsv2_", r"lsv2_(?:pt|sk)_[0-9a-f]{32}_[0-9a-f]{10}"),
    _rule("pulumi", "pul-", r"pul-[0-9a-f]{40}"),
    _rule("heroku", "HRKU-", r"HRKU-[\w-]{36,}"),
    _rule("twilio", " ".join(f"SK{digit}" for digit in "0123456789abcdef"), r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    _rule("supabase", "sbp_ sb_secret_", r"(?:sbp_[0-9a-f]{40}|sb_secret_[\w-]{20,})"),
    _rule("planetscale", "pscale_", r"pscale_(?:tkn|pw|oauth)_[\w.=-]{30,}"),
    _rule("doppler", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{36,}"),
    _rule("dynatrace", "dt0c01.", r"dt0[a-z]\d\d\.[0-9A-Z]{24}\.[0-9A-Z]{64}"),
    _rule("newrelic", "NRA NRII-", r"(?:NRA[KA]-[0-9A-Z]{27}|NRII-[\w-]{32})"),
    _rule("jwt", "eyJ", r"eyJ[\w-]{10,}\.eyJ[\w-]{10,}(?:\.[\w-]*)?"),
    _rule("easypost", "EZAK EZTK", r"EZ[AT]K[0-9A-Za-z]{54}"),
)
# The keyword (lower case) may stand anywhere; the pattern begins with it.
PLACES = (
    _rule(
        "private-key",
        "-----begin",
        r"-----BEGIN[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----)){0,20000}"
        r"(?:-----END[ A-Z0-9]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
    ),
    _rule("private-key", "private-lines:", r"Private-Lines: \d+\s+([A-Za-z0-9+/=\s]{40,20000})"),
    _rule(
        "authorization",
        "bearer",
        r"(?i:bearer)[ \t]{1,3}[\"']?(?=[\w.~+/-]*\d|(?=\S*[a-z])(?=\S*[A-Z])\S{20}|[a-z]{24})"
        r"([\w.~+/-]{12,4096}={0,3})(?![\w(])",
    ),
    _rule(
        "authorization",
        "basic",
        r"(?i:basic)[ \t]{1,3}[\"']?(?=[A-Za-z0-9+/]*[A-Z])(?=[A-Za-z0-9+/]*(?:\d|=))"
        r"([A-Za-z0-9+/]{8,4096}={0,3})(?![\w(])",
    ),
    _rule(
        "authorization",
        "authorization",
        r"(?i)authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:(?:token|apikey|api-key|key|digest|"
        r"bearer|basic)[ \t]{1,3})?(?=[\w.~+/=:-]*\d)([\w.~+/:-]{12,4096}={0,3})(?![\w(])",
    ),
    _rule("azure", "accountkey= sharedaccesskey= sharedsecret=", r"(?i)\w+=([A-Za-z0-9+/]{20,}={0,2})"),
    _rule("signature", "sig= x-amz-signature=", r"(?i)[\w-]+=([\w%+/-]{32,}={0,2})"),
    _rule(
        "webhook-url",
        "hooks.slack.com/ discord.com/api/webhooks/ discordapp.com/api/webhooks/ office.com/webhookb2/",
        r"(?i)[\w.]+/(?:(?:api/)?webhook(?:s|b2)|services|workflows|triggers)/([\w@/-]{16,})",
    ),
    _rule("command-line", "-u --user", r"(?:-u|--user)[ =]{1,3}[\"']?[\w.@-]{1,60}:([^\s\"'$<{*]{4,200})"),
    _rule(
        "command-line",
        "--pass --token --api --secret --access --auth",
        r"--(?:password|passwd|pass|token|api-key|apikey|secret|"
        r"secret-key|access-token|auth-token)(?:[ =]{1,3}|[\"'],\s*[\"'])[\"']?([^\s\"'$<{*\[(-][^\s\"'$<{]{5,400})",
    ),
    _rule("command-line", "sshpass", r"(?i)sshpass\s+-p\s*[\"']?([^\s\"'$<{]{4,200})"),
    _rule(
        "command-line",
        "mysql mariadb",
        r"(?i)(?:mysql|mariadb)[a-z_-]{0,12}\s(?:[^\n|;&]{0,120}?\s)??-p[\"']?(?!\d+(?::\d+)?(?:\s|$))([^\s\"'$<{]{4,200})",
    ),
    _rule(
        "netrc",
        "machine",
        r"(?i)machine\s+\S{1,200}\s+login\s+\S{1,200}\s+password\s+"
        r"(?=\S{0,200}(?:[^A-Za-z\s]|(?-i:[a-z][A-Z])))([^\s\"'$<{]{4,200})",
    ),
    _rule(
        "cookie",
        "cookie",
        r"(?i)cookie[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:[\w.-]{1,80}=[^;\s\"']{0,400};\s?){0,12}?"
        r"[\w.-]{0,60}(?:sess|sid|token|auth|jwt)[\w.-]{0,60}=(?=[^;\s\"']{0,400}\d)([^;\s\"'$<{\\]{12,4096})",
    ),
    _rule("cookie", "phpsessid= jsessionid= connect.sid= sessionid=", r"[\w.]+=(?=[\w%.-]{0,400}\d)([\w%.-]{16,400})"),
    _rule(
        "password-hash",
        "$apr1$ $1$ $5$ $6$ $2a$ $2b$ $2y$ $argon2",
        r"(?i)\$(?:apr1|[156]|2[aby]|argon2(?:id|i|d))\$(?=[\w./$,=+-]{0,300}[a-z])([\w./$,=+-]{20,300})",
    ),
)
# The keyword stands inside, so many characters after the beginning.
INSIDE = (
    (32, _rule("mailchimp", "-us", r"(?<![0-9a-f])[0-9a-f]{32}-us\d{1,2}")),
    (14, _rule("terraform", ".atlasv1.", r"[0-9A-Za-z]{14}\.atlasv1\.[\w=-]{60,}")),
)
_TELEGRAM = re.compile(r"(?<!\d)\d{8,10}:AA[\w-]{32,34}(?![\w-])")
_DISCORD = re.compile(r"(?<![\w.-])[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,38}(?![\w.-])")
BEGINNINGS: dict[str, list[Rule]] = {}
for _token in TOKENS:
    for _beginning in {keyword[:3] for keyword in _token.keywords}:
        BEGINNINGS.setdefault(_beginning, []).append(_token)
_URL = re.compile(r"([^\s:/@\"'`<>\\]{0,80}):([^\s@\"'`<>/\\]{1,200}(?:/[^\s@\"'`<>/:\\]{1,100}){0,3})@(?=[\w\[])")
_NOT_IN_URL = re.compile(r"[$<{*%]|\d{2,5}/|x{3,}$", re.IGNORECASE)
_TOKEN_CHARS = table("_.-")


def runs(text: str, table: bytes, shortest: int) -> Iterator[tuple[int, int]]:
    """Places of unbroken runs of the table's characters: by C functions, 2 ms per MB where a regex takes 60."""
    marks = text.encode("ascii", "replace").translate(table)
    needle, end = b"x" * shortest, 0
    while (start := marks.find(needle, end)) >= 0:
        end = marks.find(b" ", start)
        end = len(marks) if end < 0 else end
        yield start, end


def hits(text: str) -> list[Hit]:
    """All that our own rules find in a plain text."""
    lowered = text.lower()
    # A few letters change their length in lower case; then every place would be off.
    lowered = lowered if len(lowered) == len(text) else text
    found = [*_tokens(text), *_places(text, lowered)]
    if "://" in text:
        found += _urls(text)
    if ":AA" in text:
        found += (Hit(*match.span(), "telegram") for match in _TELEGRAM.finditer(text))
    if "discord" in lowered:
        found += (Hit(*match.span(), "discord") for match in _DISCORD.finditer(text))
    found += (Hit(start, end, "named-value") for start, end in names.values(text, lowered))
    return found


def _tokens(text: str) -> Iterator[Hit]:
    for start, end in runs(text, _TOKEN_CHARS, RUN):
        while text[start] in "_.-" and start < end - RUN:
            start += 1
        for rule in BEGINNINGS.get(text[start : start + 3], ()):
            if found := rule.pattern.match(text, start):
                yield Hit(*found.span(), rule.id)
    for back, rule in INSIDE:
        for at in places_of(text, rule.keywords[0]):
            if at >= back and (found := rule.pattern.match(text, at - back)):
                yield Hit(*found.span(), rule.id)


def _places(text: str, lowered: str) -> Iterator[Hit]:
    for rule in PLACES:
        for keyword in rule.keywords:
            for at in places_of(lowered, keyword):
                found = rule.pattern.match(text, at)
                if not found or text[at - 1 : at].isalnum():
                    continue
                if rule.id == "private-key" or not names.is_placeholder(found[rule.pattern.groups]):
                    yield Hit(*found.span(rule.pattern.groups), rule.id)


def places_of(text: str, part: str) -> Iterator[int]:
    """Where a part occurs, one place after the other."""
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))


def _urls(text: str) -> Iterator[Hit]:
    """The password of scheme://user:password@host; user and host stay readable."""
    for at in places_of(text, "://"):
        found = _URL.match(text, at + 3)
        if found and not _NOT_IN_URL.match(found[2]):
            yield Hit(*found.span(2), "url-password")
