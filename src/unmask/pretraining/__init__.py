"""Pretraining of small models from the generators: recipes, examples, objectives."""
