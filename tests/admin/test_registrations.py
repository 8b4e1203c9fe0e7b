"""Registration of the admin pages by Django's autodiscovery."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import django
django.setup()
from django.contrib import admin
print(*sorted(model.__name__ for model in admin.site._registry if model._meta.app_label == "responses_app"))
"""


def test_autodiscovery_registers_every_page() -> None:
    # In a process of its own: other tests import the registrations themselves.
    run = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    names = "ApiKey AuditEntry Conversation ConversationItem Item Membership Project Response WebhookDelivery WebhookEndpoint"
    assert run.stdout.split() == names.split()
