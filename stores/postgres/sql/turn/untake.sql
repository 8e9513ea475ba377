-- Abandons leases that no caller received, expired or not, without counting the delivery (S5).
SELECT * FROM {schema}.abandon_turns(
    $1, array_fill(NULL::bigint, ARRAY[cardinality($1::text[])]), array_fill(true, ARRAY[cardinality($1::text[])]), $2, $3, $4, true
)
