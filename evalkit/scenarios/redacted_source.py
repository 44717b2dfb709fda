"""A scenario file's text as it may be kept."""

from __future__ import annotations

import yaml

from evalkit.scenarios.loader import load_text
from evalkit.scenarios.yaml_source import ScenarioError
from evalkit.secrets.cleaning import clean_text, clean_value, may_hold_secrets


def kept_text(place: str, text: str) -> str:
    """A scenario file's text without secrets; as it is where it has none.

    A quoted text may have escapes before and in a secret, so values are cleaned, and the text around them.
    ScenarioError where the file is no scenario without its secrets.
    """
    if clean_text(text) == text and not may_hold_secrets(text):
        return text
    try:
        documents = list(yaml.safe_load_all(text))
        cleaned = clean_value(documents)
        kept = clean_text(text)
        if cleaned != documents or list(yaml.safe_load_all(kept)) != documents:
            kept = yaml.safe_dump_all(cleaned, sort_keys=False, allow_unicode=True, width=10_000)
        if kept != text:
            load_text(kept, place)
    except (yaml.YAMLError, ValueError) as error:
        said = clean_text(" ".join(str(error).split()))
        raise ScenarioError(
            place, None, "", f"holds what looks like a secret, and without it: {said}"
        ) from None
    return kept
