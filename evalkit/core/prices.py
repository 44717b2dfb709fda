"""The assumed price of scripted tokens."""

from evalkit.core.tasks import Limits

#: US dollars per million tokens. An assumption, stated wherever a cost is shown; not a provider's price.
INPUT_USD_PER_MILLION = 3.0
OUTPUT_USD_PER_MILLION = 15.0


def cost(input_tokens: int, output_tokens: int) -> float:
    """The assumed cost in US dollars."""
    return (input_tokens * INPUT_USD_PER_MILLION + output_tokens * OUTPUT_USD_PER_MILLION) / 1_000_000


def over_budget(limits: Limits, tokens: int, input_tokens: int, output_tokens: int) -> bool:
    """Whether a limit of tokens or money is reached."""
    if limits.tokens is not None and tokens >= limits.tokens:
        return True
    return limits.usd is not None and cost(input_tokens, output_tokens) >= limits.usd
