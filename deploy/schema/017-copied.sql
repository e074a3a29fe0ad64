-- steps: SELECT done, total FROM store.copy_some()
-- From here on everything is in both forms: services of this release can begin, beside those of the release before.

-- As in 016: nobody waits behind what ANALYZE takes. It takes seconds, so nothing else is locked before.
SET LOCAL lock_timeout = '60s';
ANALYZE store.object, store.change;
-- The table refers to realm.environment, which is locked with it: all writers wait behind that.
SET LOCAL lock_timeout = '200ms';
DROP FUNCTION store.copy_some();
DROP TABLE store.copying;
