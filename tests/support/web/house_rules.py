"""Vector store with one small file, made through the API of a server."""

from __future__ import annotations

from typing import Any

from tests.support import plain_http
from tests.support.server.serve_command import Server
from tests.support.waiting import wait_until


def add_house_rules(server: Server) -> str:
    """Create a vector store with a file, and wait until the file can be searched. Return the id of the store."""
    with plain_http.client(
        base_url=f"{server.url}/v1", headers={"Authorization": f"Bearer {server.key}"}, timeout=180
    ) as client:
        upload = {"file": ("rules.txt", b"Each employee has 30 days of vacation.")}
        file: dict[str, Any] = client.post("/files", data={"purpose": "assistants"}, files=upload).json()
        body = {"name": "House rules", "file_ids": [file["id"]]}
        store: str = client.post("/vector_stores", json=body).json()["id"]
        wait_until(lambda: client.get(f"/vector_stores/{store}").json()["file_counts"]["completed"] == 1, limit_s=60)
    return store
