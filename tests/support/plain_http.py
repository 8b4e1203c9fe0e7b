"""HTTP without TLS: requests and clients that read no certificates, which takes 20 ms of processor time for each client."""

from __future__ import annotations

import ssl
from contextlib import AbstractContextManager
from typing import Any

import httpx2

NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def request(method: str, url: str, **options: Any) -> httpx2.Response:
    """Send a request, with the options of httpx2."""
    return httpx2.request(method, url, verify=NO_CERTIFICATES, **options)


def get(url: str, **options: Any) -> httpx2.Response:
    """Send a GET."""
    return request("GET", url, **options)


def post(url: str, **options: Any) -> httpx2.Response:
    """Send a POST."""
    return request("POST", url, **options)


def delete(url: str, **options: Any) -> httpx2.Response:
    """Send a DELETE."""
    return request("DELETE", url, **options)


def stream(method: str, url: str, **options: Any) -> AbstractContextManager[httpx2.Response]:
    """Send a request whose answer is read in parts."""
    return httpx2.stream(method, url, verify=NO_CERTIFICATES, **options)


def client(**options: Any) -> httpx2.Client:
    """Create a client."""
    return httpx2.Client(verify=NO_CERTIFICATES, **options)


def async_client(**options: Any) -> httpx2.AsyncClient:
    """Create an asynchronous client."""
    return httpx2.AsyncClient(verify=NO_CERTIFICATES, **options)
