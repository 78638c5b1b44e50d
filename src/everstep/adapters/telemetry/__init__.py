"""What operators see: logs. Answers to `ports/sink`; nothing of a task's state is kept here."""
