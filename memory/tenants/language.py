"""In which language a page speaks: the person's own choice, else this browser's, else what the browser asks for."""

from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.utils import translation
from django.utils.cache import patch_vary_headers

from memory.tenants.door import PROGRAMS
from memory.tenants.middleware import Next, Response
from memory.tenants.models import User

ONE_YEAR = 365 * 24 * 3600


class PageLanguage:
    """Speaks the reader's language while a page is made, and English again after it.

    Django's LocaleMiddleware leaves the thread in the language of its last page, and the next program on that thread
    would read errors in it. What programs are told is part of their contract: it stays English.
    """

    def __init__(self, get_response: Next) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> Response:
        if request.path_info.startswith(PROGRAMS):
            return self.get_response(request)
        language = language_of(request)
        with translation.override(language):
            response = self.get_response(request)
        patch_vary_headers(response, ["Accept-Language", "Cookie"])
        response.headers.setdefault("Content-Language", language)
        return response


def language_of(request: HttpRequest) -> str:
    """The code of the language that the asker of a page reads; always one of settings.LANGUAGES."""
    user: Any = request.user
    # Who has no session is not looked for.
    own = user.language if settings.SESSION_COOKIE_NAME in request.COOKIES and user.is_authenticated else ""
    return own if is_known(own) else translation.get_language_from_request(request)


def is_known(code: str) -> bool:
    return code in dict(settings.LANGUAGES)


def choose(user: User, code: str) -> None:
    """Keep a person's choice; empty is what their browser asks for."""
    user.language = code
    user.save(update_fields=["language"])


def remember(response: Response, code: str) -> None:
    """Put the choice into this browser, so that it holds before the next login too."""
    name = settings.LANGUAGE_COOKIE_NAME
    if not code:
        response.delete_cookie(name, samesite="Lax")
        return
    response.set_cookie(
        name, code, max_age=ONE_YEAR, secure=settings.SESSION_COOKIE_SECURE, httponly=True, samesite="Lax"
    )
