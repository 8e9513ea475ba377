-- Gives a node the number of its newest start (S13).
SELECT {schema}.register_node($1) AS incarnation
