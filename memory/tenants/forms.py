"""What people type to get in."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib.auth import authenticate, password_validation
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_lazy

from memory.tenants import names, words
from memory.tenants.access import DEFAULT_SCOPES
from memory.tenants.keys import openable_scopes
from memory.tenants.models import RATE_LIMIT, Role, User

LOCKED = gettext_lazy(
    "Too many wrong passwords for this address from where you are. Try again in 15 minutes, or come in by a login"
    " link. Other people, and you elsewhere, are not held up."
)


class KeyForm(forms.Form):
    """A new agent key."""

    name = forms.CharField(
        max_length=120, label=gettext_lazy("Name"), help_text=gettext_lazy("Where it is used, e.g. CI of payments.")
    )
    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("It may"), widget=forms.CheckboxSelectMultiple, initial=DEFAULT_SCOPES
    )
    days = forms.ChoiceField(
        label=gettext_lazy("Ends after"),
        choices=[
            ("365", gettext_lazy("a year")),
            ("90", gettext_lazy("90 days")),
            ("30", gettext_lazy("30 days")),
            ("7", gettext_lazy("a week")),
            ("1", gettext_lazy("a day")),
        ],
    )
    rate_limit = forms.IntegerField(
        label=gettext_lazy("Calls a minute"), min_value=1, max_value=10_000_000, initial=RATE_LIMIT
    )
    projects = forms.MultipleChoiceField(
        label=gettext_lazy("Only in these projects"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy(
            "None ticked: in all that you see. Else it neither sees other projects nor records there."
        ),
    )

    def __init__(self, *args: Any, role: str, projects: Sequence[tuple[str, str]] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["projects"].choices = list(projects)  # type: ignore[attr-defined]
        if not projects:
            del self.fields["projects"]
        # No more than the role of whoever it belongs to.
        choices = [(scope, words.with_code(scope)) for scope in openable_scopes(role)]
        self.fields["scopes"].choices = choices  # type: ignore[attr-defined]


class KeyChangeForm(forms.Form):
    """A key's name and limit."""

    name = forms.CharField(max_length=120)
    rate_limit = forms.IntegerField(min_value=1, max_value=10_000_000)


class OverlapForm(forms.Form):
    """How long the old secret of a key stays good."""

    CHOICES = (
        ("24", gettext_lazy("one day")),
        ("1", gettext_lazy("one hour")),
        ("168", gettext_lazy("a week")),
        ("0", gettext_lazy("not at all: it leaked")),
    )
    overlap = forms.ChoiceField(choices=CHOICES)


class NameForm(forms.Form):
    """What a person is called on pages."""

    name = forms.CharField(
        label=gettext_lazy("Display name"),
        max_length=names.LONGEST,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "name", "dir": "auto"}),
        help_text=gettext_lazy("What pages call you, in all your teams. Empty: your handle in each."),
    )

    def clean_name(self) -> str:
        try:
            return names.cleaned(str(self.cleaned_data["name"]))
        except names.InvalidName as why:
            raise forms.ValidationError(str(why)) from None


class InviteForm(forms.Form):
    """Whom to invite, and as what."""

    email = forms.EmailField(label=gettext_lazy("E-mail address"), max_length=254)
    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=Role.choices, initial=Role.MEMBER)


class LoginForm(forms.Form):
    email = forms.EmailField(
        label=gettext_lazy("E-mail"),
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True}),
    )
    password = forms.CharField(
        label=gettext_lazy("Password"),
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    user: User
    is_locked = False

    def __init__(self, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.request = request

    def clean(self) -> dict[str, Any]:
        fields = super().clean() or {}
        email, password = fields.get("email"), fields.get("password")
        if email and password:
            user = authenticate(self.request, username=email.lower(), password=password)
            if is_locked(self.request):
                self.is_locked = True
                raise forms.ValidationError(LOCKED)
            if not isinstance(user, User):
                # One sentence for both: who has an account here is nobody's business.
                raise forms.ValidationError(gettext("This e-mail address and password do not belong together."))
            self.user = user
        return fields


class ProofForm(forms.Form):
    """The password of who is logged in, once more."""

    password = forms.CharField(
        label=gettext_lazy("Password"),
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True}),
    )
    is_locked = False

    def __init__(self, user: User, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user, self.request = user, request

    def clean_password(self) -> str:
        said = str(self.cleaned_data["password"])
        check_password(self.user, said, self.request)
        return said


class CodeForm(forms.Form):
    """A code of the person's app, or a recovery code; the wrong ones count like wrong passwords."""

    code = forms.CharField(
        label=gettext_lazy("Code"),
        max_length=40,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "autofocus": True, "spellcheck": "false"}),
        help_text=gettext_lazy("Six digits from your authenticator app, or one of your recovery codes."),
    )
    is_locked = False

    def __init__(self, user: User, *args: Any, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user, self.request = user, request

    def clean_code(self) -> str:
        said = str(self.cleaned_data["code"])
        found = authenticate(self.request, username=self.user.email, code=said)
        if is_locked(self.request):
            self.is_locked = True
            raise forms.ValidationError(LOCKED)
        if found is None or found.pk != self.user.pk:
            raise forms.ValidationError(
                gettext("This code is wrong, too old, or was used before. Wait for the next one.")
            )
        return said


class FirstCodeForm(forms.Form):
    """The code that shows that the app has the secret."""

    code = forms.CharField(
        label=gettext_lazy("Code that the app shows now"),
        max_length=20,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "numeric"}),
    )


class SignOnForm(forms.Form):
    """Where a team's single sign-on leads, and who comes in by it."""

    issuer = forms.CharField(
        label=gettext_lazy("Issuer"),
        max_length=500,
        help_text=gettext_lazy("The provider's address, as its own description spells it: https://login.example.org"),
        widget=forms.TextInput(attrs={"inputmode": "url", "spellcheck": "false"}),
    )
    client_id = forms.CharField(
        label=gettext_lazy("Client id"), max_length=300, widget=forms.TextInput(attrs={"spellcheck": "false"})
    )
    secret = forms.CharField(
        label=gettext_lazy("Client secret"),
        max_length=1000,
        required=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=gettext_lazy("Kept encrypted, never shown again."),
    )
    domains = forms.CharField(
        label=gettext_lazy("Domains of e-mail addresses"),
        max_length=1000,
        required=False,
        help_text=gettext_lazy(
            gettext("With commas between them. Nobody else comes in by it. Empty: members and invited people of any.")
        ),
    )
    role = forms.ChoiceField(
        label=gettext_lazy("Who comes for the first time"),
        required=False,
        choices=[
            ("", gettext_lazy("only who is invited")),
            ("viewer", gettext_lazy("joins as a viewer")),
            ("member", gettext_lazy("joins as a member")),
            ("reviewer", gettext_lazy("joins as a reviewer")),
        ],
    )
    is_required = forms.BooleanField(
        label=gettext_lazy("Members come in by it alone"),
        required=False,
        help_text=gettext_lazy(
            "Passwords, passkeys and login links of this team's members open it no more. Owners keep theirs."
        ),
    )

    def __init__(self, *args: Any, has_secret: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if has_secret:
            self.fields["secret"].widget.attrs["placeholder"] = gettext("A secret is set; type another to replace it")


class SamlForm(SignOnForm):
    """The same of a provider that speaks SAML: its description, or the pieces of it."""

    client_id = secret = None  # type: ignore[assignment]
    metadata = forms.CharField(
        label=gettext_lazy("Metadata of the provider (XML)"),
        max_length=300_000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
        help_text=gettext_lazy("It fills the three fields below. Or leave it empty and fill them yourself."),
    )
    issuer = forms.CharField(
        label=gettext_lazy("Entity id of the provider"),
        max_length=490,
        required=False,
        widget=forms.TextInput(attrs={"spellcheck": "false"}),
    )
    sso_url = forms.CharField(
        label=gettext_lazy("Address for single sign-on (HTTP-Redirect)"),
        max_length=2000,
        required=False,
        widget=forms.TextInput(attrs={"inputmode": "url", "spellcheck": "false"}),
    )
    certificates = forms.CharField(
        label=gettext_lazy("Certificates that it signs by"),
        max_length=20_000,
        required=False,
        widget=forms.Textarea(attrs={"rows": 6, "spellcheck": "false"}),
        help_text=gettext_lazy(
            "One, or two one below the other while the provider changes from the first to the second."
        ),
    )
    field_order = ("metadata", "issuer", "sso_url", "certificates", "domains", "role", "is_required")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, has_secret=False, **kwargs)
        self.fields["domains"].required = True
        self.fields["domains"].help_text = gettext("With commas between them. Nobody else comes in by it.")


def check_password(user: User, said: str, request: HttpRequest) -> None:
    """Raises ValidationError unless it is the person's; counted like a login."""
    found = authenticate(request, username=user.email, password=said)
    if is_locked(request):
        raise forms.ValidationError(LOCKED)
    if found is None or found.pk != user.pk:
        raise forms.ValidationError(gettext("This is not your password."))


def is_locked(request: HttpRequest) -> bool:
    """Whether this address tried too often for this person; set by django-axes."""
    return bool(getattr(request, "axes_locked_out", False))


class PasswordForm(forms.Form):
    old = forms.CharField(
        label=gettext_lazy("Password until now"),
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True}),
    )
    password1 = forms.CharField(
        label=gettext_lazy("New password"),
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password", "autofocus": True}),
        help_text=gettext_lazy("At least 10 characters."),
    )
    password2 = forms.CharField(
        label=gettext_lazy("The same again"),
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, user: User, *args: Any, asks_old: bool, request: HttpRequest, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user, self.request = user, request
        if not asks_old:
            del self.fields["old"]

    def clean_old(self) -> str:
        said = str(self.cleaned_data["old"])
        check_password(self.user, said, self.request)
        return said

    def clean(self) -> dict[str, Any]:
        fields = super().clean() or {}
        first, second = fields.get("password1"), fields.get("password2")
        if first and second and first != second:
            self.add_error("password2", gettext("The two passwords differ."))
        elif first:
            try:
                password_validation.validate_password(first, self.user)
            except forms.ValidationError as problem:
                self.add_error("password1", problem)
        return fields

    def save(self) -> User:
        self.user.set_password(self.cleaned_data["password1"])
        self.user.save(update_fields=["password"])
        return self.user
