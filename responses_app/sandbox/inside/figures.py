"""Backend of matplotlib that draws figures as PNG images. Selected by MPLBACKEND=module://figures."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Any

FigureCanvas: Any = import_module("matplotlib.backends.backend_agg").FigureCanvasAgg


def show(*_arguments: object, **_options: object) -> None:
    """Draw the open figures and close the figures, as the function `show` of matplotlib's interactive backends does."""
    pyplot: Any = sys.modules.get("matplotlib.pyplot")
    for number in pyplot.get_fignums() if pyplot else ():
        image = io.BytesIO()
        pyplot.figure(number).savefig(image, format="png", bbox_inches="tight")
        import_module("pictures").add(image.getvalue())
        pyplot.close(number)
