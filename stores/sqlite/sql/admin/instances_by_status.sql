-- Lists the instances whose current execution has a status, newest first.
SELECT instance FROM instances WHERE name IS NOT NULL AND current_status = ?1 ORDER BY ord DESC
