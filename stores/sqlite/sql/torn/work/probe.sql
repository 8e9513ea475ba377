-- Reads all of an activity: the last column stands behind the text.
SELECT item, refused, key, first_fetched FROM work WHERE seq = ?1
