-- Reads the pin of an instance, which is the negative number of its route if it is routed.
SELECT pin FROM instances WHERE key = ?1
