"""The ASGI entry: Django, with the static files of its admin served beside it."""

from __future__ import annotations

import os

import django
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.handlers.asgi import ASGIHandler

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
django.setup(set_prefix=False)


class Handler(ASGIHandler):
    """Django's handler, which would cut events over 64 KiB in two: one event is one write (responses-api.md §2.1)."""

    chunk_size = 2**30


application = ASGIStaticFilesHandler(Handler())
