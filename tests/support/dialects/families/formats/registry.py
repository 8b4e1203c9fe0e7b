"""Registry of the formats of all families."""

from __future__ import annotations

from tests.support.dialects.families.formats import chatml, deepseek, gemma, json_lists, llama_mistral, recent, xml_calls

FAMILIES = {
    family.name: family
    for module in (chatml, xml_calls, deepseek, llama_mistral, gemma, json_lists, recent)
    for family in module.FORMATS
}
