"""Vllm."""
