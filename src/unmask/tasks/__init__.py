"""The tasks: what is asked, how it is put to a model, and how an answer is scored."""
