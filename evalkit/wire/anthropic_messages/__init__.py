"""The Anthropic Messages API, after the types of ``anthropic`` 2.14."""
