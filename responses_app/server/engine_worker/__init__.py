"""Engine worker: a vLLM server as a supervised process."""
