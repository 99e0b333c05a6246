"""What people type to get in."""

from typing import Any

from django import forms
from django.contrib.auth import authenticate, password_validation

from memory.tenants.models import User


class LoginForm(forms.Form):
    email = forms.EmailField(
        label="E-mail", max_length=254, widget=forms.EmailInput(attrs={"autocomplete": "username", "autofocus": True})
    )
    password = forms.CharField(
        label="Password", max_length=200, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )
    user: User

    def clean(self) -> dict[str, Any]:
        fields = super().clean() or {}
        email, password = fields.get("email"), fields.get("password")
        if email and password:
            user = authenticate(username=email.lower(), password=password)
            if not isinstance(user, User):
                # One sentence for both: who has an account here is nobody's business.
                raise forms.ValidationError("This e-mail address and password do not belong together.")
            self.user = user
        return fields


class PasswordForm(forms.Form):
    password1 = forms.CharField(
        label="New password",
        max_length=200,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password", "autofocus": True}),
        help_text="At least 10 characters.",
    )
    password2 = forms.CharField(
        label="The same again", max_length=200, widget=forms.PasswordInput(attrs={"autocomplete": "new-password"})
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.user = user

    def clean(self) -> dict[str, Any]:
        fields = super().clean() or {}
        first, second = fields.get("password1"), fields.get("password2")
        if first and second and first != second:
            self.add_error("password2", "The two passwords differ.")
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
