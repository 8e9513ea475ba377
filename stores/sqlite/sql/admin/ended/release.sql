-- Ends a step.
RELEASE tree
