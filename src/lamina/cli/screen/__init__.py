"""The screen of `lamina top`: rows, keys and lines as plain data, and the terminal that shows them."""
