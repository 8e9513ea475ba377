-- Puts an activity in the place of a torn one, with what the indexes know of that.
INSERT INTO work (seq, key, execution, activity, state, tag, session, visible_at, attempts, token,
    locked_until, since, unreadable, epoch, worker, item, route, refused)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
