"""The durable, queue-driven worker: tasks kept outside the model's context, closed by evidence."""
