from django.apps import AppConfig


class OpsConfig(AppConfig):
    name = "memory.ops"
    label = "ops"
