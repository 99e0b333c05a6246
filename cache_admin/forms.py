"""What people type about a tool's policy, and the call they try it with."""

from collections.abc import Mapping
from typing import Any, Final

from django import forms
from django.http import QueryDict
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy, override

from cache_admin import pairs, policies, trial
from cache_admin.keys import Call, read_call
from cache_admin.policy import DANGEROUS_TTL, InvalidPolicy, Policy, check
from memory.events.places import normal_root
from memory.problems import Problem
from memory.tenants.models import Tenant

_RULES: Final = {
    "paths": (
        gettext_lazy("Paths"),
        "path, file_path",
        gettext_lazy("./src/u.py, src/u.py and the absolute path below the root are one."),
    ),
    "urls": (gettext_lazy("Addresses"), "url", gettext_lazy("Tracking parameters go, nothing else.")),
    "numbers": (gettext_lazy("Numbers"), "offset, limit", gettext_lazy('"10" and 10 are one.')),
    "queries": (gettext_lazy("Search words"), "query", gettext_lazy("Case and spacing do not count.")),
    "commands": (gettext_lazy("Shell commands"), "command", gettext_lazy("Space around the command does not count.")),
    "http_hosts": (
        gettext_lazy("Hosts where http and https are one"),
        "docs.example.com",
        gettext_lazy("Only those listed here."),
    ),
}
_MONO: Final = {"class": "mono", "autocomplete": "off", "autocapitalize": "off", "spellcheck": "false"}
# Where the reader looks when a combination is refused: words of the refusal, and the field they belong to.
_PLACES: Final = (
    ("side effects", "mode"),
    ("Without a lifetime", "ttl_s"),
    ("ttl_s is", "ttl_s"),
    ("Say what the worst", "worst_outcome"),
    ("Where an old answer", "worst_outcome"),
    ("threshold", "threshold"),
    ("lease_s", "lease_s"),
    ("Label at least", "semantic"),
    ("wrong answers", "semantic"),
)


def typed(post: QueryDict) -> dict[str, str]:
    """What was typed, by field; the database keeps no NUL."""
    return {name: str(value).replace("\0", "") for name, value in post.dict().items()}


class ObjectField(forms.JSONField):
    """A JSON object that may be left out: then the field is empty, and not "null"."""

    def prepare_value(self, value: Any) -> Any:
        return "" if value in (None, {}) else super().prepare_value(value)


class ToolForm(forms.Form):
    """The name of a tool that has no policy yet."""

    tool = forms.RegexField(
        r"^\S{1,200}$",
        label=gettext_lazy("Tool"),
        help_text=gettext_lazy("As agents call it, e.g. mcp__github__get_issue."),
        error_messages={"invalid": gettext_lazy("A name of up to 200 characters without spaces.")},
        widget=forms.TextInput(attrs=_MONO),
    )


class PolicyForm(forms.Form):
    """One tool's policy."""

    mode = forms.ChoiceField(
        widget=forms.RadioSelect,
        choices=[
            ("off", gettext_lazy("Off: every call runs the tool")),
            ("observe", gettext_lazy("Observe: every call runs the tool; what a cache would have done is counted")),
            ("serve", gettext_lazy("Serve: a stored answer is given instead of a run")),
        ],
    )
    worst_outcome = forms.ChoiceField(
        required=False,
        label=gettext_lazy("What is the worst outcome of a ten-minute-old answer?"),
        widget=forms.RadioSelect,
        choices=[
            ("", gettext_lazy("Not asked yet")),
            ("nothing", gettext_lazy("Nothing")),
            ("time", gettext_lazy("Some time is lost")),
            ("money", gettext_lazy("Money is lost, or an offer is wrong")),
            ("customer", gettext_lazy("A customer's data is wrong or shown to another")),
            ("safety", gettext_lazy("Somebody's safety")),
        ],
        help_text=format_lazy(
            gettext_lazy(
                "Needed wherever answers are kept by time. Money, customer data and safety: never, or at most {seconds}"
                " seconds with active invalidation."
            ),
            seconds=DANGEROUS_TTL,
        ),
    )
    by_content = forms.BooleanField(
        required=False, label=gettext_lazy("Calls carry a content hash; without one they go past the cache")
    )
    ttl_s = forms.IntegerField(
        required=False,
        label=gettext_lazy("Lifetime in seconds"),
        help_text=gettext_lazy(
            "From when the answer was made; a hit never makes it longer. Empty: until the content hash changes."
        ),
    )
    invalidates = forms.BooleanField(
        required=False,
        label=gettext_lazy("Whoever changes the data drops the stored answer at once (active invalidation)"),
    )
    has_effects = forms.BooleanField(
        required=False, label=gettext_lazy("The tool changes something: sends, buys, writes")
    )
    read_only = forms.BooleanField(required=False, label=gettext_lazy("The tool only reads"))
    scope = forms.ChoiceField(
        label=gettext_lazy("Answers are shared within"),
        choices=[
            ("member", gettext_lazy("the member who asked")),
            ("thread", gettext_lazy("one thread: the workers of one workflow")),
            ("project", gettext_lazy("the project")),
            ("team", gettext_lazy("the team")),
        ],
        help_text=gettext_lazy("What depends on who asks stays with the member."),
    )
    summariser = forms.ChoiceField(
        choices=[
            ("auto", gettext_lazy("By what the text is")),
            ("whole", gettext_lazy("None: always the whole")),
            ("code", gettext_lazy("Code: outline with line numbers")),
            ("logs", gettext_lazy("Logs: templates with counts, every rare line, the end")),
            ("tests", gettext_lazy("Test runs: failures with their messages")),
            ("json", gettext_lazy("JSON: shape, count, first and last")),
            ("list", gettext_lazy("Matches and listings: every item, clipped")),
            ("diff", gettext_lazy("Diffs")),
            ("markdown", gettext_lazy("Markdown: headings")),
            ("plain", gettext_lazy("Plain text: by pages")),
        ],
        label=gettext_lazy("Long answers are shortened as"),
    )
    shadow_percent = forms.IntegerField(
        min_value=0,
        max_value=100,
        label=gettext_lazy("Hits that are run again to check (%)"),
        help_text=gettext_lazy("0 to 100."),
    )
    lease_s = forms.IntegerField(
        min_value=1,
        max_value=600,
        label=gettext_lazy("Seconds until another may run the call"),
        help_text=gettext_lazy("As long as the tool usually takes, with room."),
    )
    empty_ttl_s = forms.IntegerField(
        min_value=0,
        label=gettext_lazy("Seconds to keep an empty answer"),
        help_text=gettext_lazy("0: empty answers are not kept."),
    )
    semantic = forms.BooleanField(required=False, label=gettext_lazy("Serve the answer to a question in other words"))
    threshold = forms.FloatField(
        min_value=0.01,
        max_value=1,
        label=gettext_lazy("How alike questions must be"),
        help_text=gettext_lazy("0.92 is usual. Under 0.85 and over 0.97 think twice."),
        widget=forms.NumberInput(attrs={"step": "0.01"}),
    )
    defaults = ObjectField(
        required=False,
        label=gettext_lazy("Defaults"),
        help_text=gettext_lazy('Arguments that say the same when left out, e.g. {"depth": 1}.'),
        widget=forms.Textarea(attrs={**_MONO, "rows": 2}),
    )
    schema = ObjectField(
        required=False,
        label=gettext_lazy("The tool's input schema"),
        help_text=gettext_lazy(
            "Its JSON Schema says which arguments are numbers and addresses, and what their defaults are."
        ),
        widget=forms.Textarea(attrs={**_MONO, "rows": 3}),
    )

    def __init__(self, said: Mapping[str, Any] | None, tenant: Tenant, tool: str) -> None:
        self.tenant, self.tool = tenant, tool
        self.policy: Policy | None = None
        row = tenant.tool_policies.filter(tool=tool).first()
        now = policies.as_row(row) if row else trial.editable(policies.of_tool(tenant, tool))
        rules = now["rules"]
        initial = {**now, "defaults": rules.get("defaults") or None, "schema": now["schema"] or None}
        initial |= {f"rule_{kind}": ", ".join(rules.get(kind, [])) for kind in _RULES}
        super().__init__(said, initial=initial)
        for kind, (label, example, words) in _RULES.items():
            self.fields[f"rule_{kind}"] = forms.CharField(
                required=False,
                max_length=2_000,
                label=label,
                help_text=words,
                widget=forms.TextInput(attrs={**_MONO, "placeholder": example}),
            )

    def rule_fields(self) -> list[forms.BoundField]:
        """The fields that name arguments."""
        return [self[f"rule_{kind}"] for kind in _RULES]

    def clean_defaults(self) -> Any:
        return self._object("defaults")

    def clean_schema(self) -> Any:
        return self._object("schema")

    def _object(self, name: str) -> dict[str, Any]:
        value = self.cleaned_data.get(name)
        if value in (None, ""):
            return {}
        if not isinstance(value, dict):
            raise forms.ValidationError(gettext("A JSON object: {…}."))
        return value

    def clean(self) -> dict[str, Any]:
        said = super().clean() or {}
        if self.errors:
            return said
        try:
            self.policy = policy = trial.with_values(self.tenant, self.tool, self.given())
            check(policy)
        except InvalidPolicy as refused:
            self.refuse(str(refused), at=_refused_in_english(self.policy) or str(refused))
            return said
        why = pairs.refusal(pairs.judged(self.tenant, self.tool), policy.threshold) if policy.semantic else ""
        if why:
            self.refuse(why, at="Label at least")
        return said

    def refuse(self, words: str, *, at: str = "") -> None:
        """Say why a combination is refused at the field that decides it. `at`: the refusal in English."""
        field = next((name for start, name in _PLACES if start in (at or words)), None)
        self.add_error(field, words)

    def given(self) -> dict[str, Any]:
        """The fields of the policy as they were typed."""
        said = self.cleaned_data
        plain = {name: said[name] for name in policies.FIELDS if name in self.fields and name != "schema"}
        rules = {kind: _names(said[f"rule_{kind}"]) for kind in _RULES}
        kept: dict[str, Any] = {kind: names for kind, names in rules.items() if names}
        if said["defaults"]:
            kept["defaults"] = said["defaults"]
        return {**plain, "rules": kept, "schema": said["schema"]}

    def typed(self) -> Policy | None:
        """The policy as it stands in the form, refused or not; None where a field can't be read."""
        self.is_valid()
        return self.policy

    def warning(self) -> str:
        """What to think twice about."""
        value = self["threshold"].value()
        try:
            return pairs.warning(float(value))
        except (TypeError, ValueError):
            return ""


def _refused_in_english(policy: Policy | None) -> str:
    """Why a policy is refused, in the words that _PLACES knows; empty where its values can't even be read."""
    try:
        with override("en"):
            check(policy) if policy is not None else None
    except InvalidPolicy as refused:
        return str(refused)
    return ""


def _names(said: str) -> list[str]:
    return list(dict.fromkeys(name for name in said.replace(",", " ").split() if name))


class CallForm(forms.Form):
    """A call to try a policy with."""

    arguments = forms.CharField(
        label=gettext_lazy("Arguments"),
        initial='{"path": "./src/app.py"}',
        max_length=100_000,
        widget=forms.Textarea(attrs={**_MONO, "rows": 3}),
    )
    content_hash = forms.CharField(
        required=False, max_length=200, label=gettext_lazy("Content hash"), widget=forms.TextInput(attrs=_MONO)
    )
    project = forms.CharField(
        required=False,
        max_length=1_000,
        label=gettext_lazy("Project"),
        help_text=gettext_lazy("Id, slug or git remote."),
        widget=forms.TextInput(attrs=_MONO),
    )
    root = forms.CharField(
        required=False, max_length=4_000, label=gettext_lazy("Workspace root"), widget=forms.TextInput(attrs=_MONO)
    )
    thread = forms.CharField(
        required=False, max_length=200, label=gettext_lazy("Thread"), widget=forms.TextInput(attrs=_MONO)
    )
    server = forms.CharField(
        required=False, max_length=200, label=gettext_lazy("MCP server"), widget=forms.TextInput(attrs=_MONO)
    )
    version = forms.CharField(
        required=False, max_length=200, label=gettext_lazy("Version of the tool"), widget=forms.TextInput(attrs=_MONO)
    )
    environment = forms.CharField(
        required=False,
        max_length=100_000,
        label=gettext_lazy("Environment"),
        help_text=gettext_lazy("What else the answer hangs on, as JSON."),
        widget=forms.Textarea(attrs={**_MONO, "rows": 2}),
    )

    def clean_arguments(self) -> dict[str, Any]:
        return _call_object(self.cleaned_data["arguments"])

    def clean_environment(self) -> dict[str, Any]:
        return _call_object(self.cleaned_data["environment"] or "{}")

    def call(self, tool: str) -> Call:
        """The call as an agent would send it."""
        said = self.cleaned_data
        return Call(
            tool=tool,
            arguments=said["arguments"],
            server=said["server"],
            version=said["version"],
            root=normal_root(said["root"]),
            environment=said["environment"],
            content_hash=said["content_hash"],
        )


def _call_object(text: str) -> dict[str, Any]:
    """JSON as the lookup's door reads it: every digit counts, no name comes twice."""
    try:
        value = read_call(f'{{"arguments": {text}}}'.encode("utf-8", "replace"))["arguments"]
    except Problem as refused:
        raise forms.ValidationError(refused.detail) from None
    if not isinstance(value, dict):
        raise forms.ValidationError(gettext("A JSON object: {…}."))
    return value
