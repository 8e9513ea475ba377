-- Reads the session, the tag and the route of an activity, and whether it has terms. One that stands in the
-- place of a torn row has them if it stands where work with terms does.
SELECT session, tag, route, call IS NOT NULL OR session IS 0 OR substr(tag, 1, 2) = '>+'
    OR EXISTS (SELECT 1 FROM routes WHERE routes.id = work.route AND routes.kind = 2)
FROM work
WHERE seq = (SELECT ?1 WHERE ?1 NOT IN (SELECT row FROM torn_work))
