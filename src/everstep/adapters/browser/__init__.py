"""A browser that reaches nothing but through us. `shared.SharedBrowser` is the one of a worker."""
