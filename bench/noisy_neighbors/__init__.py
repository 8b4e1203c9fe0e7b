"""Noisy-neighbor benchmark: the latency of one project while another project sends expensive or hostile requests."""
