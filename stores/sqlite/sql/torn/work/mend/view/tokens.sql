-- Lists the tokens of leased activities, by an index alone.
SELECT seq, token FROM work INDEXED BY work_token WHERE token IS NOT NULL
