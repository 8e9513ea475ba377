-- Lists all instances, newest first.
SELECT instance FROM instances WHERE name IS NOT NULL ORDER BY ord DESC
