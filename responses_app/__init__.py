"""Verbatim: the Responses API in front of vLLM, kept in Postgres."""
