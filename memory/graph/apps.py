"""The id graph as an app: its kinds stand in the walk, and its hot doors in the OpenAPI file, from the start."""

from django.apps import AppConfig


class GraphConfig(AppConfig):
    name = "memory.graph"
    label = "graph"

    def ready(self) -> None:
        """Models are loaded now, and not before."""
        from memory.graph import described, nodes

        described.register()
        nodes.register()
