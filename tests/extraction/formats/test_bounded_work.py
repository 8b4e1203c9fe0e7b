"""Files that are short and ask for very much work: merged cells, rows far apart, elements without an end."""

from __future__ import annotations

import zipfile
from io import BytesIO

import docx
import openpyxl
import pytest

from responses_app.extraction.formats import workbook
from responses_app.extraction.formats.html_markdown import FEED_CHARS, read_html
from responses_app.extraction.formats.word import MAX_COLUMNS, read_docx
from responses_app.extraction.formats.workbook import read_xlsx
from responses_app.extraction.text_buffer import TextBuffer, TextLimitReached

NAMESPACE = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
PARAGRAPH = "<w:p><w:r><w:t>x</w:t></w:r></w:p>"


def with_part(document: bytes, name: str, part: str) -> bytes:
    """Return an Office document with another text of a part."""
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(document)) as source, zipfile.ZipFile(out, "w") as target:
        for entry in source.namelist():
            target.writestr(entry, part if entry == name else source.read(entry))
    return out.getvalue()


def word(*rows: str) -> bytes:
    """Return a document with a table of these rows, and a paragraph behind the table."""
    empty = BytesIO()
    docx.Document().save(empty)
    body = "".join(f"<w:tr>{row}</w:tr>" for row in rows)
    part = f"<w:document {NAMESPACE}><w:body><w:tbl>{body}</w:tbl><w:p><w:r><w:t>end</w:t></w:r></w:p></w:body></w:document>"
    return with_part(empty.getvalue(), "word/document.xml", part)


def cell(properties: str) -> str:
    return f"<w:tc><w:tcPr>{properties}</w:tcPr>{PARAGRAPH}</w:tc>"


def sheet(*rows: str) -> bytes:
    """Return a workbook with a sheet of these rows."""
    empty = BytesIO()
    openpyxl.Workbook().save(empty)
    namespace = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
    part = f"<worksheet {namespace}><sheetData>{''.join(rows)}</sheetData></worksheet>"
    return with_part(empty.getvalue(), "xl/worksheets/sheet1.xml", part)


def text_of_word(data: bytes) -> str:
    out = TextBuffer()
    read_docx(data, out)
    return out.text


def test_cell_over_very_many_columns_has_as_many_as_word_allows() -> None:
    row = cell('<w:gridSpan w:val="100000000"/>') + cell("")
    assert text_of_word(word(row, row)) == ("x\t" * MAX_COLUMNS + "x\n") * 2 + "end\n"


def test_cell_over_very_many_rows_is_read() -> None:
    merged = cell("<w:vMerge/>")
    assert text_of_word(word(cell('<w:vMerge w:val="restart"/>'), *([merged] * 3000))) == "x\n" * 3001 + "end\n"


def test_merged_cells_have_their_text_in_each_place() -> None:
    document, data = docx.Document(), BytesIO()
    table = document.add_table(4, 4)
    for row in range(4):
        for column in range(4):
            table.cell(row, column).text = f"{row}{column}"
    table.cell(0, 1).merge(table.cell(0, 2)).text = "wide"
    table.cell(1, 0).merge(table.cell(3, 1)).text = "block"
    document.save(data)
    expected = ["\t".join(cell.text for cell in row.cells) for row in table.rows]
    assert text_of_word(data.getvalue()).splitlines()[:4] == expected
    assert expected[3] == "block\tblock\t32\t33"


def test_long_text_in_very_many_merged_cells_ends_at_the_limit() -> None:
    out, row = TextBuffer(10_000), cell('<w:gridSpan w:val="63"/>').replace(">x<", f">{'x' * 5000}<")
    with pytest.raises(TextLimitReached):
        read_docx(word(row * 1000), out)
    assert (len(out.text), out.is_cut) == (10_000, True)


def test_rows_behind_the_last_one_of_excel_are_left_out() -> None:
    out = TextBuffer()
    row = '<row r="{0}"><c r="A{0}"><v>{1}</v></c></row>'
    read_xlsx(sheet(row.format(1, "7"), row.format(1_048_576, "8"), row.format(999_999_999, "9")), out)
    assert (out.text, out.is_cut) == ("# Sheet\n7\n8\n\n", False)


def test_very_many_empty_rows_end_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbook, "MAX_EMPTY_ROWS", 10)
    row, out = '<row r="{0}"><c r="A{0}"><v>{0}</v></c></row>', TextBuffer()
    with pytest.raises(TextLimitReached):
        read_xlsx(sheet(row.format(3), row.format(12), row.format(14)), out)
    assert (out.text, out.is_cut) == ("# Sheet\n3\n12\n", True)


@pytest.mark.parametrize("unclosed", ["<!-- x", "</a ", '<a href="', "<![CDATA[", "<?x"])
def test_elements_without_an_end_are_dropped(unclosed: str) -> None:
    out = TextBuffer()
    read_html(f"<html><p>Oslo</p>{unclosed * (FEED_CHARS // 2)}".encode(), out)
    assert out.text == "Oslo"


def test_long_element_is_read_across_pieces() -> None:
    out = TextBuffer()
    read_html(f"<html><img src='{'x' * (5 * FEED_CHARS)}'><p>Oslo</p>".encode(), out)
    assert out.text == "Oslo"
