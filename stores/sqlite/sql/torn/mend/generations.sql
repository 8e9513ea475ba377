-- Lists the tables of a queue that were left behind, because a page of them is torn.
SELECT name FROM sqlite_schema WHERE type = 'table' AND name GLOB ?1
