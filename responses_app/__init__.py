"""Verbatim: a server for the OpenAI Responses API, with vLLM as the engine and Postgres as the store."""
