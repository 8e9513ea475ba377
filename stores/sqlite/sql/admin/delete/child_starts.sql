-- Lists the starts that an instance has sent to its children, and whether a live lease holds each.
SELECT messages.seq, messages.key,
    instances.turn = 2 AND instances.locked_until > ?2 AND instances.token IS messages.token
FROM messages JOIN instances ON instances.key = messages.key
WHERE messages.starts = 1
  AND messages.life = (SELECT ord FROM instances WHERE key = ?1 AND name IS NOT NULL)
