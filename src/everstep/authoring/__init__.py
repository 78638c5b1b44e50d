"""What users write in Python: tools from functions, plans from code. It becomes the same facts a plan file becomes."""
