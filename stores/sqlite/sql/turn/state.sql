-- Tells whether an instance is idle (0), ready (1) or leased (2).
SELECT turn FROM instances WHERE key = ?1
