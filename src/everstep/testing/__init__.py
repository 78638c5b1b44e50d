"""What users and our own tests need to try a plan, a tool or an engine."""
