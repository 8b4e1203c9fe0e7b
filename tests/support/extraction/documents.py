"""Documents in the formats that the extraction reads, and hostile documents."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from functools import cache
from io import BytesIO

import docx
import openpyxl
import pptx


def pdf(*pages: str) -> bytes:
    """A PDF with a line of ASCII text on each page."""
    kids = " ".join(f"{3 + 2 * number} 0 R" for number in range(len(pages)))
    font = 3 + 2 * len(pages)
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>"]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        objects += [
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {4 + 2 * number} 0 R "
            f"/Resources << /Font << /F1 {font} 0 R >> >> >>",
            f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
        ]
    objects.append("<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    out, offsets = bytearray(b"%PDF-1.4\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += f"{number} 0 obj\n{body}\nendobj\n".encode()
    start = len(out)
    out += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    out += b"".join(f"{offset:010} 00000 n \n".encode() for offset in offsets)
    return bytes(out + f"trailer\n<< /Size {len(objects) + 1} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n".encode())


def word() -> bytes:
    document = docx.Document()
    document.add_heading("Cities", 1)
    table = document.add_table(rows=1, cols=2)
    table.rows[0].cells[0].text, table.rows[0].cells[1].text = "Oslo", "Norway"
    document.add_paragraph("The end.")
    return _saved(document)


def workbook() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Cities"
    sheet.append(["Oslo", 700_000, None])
    sheet.append([None, None, None])
    sheet.append(["Bergen", None, 1.5])
    return _saved(book)


def presentation() -> bytes:
    slides = pptx.Presentation()
    slide = slides.slides.add_slide(slides.slide_layouts[1])
    slide.shapes.title.text = "Cities"
    slide.placeholders[1].text = "Oslo and Bergen"
    slide.notes_slide.notes_text_frame.text = "Speak slowly."
    return _saved(slides)


def archive(**parts: bytes) -> bytes:
    """A ZIP archive; `__` in a name stands for `/`, and names end in `.xml`."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in parts.items():
            file.writestr(name.replace("__", "/") + ".xml", data)
    return out.getvalue()


@cache
def zip_bomb() -> bytes:
    """A small Word document whose main part has 300 MiB. Its creation takes a second."""
    return archive(word__document=bytes(300 << 20))


def word_with(document: bytes) -> bytes:
    """A Word document whose main part is `document`."""
    return _with_part(word(), "word/document.xml", lambda _: document)


def workbook_with(old: bytes, new: bytes) -> bytes:
    """The workbook with `new` in place of `old` in the XML of the sheet."""
    return _with_part(workbook(), "xl/worksheets/sheet1.xml", lambda sheet: sheet.replace(old, new))


def _with_part(archive: bytes, part: str, change: Callable[[bytes], bytes]) -> bytes:
    """The ZIP archive with a changed part."""
    source, out = zipfile.ZipFile(BytesIO(archive)), BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for name in source.namelist():
            data = source.read(name)
            file.writestr(name, change(data) if name == part else data)
    return out.getvalue()


def _saved(document: object) -> bytes:
    out = BytesIO()
    document.save(out)  # type: ignore[attr-defined]
    return out.getvalue()
