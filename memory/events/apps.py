"""Sessions and hook events as an app: their ids stand in the walk from the start."""

from django.apps import AppConfig


class EventsConfig(AppConfig):
    name = "memory.events"
    label = "events"

    def ready(self) -> None:
        """Models are loaded now, and not before."""
        from memory.events import nodes

        nodes.register()
