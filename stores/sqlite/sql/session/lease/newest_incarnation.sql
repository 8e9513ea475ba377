-- Reads the number of the newest start of a node.
SELECT incarnation FROM nodes WHERE node = ?1
