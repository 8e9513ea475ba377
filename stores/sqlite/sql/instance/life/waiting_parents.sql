-- Lists the starts of an instance that turns of parents have sent, each with the id of its parent, if that
-- parent has this life and has not ended.
SELECT messages.seq, parents.instance
FROM messages JOIN instances AS parents ON parents.ord = messages.life AND parents.name IS NOT NULL
WHERE messages.key = ?1 AND messages.starts = 1
    AND messages.seq NOT IN (SELECT row FROM torn_messages)
    AND parents.current_status NOT IN ('Completed', 'Failed')
