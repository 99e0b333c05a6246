"""Notes as an app: their ids stand in the walk from the start."""

from django.apps import AppConfig


class NotesConfig(AppConfig):
    name = "memory.notes"
    label = "notes"

    def ready(self) -> None:
        """Models are loaded now, and not before."""
        from memory.notes import nodes

        nodes.register()
