"""How do I carry out a plan file, and what is left when it has ended?"""

from pathlib import Path

from everstep import run

PLAN = """
name: hello
inputs:
  who: {type: string, default: world}
steps:
  - id: greet
    tool: text.join
    with: {texts: ["Hello", "${inputs.who}"], separator: " "}
  - id: note
    tool: file.write
    with: {path: hello.txt, text: "${greet.text}!"}
outputs:
  file: ${note.path}
"""

Path("hello.plan.yaml").write_text(PLAN, encoding="utf-8")
result = run("hello.plan.yaml", {"who": "Ana"})  # kill it, run it again: it goes on where it stopped
print(result.status, result.outputs)

assert result.outputs == {"file": "hello.txt"}
assert Path("hello.txt").read_text(encoding="utf-8") == "Hello Ana!"
