"""The versioned interfaces of Lamina: what people and the API server read and write. Pure.

Each version is a package. Its types say what is on the wire; the rest of the code uses the types of `lamina.model`, and
converts where objects come in and go out.
"""
