"""What strategies would have decided on recordings, and the answer that is made of it."""
