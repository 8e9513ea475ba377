-- Describes every activity in one line, without its payload, for debugging.
SELECT printf('%d of %s #%d activity %d state %d visible at %d attempts %d deliveries %d '
    || 'tries %d tag %s session %s worker %s',
    seq, instance, execution, activity, state, visible_at, attempts, deliveries, tries, tag, session, worker)
FROM work JOIN instances ON instances.key = work.key ORDER BY seq
