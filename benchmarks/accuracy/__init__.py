"""Accuracy of aliaslint against labelled truth and against mutants proven by execution."""
