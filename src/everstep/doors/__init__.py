"""Ways in: each translates, calls the facade, and translates back. What a request means is the facade's business."""
