"""Noisy-neighbor benchmark: the latency of a project while another project sends expensive or hostile requests."""
