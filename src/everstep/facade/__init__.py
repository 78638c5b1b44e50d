"""What every door calls. `Desk` for doors, with the caller named; `Engine`, `Task`, `Pause` for Python."""
