"""The OpenAI Responses API, after the types of ``openai`` 3.57."""
