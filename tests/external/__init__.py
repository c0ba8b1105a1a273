"""Models of other people's case studies, on the same contract as the protocols: their exact figures are published."""
