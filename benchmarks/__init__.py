"""Measurements of aliaslint: speed, memory, and accuracy against labelled truth."""
