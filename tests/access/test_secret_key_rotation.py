"""Rotation of SECRET_KEY: what an older key has sealed, signed or hashed is taken while it is in SECRET_KEY_FALLBACKS."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from contextlib import AbstractContextManager
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from asgiref.sync import sync_to_async
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db.models.functions import Now
from django.test import Client, override_settings

from responses_app.access import api_keys
from responses_app.models import ApiKey, Worker
from responses_app.runs.prepare import encrypted_content
from responses_app.server.bootstrap.first_api_key import KEYS_REFUSED, first_key, other_secret_key, unshared_secret_key
from responses_app.server.doctor import host
from responses_app.store.cluster import leases
from responses_app.web.accounts import sign_in
from tests.support.api.case import ApiCase

OLD, NEW, NEWEST = "o" * 50, "n" * 50, "m" * 50
ITEM = {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]}


def secret_key(key: str, *older: str) -> AbstractContextManager[Any]:
    return override_settings(SECRET_KEY=key, SECRET_KEY_FALLBACKS=list(older))


def first_version(secret: str, project: str, kind: str, texts: list[str]) -> str:
    """A token as servers without key ids have made it."""
    cipher = AESSIV(HKDF(SHA256(), length=64, salt=None, info=b"verbatim reasoning").derive(secret.encode()))
    return "v1." + urlsafe_b64encode(cipher.encrypt(orjson.dumps(texts), [b"v1.", project.encode(), kind.encode()])).decode()


def test_a_token_names_its_key_and_tells_nothing_of_it() -> None:
    with secret_key(OLD):
        one, other = encrypted_content.encrypt("p", ITEM), encrypted_content.seal_summary("q", "x")
    with secret_key(NEW):
        new = encrypted_content.encrypt("p", ITEM)
    assert one.split(".")[:2] == other.split(".")[:2]
    assert one.split(".")[1] != new.split(".")[1]
    assert len(one.split(".")[1]) == 8


def test_tokens_of_older_keys_open_and_new_ones_are_of_the_new_key() -> None:
    with secret_key(OLD):
        token, summary = encrypted_content.encrypt("p", ITEM), encrypted_content.seal_summary("p", "In short.")
    with secret_key(NEW, OLD):
        assert encrypted_content.decrypt("p", token) == ["Hm."]
        assert encrypted_content.decrypt("p", summary, "compaction") == ["In short."]
        assert encrypted_content.decrypt("q", token) is None
        new = encrypted_content.encrypt("p", ITEM)
    with secret_key(NEWEST, NEW):
        assert encrypted_content.decrypt("p", new) == ["Hm."]
        assert encrypted_content.decrypt("p", token) is None


@pytest.mark.parametrize("keys_of", [(OLD,), (NEW, OLD), (NEWEST, NEW, OLD)])
def test_tokens_of_before_there_were_key_ids_open(keys_of: tuple[str, ...]) -> None:
    token = first_version(OLD, "p", "reasoning", ["Hm."])
    with secret_key(*keys_of):
        assert encrypted_content.decrypt("p", token) == ["Hm."]
        assert encrypted_content.decrypt("q", token) is None
    with secret_key(NEW):
        assert encrypted_content.decrypt("p", token) is None


@pytest.mark.django_db
def test_the_first_key_is_not_made_again(tmp_path: Path) -> None:
    with secret_key(OLD):
        secret = first_key(tmp_path)
    with secret_key(NEW, OLD):
        assert first_key(tmp_path) == secret
        assert ApiKey.objects.count() == 1
        ApiKey.objects.update(revoked_at="2026-01-01T00:00Z")
        assert ApiKey.find(secret) is None


@pytest.mark.django_db
def test_another_secret_key_of_a_running_process_is_a_warning() -> None:
    Worker.objects.create(uid=uuid4(), name="earlier version", heartbeat_at=Now())
    with secret_key(OLD):
        leases.heartbeat(uuid4(), "host-a:1", [])
        assert unshared_secret_key() is None
    with secret_key(NEW, OLD):
        assert unshared_secret_key() is None, "a rotation"
    with secret_key(NEW):
        problem = unshared_secret_key() or ""
        assert "such as host-a:1." in problem
        assert [message for _, message in host.check_api_keys() if message == problem], "doctor warns too"
        errors = StringIO()
        call_command("createkey", "CI", stdout=StringIO(), stderr=errors)
        assert problem in errors.getvalue()
        stored = repr(list(Worker.objects.values()))
        assert OLD not in stored
        Worker.objects.update(heartbeat_at="2026-01-01T00:00Z")
        assert unshared_secret_key() is None


@pytest.mark.django_db
def test_first_key_of_another_secret_key_is_a_warning_until_it_is_revoked(tmp_path: Path) -> None:
    assert other_secret_key(tmp_path) is None
    with secret_key(OLD):
        first_key(tmp_path)
        assert other_secret_key(tmp_path) is None
    with secret_key(NEW, OLD):
        assert other_secret_key(tmp_path) is None
    with secret_key(NEW):
        assert other_secret_key(tmp_path) == KEYS_REFUSED
        first_key(tmp_path)
        assert other_secret_key(tmp_path) == KEYS_REFUSED
        ApiKey.objects.filter(pk=ApiKey.objects.earliest("pk").pk).update(revoked_at="2026-01-01T00:00Z")
        assert other_secret_key(tmp_path) is None


@pytest.mark.django_db
def test_first_key_is_read_from_a_mounted_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "mounted").write_text("sk-of-a-mounted-file\n")
    monkeypatch.setenv("RESPONSES_API_KEY_FILE", str(tmp_path / "mounted"))
    assert first_key(tmp_path) == "sk-of-a-mounted-file"
    assert ApiKey.find("sk-of-a-mounted-file") is not None


class RotationTest(ApiCase):
    """API keys, sign-in links and sessions across a rotation."""

    async def test_an_api_key_is_found_and_hashed_anew_when_it_is_used(self) -> None:
        with secret_key(OLD):
            _, secret = await sync_to_async(ApiKey.make)("p")
        async with self.serving() as client:
            for keys_of, status in (((NEW, OLD), 200), ((NEW,), 200), ((NEWEST,), 401)):
                with self.subTest(keys=keys_of), secret_key(*keys_of):
                    api_keys.clear_cache()
                    answer = await client.get("/v1/models", headers={"Authorization": f"Bearer {secret}"})
                    self.assertEqual(answer.status_code, status)
        self.assertEqual(await ApiKey.objects.filter(project="p").acount(), 1)

    def test_sessions_links_and_browser_keys_go_on(self) -> None:
        User.objects.create_superuser("ada", password="countess of lovelace")
        browser = Client()
        with secret_key(OLD):
            browser.post("/sign-in", {"username": "ada", "password": "countess of lovelace"})
            secret = browser.get("/chat/secret").json()["secret"]
            link = sign_in.link(sign_in.operator())
        with secret_key(NEW, OLD):
            self.assertIsNotNone(api_keys._find(secret))
            self.assertEqual(browser.get("/responses").status_code, 200)
            renewed = browser.get("/chat/secret").json()["secret"]
            self.assertIsNotNone(api_keys._find(renewed))
            other = Client()
            other.get(link)
            self.assertEqual(other.get("/responses").status_code, 200)
        with secret_key(NEW):
            self.assertIsNone(api_keys._find(secret))
            self.assertIsNotNone(api_keys._find(renewed))
            self.assertEqual(browser.get("/responses").status_code, 200)
