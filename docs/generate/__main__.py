"""Write the generated pages of docs/reference and the man pages: `python -m docs.generate`."""

from docs.generate.reference import MAN, REFERENCE, man_pages, pages

MAN.mkdir(exist_ok=True)
for folder, made in ((REFERENCE, pages()), (MAN, man_pages())):
    for name, text in made.items():
        (folder / name).write_text(text)
