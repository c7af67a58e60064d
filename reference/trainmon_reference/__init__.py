"""The reference training core (torch): scenarios with injected faults give labelled traces. Not written yet."""
