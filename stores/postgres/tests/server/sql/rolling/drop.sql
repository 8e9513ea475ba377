-- Drops the function.
DROP FUNCTION {name}.doubled
