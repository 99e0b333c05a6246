"""The same application under ASGI, for a server that has only that."""

import os

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory.settings")
application = get_asgi_application()
