"""What people type about threads, links and webhook endpoints."""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django import forms
from django.utils.translation import gettext, gettext_lazy

from memory.graph import fields, links, lookup
from memory.graph.links import Target
from memory.graph.models import Thread
from memory.graph.references import references
from memory.graph.refusals import Invalid
from memory.graph.threads import Wanted
from memory.graph.webhooks.generic import FIELDS
from memory.graph.webhooks.models import Endpoint
from memory.graph.webhooks.proofs import STANDARD, Proof
from memory.problems import Problem
from memory.tenants.models import Tenant

MAX_SUMMARY: Final = 4_000
# An address of a thread's page, pasted.
_THREAD_PAGE: Final = re.compile(r"/threads/(thr_[a-z0-9_.-]+)")
OVERLAPS: Final = (
    ("24", gettext_lazy("one day")),
    ("1", gettext_lazy("one hour")),
    ("168", gettext_lazy("a week")),
    ("0", gettext_lazy("not at all: the old one leaked")),
)
_MAP_HELP: Final = {
    "external_id": (gettext_lazy("Id"), "/id", gettext_lazy("What makes a delivery the same when it is sent again.")),
    "thread": (
        gettext_lazy("Thread"),
        "/issue/key",
        gettext_lazy("Deliveries with the same value here go into one thread."),
    ),
    "title": (gettext_lazy("Title"), "/issue/title", gettext_lazy("The thread's title.")),
    "summary": (gettext_lazy("Summary"), "/message", gettext_lazy("One line for each delivery.")),
    "occurred_at": (gettext_lazy("Time"), "/created_at", gettext_lazy("When it happened.")),
}


class ThreadForm(forms.Form):
    """A thread's title, state and summary."""

    title = forms.CharField(
        label=gettext_lazy("Title"),
        required=False,
        max_length=fields.MAX_TITLE,
        widget=forms.TextInput(attrs={"dir": "auto", "autofocus": True}),
    )
    state = forms.CharField(
        label=gettext_lazy("State"),
        max_length=20,
        widget=forms.TextInput(attrs={"list": "states", "autocapitalize": "off"}),
        help_text=gettext_lazy(
            "One lower-case word, e.g. open, closed, merged. Only open threads stand in the index agents read."
        ),
    )
    summary = forms.CharField(
        label=gettext_lazy("Summary"),
        required=False,
        max_length=MAX_SUMMARY,
        widget=forms.Textarea(attrs={"rows": 5, "dir": "auto"}),
        help_text=gettext_lazy("What a reader must know before opening the thread. Agents see it in the index."),
    )

    def clean_state(self) -> str:
        said = str(self.cleaned_data["state"]).strip()
        if not fields.STATE.fullmatch(said):
            raise forms.ValidationError(gettext("One lower-case word of up to 20 letters, e.g. open, closed, merged."))
        return said

    def wanted(self) -> Wanted:
        """What the form says."""
        said = self.cleaned_data
        return Wanted(" ".join(said["title"].split()), said["state"], said["summary"].strip())


def target(tenant: Tenant, said: str) -> Target:
    """Where a link leads: a thread by its id or page, or a key, or the address of a pull request or ticket.

    Raises Invalid.
    """
    text = " ".join(said.replace("\0", "").split())[:600]
    page = _THREAD_PAGE.search(text)
    public_id = page[1] if page else text
    if public_id.startswith("thr_"):
        return Target(_live(tenant, public_id))
    if text.startswith(("http://", "https://")):
        known = [one.key for one in references(text) if ":" in one.key]
        if not known:
            raise Invalid(
                "invalid_field", gettext("No pull request, issue or ticket is known by this address. Give its key.")
            )
        text = known[0]
    if not text or len(text) > fields.MAX_KEY:
        raise Invalid("invalid_field", gettext("Give a thread's id, or a key like github:acme/payments#412."))
    return links.target(tenant, text)


def _live(tenant: Tenant, public_id: str) -> Thread:
    try:
        return lookup.thread(tenant, public_id)
    except Problem:
        raise Invalid(
            "invalid_field", gettext("There is no thread %(public_id)s.") % {"public_id": public_id[:110]}
        ) from None


class EndpointForm(forms.Form):
    """A new webhook endpoint, or one that is changed."""

    kind = forms.ChoiceField(choices=Endpoint.Kind.choices, label=gettext_lazy("Who sends"))
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=120,
        widget=forms.TextInput(
            attrs={"dir": "auto", "autocomplete": "off", "placeholder": gettext_lazy("Payments on GitHub")}
        ),
    )
    secret = forms.CharField(
        label=gettext_lazy("Secret"),
        required=False,
        max_length=500,
        widget=forms.TextInput(attrs={"autocomplete": "off", "class": "mono"}),
        help_text=gettext_lazy("For Slack: the app's signing secret. Elsewhere leave it empty to have one made."),
    )
    method = forms.ChoiceField(
        required=False,
        label=gettext_lazy("How it proves itself"),
        choices=[
            ("", gettext_lazy("The usual way of its kind")),
            ("standard", gettext_lazy("Standard Webhooks: a signature over id, time and body")),
            ("hmac", gettext_lazy("A hash of the body (HMAC-SHA256) in a header")),
        ],
        help_text=gettext_lazy(
            "GitHub and Slack have their own way. Any other sends the secret as a bearer, unless you choose."
        ),
    )
    header = forms.CharField(
        required=False,
        max_length=61,
        label=gettext_lazy("Header of the hash"),
        widget=forms.TextInput(attrs={"class": "mono", "placeholder": "X-Signature-256", "autocomplete": "off"}),
    )
    before = forms.CharField(
        required=False,
        max_length=20,
        label=gettext_lazy("What stands before the hash"),
        widget=forms.TextInput(attrs={"class": "mono", "placeholder": "sha256=", "autocomplete": "off"}),
    )

    def proof(self) -> Proof | None:
        """What a sender must show; None for the usual. Raises ValueError."""
        said = self.cleaned_data
        if said["method"] == "hmac":
            return Proof("hmac", header=said["header"].strip(), prefix=said["before"].strip())
        return STANDARD if said["method"] == "standard" else None


class MapForm(forms.Form):
    """The name of an endpoint and, of a generic one, where in its bodies the fields stand."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=120, widget=forms.TextInput(attrs={"dir": "auto", "autocomplete": "off"})
    )

    def __init__(self, said: Mapping[str, Any] | None, endpoint: Endpoint) -> None:
        initial = {"name": endpoint.name} | {f"map_{name}": path for name, path in endpoint.field_map.items()}
        super().__init__(said, initial=initial)
        self.is_mapped = endpoint.kind == Endpoint.Kind.GENERIC
        for name in FIELDS if self.is_mapped else ():
            label, example, words = _MAP_HELP[name]
            self.fields[f"map_{name}"] = forms.CharField(
                label=label,
                required=False,
                max_length=300,
                help_text=words,
                widget=forms.TextInput(attrs={"class": "mono", "placeholder": example, "autocomplete": "off"}),
            )

    def field_map(self) -> dict[str, str] | None:
        """The map as it was typed; None for a kind that has none."""
        if not self.is_mapped:
            return None
        said = {name: str(self.cleaned_data.get(f"map_{name}", "")).strip() for name in FIELDS}
        return {name: path for name, path in said.items() if path}


def overlap(said: str) -> timedelta:
    """How long the old secret stays good."""
    return timedelta(hours=int(said) if said in dict(OVERLAPS) else 24)
