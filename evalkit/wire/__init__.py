"""The wire: three provider dialects, the rules of their requests, faults, and the server that speaks them."""
