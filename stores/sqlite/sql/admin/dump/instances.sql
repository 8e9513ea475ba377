-- Describes every instance in one line, for debugging.
SELECT printf('%s %s@%s execution %d turn %d locked until %s', instance, name, version, current_execution,
    turn, locked_until)
FROM instances ORDER BY key
