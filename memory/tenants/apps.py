from django.apps import AppConfig


class TenantsConfig(AppConfig):
    name = "memory.tenants"

    def ready(self) -> None:
        from memory.tenants import proof  # noqa: F401 - listens to Django's login
