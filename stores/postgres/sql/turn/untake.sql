-- Gives leases back that nobody came to take, whether they have ended or not, and counts no attempt (S5).
SELECT * FROM {schema}.abandon_turns(
    $1, array_fill(NULL::bigint, ARRAY[cardinality($1::text[])]), array_fill(true, ARRAY[cardinality($1::text[])]), $2, $3, $4, true
)
