"""django-allauth's account app as its second factors need it: tables and helpers, no addresses and no middleware.

Its own configuration insists on a middleware that turns exceptions into redirects to its pages. We have none of those
pages: what needs its request context opens one around the call (memory/tenants/factors.py).
"""

from django.apps import AppConfig


class BareAccount(AppConfig):
    name = "allauth.account"
    label = "account"
    default_auto_field = "django.db.models.AutoField"
