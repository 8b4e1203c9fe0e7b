"""Trial run: becomes the sandbox of the runner with the probe in place of the runner."""

from __future__ import annotations

import sys

from responses_app.sandbox import bubblewrap
from responses_app.sandbox.launch import launcher

if __name__ == "__main__":
    command = [sys.executable, "-P", "-m", "responses_app.sandbox.launch.probe"]
    launcher.become(bubblewrap.find_bubblewrap(), launcher.folders(), command)
