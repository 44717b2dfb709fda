"""What is secret in a text, a value or a body, and how it is taken out before anything is written.

One room for all that writes: cassettes, stores, pages, transcripts, exports and messages. It knows nothing of
the others, so each of them may import it.
"""
