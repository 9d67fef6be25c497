"""Write the generated pages of docs/reference: `python -m docs.generate`."""

from docs.generate.reference import REFERENCE, pages

for name, text in pages().items():
    (REFERENCE / name).write_text(text)
