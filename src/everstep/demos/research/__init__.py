"""A small piece of research: find, read, sum up, save, post. Killed in the middle, it goes on where it stopped."""
