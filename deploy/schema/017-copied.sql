-- steps: SELECT done, total FROM store.copy_some()
-- From here on everything is in both forms: services of this release can begin, beside those of the release before.

-- As in 016: nobody waits behind what ANALYZE takes.
SET LOCAL lock_timeout = '60s';
DROP FUNCTION store.copy_some();
DROP TABLE store.copying;
ANALYZE store.object, store.change;
