"""What people type about all caches together: how much is kept, the currency, and a price for each model."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django import forms
from django.utils.translation import gettext, gettext_lazy

from cache_admin import money, policies, usage
from cache_admin.models import CacheSetting
from memory.tenants.models import Tenant

_MONO: Final = {"class": "mono", "autocomplete": "off", "autocapitalize": "off", "spellcheck": "false"}
MB: Final = 1024 * 1024
_NUMBER: Final = {"inputmode": "decimal", "step": "any", "min": "0"}


class MoneyForm(forms.Form):
    """How long and how much is kept, the currency of all prices, and the day that the time before is compared with."""

    currency = forms.RegexField(
        r"^[A-Za-z]{3}$",
        label=gettext_lazy("Currency"),
        help_text=gettext_lazy("Three letters: USD, EUR, VND …"),
        error_messages={"invalid": gettext_lazy("Three letters, such as USD.")},
        widget=forms.TextInput(attrs={**_MONO, "maxlength": 3}),
    )
    started_on = forms.DateField(
        required=False,
        label=gettext_lazy("Caches in use since"),
        help_text=gettext_lazy(
            "Input tokens since this day are compared with the 30 days before it. Empty: the last 30 days with"
            " the 30 before."
        ),
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )

    analysis_days = forms.IntegerField(
        min_value=7,
        max_value=30,
        label=gettext_lazy("Days that analyses are kept"),
        help_text=gettext_lazy("After their last use, 7 to 30: their content is their key, so use makes them last."),
    )
    quota_mb = forms.IntegerField(
        min_value=16,
        max_value=1_000_000,
        label=gettext_lazy("Room for stored texts, in MB"),
        help_text=gettext_lazy("Beyond it what was not used longest goes first."),
    )

    @property
    def quota_bytes(self) -> int:
        """The room as it is kept."""
        return int(self.cleaned_data["quota_mb"]) * MB

    def clean_currency(self) -> str:
        return str(self.cleaned_data["currency"]).upper()


class PriceForm(forms.Form):
    """What a million tokens of one model cost."""

    model = forms.CharField(
        required=False, max_length=120, label=gettext_lazy("Model"), widget=forms.TextInput(attrs=_MONO), strip=True
    )
    input = forms.FloatField(required=False, min_value=0, max_value=1e6, label=gettext_lazy("Input"))
    cache_read = forms.FloatField(required=False, min_value=0, max_value=1e6, label=gettext_lazy("Read from cache"))
    cache_write = forms.FloatField(required=False, min_value=0, max_value=1e6, label=gettext_lazy("Written to cache"))
    output = forms.FloatField(required=False, min_value=0, max_value=1e6, label=gettext_lazy("Output"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for kind in money.KINDS:
            self.fields[kind].widget = forms.NumberInput(attrs={**_NUMBER, "aria-label": self._named(kind)})
        self.fields["model"].widget.attrs["aria-label"] = gettext("Model")

    def _named(self, kind: str) -> str:
        return f"{self.fields[kind].label}, {self.initial.get('model') or gettext('new model')}"

    def clean(self) -> dict[str, Any]:
        said = super().clean() or {}
        if not said.get("model") and any(said.get(kind) is not None for kind in money.KINDS):
            self.add_error("model", gettext("Name the model of this price."))
        return said

    @property
    def price(self) -> dict[str, float]:
        """The kinds that were given a price."""
        return {kind: self.cleaned_data[kind] for kind in money.KINDS if self.cleaned_data.get(kind) is not None}


class PriceList(forms.BaseFormSet):  # type: ignore[type-arg] # Django can not be subscripted here
    """All models of a team: those that usage is known of, those with a price, and a row for one more."""

    def clean(self) -> None:
        names = [form.cleaned_data.get("model") for form in self.forms if form.is_valid()]
        twice = {name for name in names if name and names.count(name) > 1}
        if twice:
            raise forms.ValidationError(gettext("%(twice)s has two prices. Keep one.") % {"twice": sorted(twice)[0]})

    def prices(self) -> dict[str, dict[str, float]]:
        """By model; a row without any price is none."""
        rows = ((form.cleaned_data.get("model"), form.price) for form in self.forms)
        return {model: price for model, price in rows if model and price}


_List: Final = forms.formset_factory(
    PriceForm, formset=PriceList, extra=1, max_num=money.MOST_MODELS, validate_max=True
)


def price_list(said: Mapping[str, Any] | None, tenant: Tenant) -> PriceList:
    """The formset, bound to what was typed or filled with what is known."""
    if said is not None:
        return _List(dict(said), prefix="price")  # type: ignore[return-value]
    prices = policies.settings_of(tenant).prices
    rows = [
        {"model": model, **{kind: f"{price:.10g}" for kind, price in prices.get(model, {}).items()}}
        for model in _models(tenant, prices)
    ]
    return _List(initial=rows, prefix="price")  # type: ignore[return-value]


def money_form(said: Mapping[str, Any] | None, kept: CacheSetting) -> MoneyForm:
    """The form beside it."""
    initial = {"currency": kept.currency, "started_on": kept.started_on, "analysis_days": kept.analysis_days}
    return MoneyForm(said, initial={**initial, "quota_mb": max(1, kept.quota_bytes // MB)})


def _models(tenant: Tenant, prices: Mapping[str, Any]) -> Sequence[str]:
    return sorted({*usage.models(tenant), *prices})[: money.MOST_MODELS - 1]
