-- Gives a node the number of its newest start.
SELECT {name}.register_node('node')
