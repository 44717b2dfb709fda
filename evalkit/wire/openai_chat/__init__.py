"""The OpenAI Chat Completions API, after the types of ``openai`` 3.57."""
