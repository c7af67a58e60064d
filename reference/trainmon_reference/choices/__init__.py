"""What a run can be made of, by name: losses, optimizers, schedules, initialisations, normalisations, regularisers."""
