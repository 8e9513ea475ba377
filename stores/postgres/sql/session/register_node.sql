-- Registers a start of a node and returns its incarnation (S13).
SELECT {schema}.register_node($1) AS incarnation
