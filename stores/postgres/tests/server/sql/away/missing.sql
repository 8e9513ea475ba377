-- Lists numbers that were not written.
SELECT n FROM unnest($1::bigint[]) AS n WHERE n NOT IN (SELECT number FROM public.written)
