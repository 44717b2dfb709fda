"""Compaction in the Responses API: what ``POST /v1/responses/compact`` answers, and its item read back.

Shape and order (the user's messages, then one item) are those of the SDK's ``CompactedResponse``. What the
provider keeps encrypted is here a summary in base64: a client can do no more than send it back.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import Any

from evalkit.core.turns import count_tokens
from evalkit.wire.answers import CREATED, text_in


def compacted(summary: str, users: Iterable[str], name: str, tokens: int) -> dict[str, Any]:
    """The answer: the user's messages, then an item that holds the summary. ``tokens`` were read for it."""
    said = [
        {
            "id": f"msg_{name}_{place}",
            "type": "message",
            "role": "user",
            "status": "completed",
            "content": [{"type": "input_text", "text": text}],
        }
        for place, text in enumerate(users)
    ]
    written = count_tokens(summary)
    kept = base64.b64encode(summary.encode()).decode()
    return {
        "id": name,
        "object": "response.compaction",
        "created_at": CREATED,
        "output": [*said, {"id": f"cmp_{name}", "type": "compaction", "encrypted_content": kept}],
        "usage": {
            "input_tokens": tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens + written,
        },
    }


def summary_in(item: Mapping[str, Any]) -> str:
    """The summary that a compaction item stands for; empty where it is none of evalkit's."""
    try:
        return base64.b64decode(text_in(item.get("encrypted_content")), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return ""
